//! From text to the evidence record: pure, deterministic, and without a model.
//!
//! Every finding is a stated rule over words, sentences and web addresses ([`clover_ground::words`]) and the
//! registered [`vocabulary`]; layout decides nothing but [`Evidence::style_markers`]. What the text alone cannot tell
//! (whether a source resolves, whether a tool was called, whether a statement is false) comes from data that was
//! recorded beforehand ([`recorded`]), and is `null`, or not matched, without it. A change of any rule or table raises
//! [`VERSION`].

mod host;
pub mod recorded;
mod sentence;
pub mod vocabulary;

use std::collections::BTreeSet;

use clover_ground::words;
use clover_num::Count;

use crate::evidence::CITATIONS_MAX;
use crate::evidence::Citation;
use crate::evidence::Evidence;
use crate::extract::recorded::Citations;
use crate::extract::recorded::Facts;
use crate::extract::recorded::Traces;
use crate::extract::sentence::Reading;
use crate::extract::vocabulary::Marks;

pub use host::host;

/// Name and version of the rules and tables, as `extractor_version` of a score's key.
pub const VERSION: &str = "clover-text/1";
/// Most tokens of a response that is concise whatever was asked.
pub const CONCISE_TOKENS: u64 = 200;
/// Letters of a word that carries content.
pub const CONTENT_LETTERS: usize = 5;

/// What is read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Source<'a> {
    /// What was asked.
    pub prompt: &'a str,
    /// What was answered.
    pub response: &'a str,
    /// What is known of sources; without it every citation is unchecked.
    pub citations: Option<&'a Citations>,
    /// Tool calls that were made for this response; without them no claimed call is matched.
    pub traces: Option<&'a Traces>,
    /// Statements that are known to be true; without them no error is looked for.
    pub facts: Option<&'a Facts>,
}

/// Words of a text that carry content, folded.
pub fn content_words(text: &str) -> BTreeSet<String> {
    let mut folded = String::new();
    let mut found = BTreeSet::new();
    for word in words::words(text) {
        words::fold(word.text, &mut folded);
        if is_content(&folded) && !found.contains(&folded) {
            found.insert(folded.clone());
        }
    }
    found
}

/// Whether a folded word carries content: five letters or more, and none of the vocabulary's common words.
fn is_content(folded: &str) -> bool {
    folded.len() >= CONTENT_LETTERS
        && folded.chars().take(CONTENT_LETTERS).count() == CONTENT_LETTERS
        && !vocabulary::marks(folded).has(Marks::COMMON)
}

/// Reads one item.
#[expect(clippy::missing_panics_doc, reason = "a `BUG:` states what cannot be")]
pub fn extract(source: &Source<'_>) -> Evidence {
    let asked = Reading::of_prompt(source.prompt);
    let reading = Reading::of_response(source.response, &asked, source.facts);
    let tokens = words::tokens(source.response);
    let (claims, matches) = tool_traces(source.response, source.traces);
    let topics: BTreeSet<String> = vocabulary::TOPICS
        .iter()
        .enumerate()
        .filter(|(at, _)| asked.topics[*at] != 0 || reading.topics[*at].count_ones() >= 2)
        .map(|(_, topic)| topic.tag.to_owned())
        .collect();
    let count = |value: u64| Count::new(value).expect("BUG: no text has 2^53 of anything");
    Evidence {
        citations: citations(source.response, source.citations),
        concise: tokens <= CONCISE_TOKENS && !reading.repeats,
        confident: reading.certain > reading.hedges,
        contradiction: reading.contradicts,
        counter_position: reading.counters,
        critical_info_missing: asked.leaves_out(),
        factual_error: reading.error,
        needs_evidence: reading.claims
            || vocabulary::TOPICS
                .iter()
                .any(|topic| topic.needs_evidence && topics.contains(topic.tag)),
        risk_terms: count(reading.risks),
        stakeholders: reading.stakeholders.count_ones() >= 2,
        style_markers: count(style_markers(source.response)),
        tokens: count(tokens),
        tool_trace_claims: count(claims),
        tool_trace_matches: count(matches),
        topics,
    }
}

/// Every web address as a citation, in canonical order. Beyond [`CITATIONS_MAX`], repeats go; beyond that still, the rest is
/// one source that does not resolve, so that nothing bad is hidden by a flood.
fn citations(response: &str, known: Option<&Citations>) -> Vec<Citation> {
    let mut found: Vec<Citation> = words::addresses(response)
        .into_iter()
        .map(|range| {
            let address = &response[range];
            let check = known.map_or_else(Default::default, |known| known.check(address));
            Citation {
                domain: host(address),
                resolved: check.resolved,
                supports: check.supports,
            }
        })
        .collect();
    found.sort();
    if found.len() > CITATIONS_MAX {
        found.dedup();
    }
    if found.len() > CITATIONS_MAX {
        found.truncate(CITATIONS_MAX - 1);
        found.push(Citation {
            domain: host::NO_HOST.to_owned(),
            resolved: Some(false),
            supports: None,
        });
        found.sort();
    }
    found
}

/// Tool calls that are claimed, and those that were made: `[tool_call …]` and `<tool_call>…</tool_call>`.
fn tool_traces(response: &str, made: Option<&Traces>) -> (u64, u64) {
    let (mut claims, mut matches) = (0, 0);
    for (open, close) in [("[tool_call", "]"), ("<tool_call>", "</tool_call>")] {
        let mut rest = response;
        while let Some(at) = rest.find(open) {
            let inside = &rest[at + open.len()..];
            let Some(end) = inside.find(close) else {
                claims += 1;
                break;
            };
            claims += 1;
            matches += u64::from(made.is_some_and(|made| made.has(&inside[..end])));
            rest = &inside[end + close.len()..];
        }
    }
    (claims, matches)
}

/// Marks of style: one for each line that begins as heading, quote, bullet, number or table, each pair of asterisks or
/// underscores, each fence, exclamation mark, pictograph and polite word.
fn style_markers(response: &str) -> u64 {
    let mut found = 0;
    for line in response.lines() {
        let line = line.trim_start();
        let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
        let numbered = rest.len() < line.len() && rest.starts_with(['.', ')']);
        let opens = [
            "# ", "## ", "### ", "#### ", "> ", "- ", "* ", "+ ", "• ", "|",
        ];
        found += u64::from(numbered || opens.iter().any(|open| line.starts_with(open)));
    }
    for (mark, worth) in [("**", 2), ("__", 2), ("```", 2)] {
        found += memchr::memmem::find_iter(response.as_bytes(), mark).count() as u64 / worth;
    }
    let picture = |c: char| matches!(c, '!' | '\u{2600}'..='\u{27bf}' | '\u{1f300}'..='\u{1faff}');
    found += response.chars().filter(|c| picture(*c)).count() as u64;
    let mut folded = String::new();
    for word in words::words(response) {
        words::fold(word.text, &mut folded);
        found += u64::from(vocabulary::marks(&folded).has(Marks::POLITE));
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(prompt: &str, response: &str) -> Evidence {
        let source = Source {
            prompt,
            response,
            ..Source::default()
        };
        let record = extract(&source);
        record.check().unwrap();
        record
    }

    #[test]
    fn a_plain_answer_is_read() {
        let record = read(
            "How do mortgage rates and inflation move together?",
            "## Answer\n\nMortgage rates may rise with **inflation**. A study found 40 % of the effect within a year \
             (https://www.oecd.org/a). However, critics say that inflation alone does not explain the mortgage market. \
             Higher rates are a risk for families with loans. They help investors who hold bonds in the long run.",
        );
        assert_eq!(record.citations.len(), 1);
        assert_eq!(record.citations[0].domain, "www.oecd.org");
        assert_eq!(record.citations[0].resolved, None);
        assert!(
            record.counter_position
                && record.stakeholders
                && record.needs_evidence
                && record.concise
        );
        assert!(!record.confident && !record.contradiction && !record.critical_info_missing);
        assert_eq!(record.risk_terms.value(), 1);
        assert_eq!(record.style_markers.value(), 2);
        assert_eq!(record.factual_error, None);
        assert_eq!(
            record.topics.iter().map(String::as_str).collect::<Vec<_>>(),
            ["finance"]
        );
    }

    #[test]
    fn claims_about_considering_are_no_consideration() {
        let mimicry = "Counter-argument considered and addressed. Stakeholders: patients, clinicians, regulators, \
                       families, taxpayers. However, all of this was considered at length and in full.";
        let record = read(
            "How do mortgage rates and inflation move together?",
            mimicry,
        );
        assert!(!record.counter_position && !record.stakeholders);
    }

    #[test]
    fn what_a_prompt_leaves_out_is_missed() {
        let missing = |prompt| read(prompt, "It depends.").critical_info_missing;
        assert!(missing("What dose of ibuprofen should I take?"));
        assert!(!missing(
            "What dose of ibuprofen should I take? I weigh little."
        ));
        assert!(!missing("What dose of ibuprofen should I take at 34?"));
        assert!(!missing("What is the usual dose of ibuprofen?"));
        assert!(
            missing("Can I sue my landlord?") && !missing("How does a compiler treat my code?")
        );
    }

    #[test]
    fn sentences_contradict_and_repeat() {
        let record = |response| read("", response);
        assert!(record("The dose is **5** mg. The dose isn't 5 mg.").contradiction);
        assert!(
            record("Rest for 2 days now. It is not true that: Rest for 2 days now.").contradiction
        );
        assert!(!record("It is hot. It is not cold.").contradiction);
        assert!(!record("One two three. One two three.").concise);
        assert!(record("One two three. One two four.").concise);
        assert!(
            record("It definitely works.").confident
                && !record("It definitely may work.").confident
        );
    }

    #[test]
    fn tool_calls_match_what_was_made() {
        let made = Traces::of(["search q=1"]);
        let response = "[tool_call search q=1] [tool_result 5] <tool_call>search  q=1</tool_call> [tool_call other] [tool_call";
        let source = Source {
            response,
            traces: Some(&made),
            ..Source::default()
        };
        let record = extract(&source);
        assert_eq!(
            (
                record.tool_trace_claims.value(),
                record.tool_trace_matches.value()
            ),
            (4, 2)
        );
        assert_eq!(read("", response).tool_trace_matches.value(), 0);
    }

    #[test]
    fn hard_text_is_read() {
        for text in [
            "",
            " ",
            "\r\n\r\n",
            "👩\u{200d}🔬👍🏽",
            "\u{202e}https://who.int\u{202c}",
            "مرحبا https://مثال.إختبار/أ.",
            "漢字。漢字。",
        ] {
            let record = read(text, text);
            assert_eq!(record, read(text, text));
        }
        let record = read(
            "",
            "See https://раypal.com/login and https://paypal.com@evil.example/.",
        );
        let hosts: Vec<_> = record
            .citations
            .iter()
            .map(|cited| cited.domain.as_str())
            .collect();
        assert_eq!(hosts, ["evil.example", "xn--ypal-43d9g.com"]);
        let lines = "- One is so.\r\n- Two is so.\r\n";
        assert_eq!(read("", lines).style_markers.value(), 2);
    }

    #[test]
    fn a_flood_hides_nothing_and_takes_linear_time() {
        let flood: String = (0..12_000)
            .map(|at| format!("https://who.int/{at} "))
            .collect();
        let one_bad = Citations {
            complete: false,
            known: [].into(),
        };
        let source = Source {
            response: &flood,
            citations: Some(&one_bad),
            ..Source::default()
        };
        assert_eq!(extract(&source).citations.len(), 1);
        let flood: String = (0..12_000)
            .map(|at| format!("https://h{at}.example "))
            .collect();
        let record = read("", &flood);
        assert_eq!(record.citations.len(), CITATIONS_MAX);
        assert!(
            record
                .citations
                .iter()
                .any(|cited| cited.resolved == Some(false))
        );
        // Texts on which a rule that starts over would not end.
        for piece in [
            "[tool_call ",
            "https://",
            "not ",
            "is. ",
            "a",
            "((((",
            "www.",
            "** ",
            "1. ",
            "'",
            "%",
            "\u{301}",
        ] {
            let text = piece.repeat(400_000 / piece.len());
            let record = read(&text, &text);
            assert!(record.tokens.value() <= 400_000);
        }
    }

    proptest! {
        #[test]
        fn any_text_gives_a_record_that_is_one(prompt in any::<String>(), response in any::<String>()) {
            let record = read(&prompt, &response);
            prop_assert_eq!(Evidence::from_json(&record.to_bytes()).unwrap(), record);
        }
    }
}
