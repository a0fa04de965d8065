//! The text of a simulated row: sentences whose content, detail, sources and style are drawn one by one.

use clover_attack::Edit;
use clover_num::draws::Draws;

/// Words of content by domain; each has five letters or more and stands in no vocabulary.
const TERMS: [(&str, [&str; 24]); 3] = [
    (
        "economy",
        [
            "barter",
            "bullion",
            "cargo",
            "coinage",
            "customs",
            "exports",
            "foundry",
            "freight",
            "grain",
            "harvest",
            "imports",
            "ledger",
            "livestock",
            "market",
            "merchant",
            "minting",
            "orchard",
            "pasture",
            "quarry",
            "tariff",
            "textile",
            "timber",
            "trader",
            "warehouse",
        ],
    ),
    (
        "health",
        [
            "appetite",
            "balance",
            "breath",
            "cartilage",
            "digestion",
            "exercise",
            "fatigue",
            "fibre",
            "hydration",
            "joints",
            "kneecap",
            "ligament",
            "muscle",
            "nutrition",
            "posture",
            "pulse",
            "recovery",
            "reflex",
            "sleeping",
            "spine",
            "stamina",
            "stretching",
            "tendon",
            "walking",
        ],
    ),
    (
        "machines",
        [
            "bearing",
            "boiler",
            "camshaft",
            "clutch",
            "coolant",
            "crankshaft",
            "cylinder",
            "flywheel",
            "gasket",
            "gearbox",
            "governor",
            "hydraulics",
            "ignition",
            "lubricant",
            "manifold",
            "piston",
            "pulley",
            "radiator",
            "sprocket",
            "throttle",
            "torque",
            "turbine",
            "valve",
            "windlass",
        ],
    ),
];

/// Terms that a prompt asks for.
pub(super) const ASKED: usize = 10;

/// What a term is said to be, without a digit.
const PLAIN: [&str; 8] = [
    "is part of the usual arrangement",
    "was known in earlier times",
    "works together with the rest",
    "is described in older handbooks",
    "has its own place here",
    "was changed more than once",
    "is kept apart from the others",
    "does its work unseen",
];

/// The same with a digit; `#` is where it stands.
const DETAILED: [&str; 6] = [
    "is checked # times a year",
    "was measured at # units",
    "takes # days to settle",
    "has # separate parts",
    "is counted in groups of #",
    "was replaced after # months",
];

/// Sentences that bear on nothing that is asked, each with the share of responses that have it, in hundredths.
const ASIDES: [(u8, &str); 6] = [
    (30, "It may well differ from place to place."),
    (
        25,
        "For workers this matters in daily life, and for families it matters over the years.",
    ),
    (20, "A risk remains in any case."),
    (
        20,
        "However, critics hold that the {term} matters far less than is commonly said.",
    ),
    (10, "This is certainly so."),
    (5, "[tool_call lookup {term}] [tool_result found]"),
];

/// Hosts of sources that exist.
const SOURCES: [&str; 4] = [
    "archive.example.org",
    "library.example.org",
    "records.example.org",
    "data.example.edu",
];
/// Hosts of sources that do not.
const FAKES: [&str; 3] = [
    "quick-facts.example",
    "daily-digest.example",
    "sure-answers.example",
];

/// Hosts that the rubric lists: domains above [`SOURCES`].
pub(super) const LISTED: [&str; 2] = ["data.example.edu", "example.org"];

/// Names of the domains.
pub(super) const DOMAINS: [&str; 3] = [TERMS[0].0, TERMS[1].0, TERMS[2].0];

/// How a response is dressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dress {
    /// Not at all.
    Plain,
    /// With a source that exists.
    Sourced,
    /// With a source that does not.
    Faked,
    /// With padding.
    Padded,
}

/// A prompt with its response, and what was recorded about it.
#[derive(Clone, Debug)]
pub(super) struct Prose {
    pub prompt: String,
    pub response: String,
    /// Address of the source that exists.
    pub source: Option<String>,
    /// The tool call that was made.
    pub call: Option<String>,
}

/// Writes a row: `covered` of the ten terms, `detailed` of those sentences with a digit.
pub(super) fn write(
    domain: usize,
    covered: usize,
    detailed: usize,
    dress: Dress,
    draws: &mut Draws,
) -> Prose {
    let terms = terms(domain, draws);
    let prompt = format!("Please explain, one by one: {}.", terms.join(", "));
    // What asides are about: a term that is covered, so that they cover none.
    let topic = if covered == 0 { "subject" } else { terms[0] };
    let mut sentences: Vec<String> = terms[..covered]
        .iter()
        .enumerate()
        .map(|(at, term)| {
            if at < detailed {
                let number = 2 + draws.below(97);
                let said = DETAILED[draws.below(DETAILED.len())].replace('#', &number.to_string());
                format!("The {term} {said}.")
            } else {
                format!("The {term} {}.", PLAIN[draws.below(PLAIN.len())])
            }
        })
        .collect();
    if covered == 0 {
        sentences.push("There is little to say here.".to_owned());
    }
    let mut call = None;
    for (share, aside) in ASIDES {
        let is_there = draws.below(100) < usize::from(share);
        if is_there {
            let aside = aside.replace("{term}", topic);
            if aside.starts_with('[') {
                call = Some(format!("lookup {topic}"));
            }
            sentences.push(aside);
        }
    }
    shuffle(&mut sentences, draws);
    let mut response = layout(&sentences, draws);
    let mut source = None;
    match dress {
        Dress::Plain => {}
        Dress::Sourced | Dress::Faked => {
            let hosts: &[&str] = if dress == Dress::Sourced {
                &SOURCES
            } else {
                &FAKES
            };
            let host = hosts[draws.below(hosts.len())];
            let page: String = (0..4)
                .map(|_| char::from(b"abcdefghjkmnpqrs"[draws.below(16)]))
                .collect();
            let address = format!("https://{host}/{}/{page}", DOMAINS[domain]);
            response.push_str(&format!(" (Source: {address})"));
            source = (dress == Dress::Sourced).then_some(address);
        }
        Dress::Padded => {
            let seed = draws.below(1 << 32) as u64;
            while clover_ground::words::tokens(&response) < PADDED_TOKENS {
                response = Edit::Padding { percent: 180 }.apply(&response, seed);
            }
        }
    }
    Prose {
        prompt,
        response,
        source,
        call,
    }
}

/// Tokens that a padded response reaches.
const PADDED_TOKENS: u64 = 400;

fn terms(domain: usize, draws: &mut Draws) -> Vec<&'static str> {
    let mut terms = TERMS[domain].1.to_vec();
    for at in 0..ASKED {
        let other = at + draws.below(terms.len() - at);
        terms.swap(at, other);
    }
    terms.truncate(ASKED);
    terms
}

fn shuffle(items: &mut [String], draws: &mut Draws) {
    for at in (1..items.len()).rev() {
        items.swap(at, draws.below(at + 1));
    }
}

/// One paragraph, or a list under a heading.
fn layout(sentences: &[String], draws: &mut Draws) -> String {
    match draws.below(10) {
        0 => format!("## Answer\n\n- {}", sentences.join("\n- ")),
        1 => format!("**{}** {}", sentences[0], sentences[1..].join(" "))
            .trim_end()
            .to_owned(),
        _ => sentences.join(" "),
    }
}

#[cfg(test)]
mod tests {
    use clover_rubric::extract;

    use super::*;

    #[test]
    fn every_term_counts_as_content() {
        for (domain, terms) in TERMS {
            assert!(terms.windows(2).all(|pair| pair[0] < pair[1]), "{domain}");
            assert_eq!(
                extract::content_words(&terms.join(" ")).len(),
                terms.len(),
                "{domain}"
            );
        }
        let others: Vec<_> = PLAIN
            .iter()
            .chain(&DETAILED)
            .map(|said| extract::content_words(said))
            .collect();
        for term in TERMS.iter().flat_map(|(_, terms)| terms) {
            assert!(others.iter().all(|words| !words.contains(*term)), "{term}");
        }
    }
}
