//! The engine: a rubric's [`Rules`] over one raw answer. Total, exact, and the same everywhere.
//!
//! 1. Obligations, by name, subtract penalties. Bad or missing sources cost once, never per citation, so that
//!    good citations cannot dilute a bad one.
//! 2. The score is cut off at 0.
//! 3. Guards cap it.
//! 4. Abstention only flags: the number stays, and a statistic that dropped flagged items could be gamed.
//!
//! A finding that an active rule needs and that was never checked gives [`EngineError::EvidenceMissing`];
//! it is never taken for false. What other findings decide already needs no such finding: an off-list host
//! is bad whether or not anybody looked it up. Arithmetic is in integer millionths.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use clover_num::Micro;

use super::evidence::Citation;
use super::evidence::Evidence;
use super::evidence::Feature;
use super::evidence::is_under;

/// Algorithm and version.
pub const ALGORITHM: &str = "rubric_engine/1";
/// Cap when claimed tool results are not borne out, in millionths.
pub const TOOL_TRACE_MAX: i64 = 400_000;
/// Penalty of an obligation that states none, in millionths.
pub const PENALTY: i64 = 100_000;
/// The same for `be_concise_by_default`.
pub const CONCISE_PENALTY: i64 = 50_000;

/// What a rubric asks of an answer, ready to run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// Topics on which an answer without critical information abstains.
    pub abstain_on: BTreeSet<String>,
    /// Cap on a confident answer that is wrong.
    pub confident_but_wrong_max: Option<Micro>,
    /// Cap on a long answer: (tokens above which it holds, the cap).
    pub length_bias_cap: Option<(u64, Micro)>,
    /// Obligations by name.
    pub obligations: BTreeMap<String, Obligation>,
    /// Whether claimed tool results have to be borne out.
    pub tool_trace_consistency: bool,
}

/// One obligation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Obligation {
    /// `be_concise_by_default`
    pub concise: bool,
    /// What a requirement that is not met costs; the defaults when `None`.
    pub penalty: Option<Micro>,
    /// `false` switches the requirements off; `true` makes sources mandatory where `verification` stands.
    pub required: Option<bool>,
    /// Features that have to be there.
    pub requires: BTreeSet<Feature>,
    /// Sources that count, and what a bad or missing one costs.
    pub verification: Option<Verification>,
}

/// Which sources count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verification {
    /// Hosts that count, with all below them.
    pub allowed_domains: BTreeSet<String>,
    /// Subtracted once.
    pub mismatch_penalty: Micro,
}

/// What the engine says of one raw answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineScore {
    /// The score, 0 to 1.
    pub score: Micro,
    /// Whether the judge abstains; the score stays.
    pub abstain: bool,
    /// Rules whose condition held, in the order in which they were asked.
    pub trace: Vec<RuleFiring>,
}

/// A rule whose condition held, even where it changed nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleFiring {
    /// Path of the rule in the rubric.
    pub path: String,
    /// The score before it.
    pub before: Micro,
    /// The score after it; below 0 until all obligations were asked.
    pub after: Micro,
}

/// Why there is no score.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// The base score lies outside 0 to 1.
    #[error("expected a base score from 0 to 1, found {0}")]
    Base(Micro),
    /// An active rule needs a finding that was never checked: the item needs a new raw score.
    #[error("{path} needs {finding}, which was never checked")]
    EvidenceMissing {
        /// Path of the rule.
        path: String,
        /// Key of the record.
        finding: &'static str,
    },
}

impl Rules {
    /// Score, abstention and trace of a raw answer.
    ///
    /// # Errors
    /// [`EngineError`].
    pub fn score(&self, base: Micro, evidence: &Evidence) -> Result<EngineScore, EngineError> {
        if !(0..=1_000_000).contains(&base.value()) {
            return Err(EngineError::Base(base));
        }
        let mut run = ScoreInProgress {
            score: base.value(),
            trace: Vec::new(),
        };
        for (name, obligation) in &self.obligations {
            obligation.ask(name, evidence, &mut run)?;
        }
        run.score = run.score.max(0);
        self.guard(evidence, &mut run)?;
        let abstain =
            evidence.critical_info_missing && !evidence.topics.is_disjoint(&self.abstain_on);
        if abstain {
            run.fire("abstention.triggers".to_owned(), run.score);
        }
        Ok(EngineScore {
            score: micro(run.score),
            abstain,
            trace: run.trace,
        })
    }

    fn guard(&self, evidence: &Evidence, run: &mut ScoreInProgress) -> Result<(), EngineError> {
        if let Some((tokens, max)) = self.length_bias_cap
            && evidence.tokens.value() > tokens
        {
            run.cap("guards.length_bias_cap.max_raw_score", max.value());
        }
        if self.tool_trace_consistency && evidence.tool_trace_claims > evidence.tool_trace_matches {
            run.cap("guards.tool_trace_consistency", TOOL_TRACE_MAX);
        }
        if let Some(max) = self.confident_but_wrong_max
            && evidence.confident
        {
            let path = "guards.confident_but_wrong_max";
            match evidence.factual_error {
                Some(true) => run.cap(path, max.value()),
                Some(false) => {}
                None => return Err(missing(path.to_owned(), "factual_error")),
            }
        }
        Ok(())
    }
}

impl Obligation {
    fn ask(
        &self,
        name: &str,
        evidence: &Evidence,
        run: &mut ScoreInProgress,
    ) -> Result<(), EngineError> {
        let path = |leaf: &str| format!("obligations.{name}.{leaf}");
        if let Some(verification) = &self.verification {
            let required = self.required == Some(true);
            if verification.bad(name, &evidence.citations)? {
                let path = path("verification.mismatch_penalty");
                run.subtract(path, verification.mismatch_penalty.value());
            } else if required && evidence.needs_evidence && evidence.citations.is_empty() {
                run.subtract(path("required"), verification.mismatch_penalty.value());
            }
        }
        if self.required == Some(false) {
            return Ok(());
        }
        let penalty = |default| self.penalty.map_or(default, Micro::value);
        if self.concise && !evidence.concise {
            run.subtract(path("be_concise_by_default"), penalty(CONCISE_PENALTY));
        }
        for feature in &self.requires {
            let leaf = || path(&format!("requires_{}", feature.name()));
            match evidence.feature(*feature) {
                Some(true) => {}
                Some(false) => run.subtract(leaf(), penalty(PENALTY)),
                None => return Err(missing(leaf(), feature.name())),
            }
        }
        Ok(())
    }
}

impl Verification {
    /// Whether some citation is bad.
    fn bad(&self, name: &str, citations: &[Citation]) -> Result<bool, EngineError> {
        let mut unknown = None;
        for cited in citations {
            match self.judge(cited) {
                Ok(true) => {}
                Ok(false) => return Ok(true),
                Err(finding) => unknown = Some(finding),
            }
        }
        match unknown {
            None => Ok(false),
            Some(finding) => {
                let path = format!("obligations.{name}.verification.allowed_domains");
                Err(missing(path, finding))
            }
        }
    }

    /// Whether a citation is good, or what nobody checked of it.
    fn judge(&self, cited: &Citation) -> Result<bool, &'static str> {
        let listed = |domain: &String| is_under(&cited.domain, domain);
        if !self.allowed_domains.iter().any(listed) {
            return Ok(false);
        }
        match (cited.resolved, cited.supports) {
            (Some(false), _) | (_, Some(false)) => Ok(false),
            (None, _) => Err("citations.resolved"),
            (_, None) => Err("citations.supports"),
            (Some(true), Some(true)) => Ok(true),
        }
    }
}

/// A score on its way.
struct ScoreInProgress {
    score: i64,
    trace: Vec<RuleFiring>,
}

impl ScoreInProgress {
    fn fire(&mut self, path: String, after: i64) {
        self.trace.push(RuleFiring {
            path,
            before: micro(self.score),
            after: micro(after),
        });
        self.score = after;
    }

    fn subtract(&mut self, path: String, penalty: i64) {
        self.fire(path, self.score.saturating_sub(penalty).max(-Micro::MAX));
    }

    fn cap(&mut self, path: &str, max: i64) {
        self.fire(path.to_owned(), self.score.min(max));
    }
}

fn missing(path: String, finding: &'static str) -> EngineError {
    EngineError::EvidenceMissing { path, finding }
}

fn micro(millionths: i64) -> Micro {
    Micro::new(millionths).expect("BUG: from 1 down to the least of all")
}

#[cfg(test)]
mod tests {
    use clover_num::Count;

    use super::*;

    fn m(millionths: i64) -> Micro {
        Micro::new(millionths).unwrap()
    }

    fn cited(domain: &str, resolved: Option<bool>, supports: Option<bool>) -> Citation {
        Citation {
            domain: domain.to_owned(),
            resolved,
            supports,
        }
    }

    /// The example rubric of CLOVER v1.1, appendix B.
    fn rules() -> Rules {
        let obligation = |requires: &[Feature]| Obligation {
            requires: requires.iter().copied().collect(),
            ..Obligation::default()
        };
        let mut obligations = BTreeMap::from([
            (
                "reasoning_quality".to_owned(),
                obligation(&[Feature::CounterPosition]),
            ),
            (
                "risk_accounting".to_owned(),
                obligation(&[Feature::Stakeholders]),
            ),
        ]);
        obligations.insert(
            "factual_adequacy".to_owned(),
            Obligation {
                required: Some(true),
                verification: Some(Verification {
                    allowed_domains: ["nih.gov", "who.int"].map(str::to_owned).into(),
                    mismatch_penalty: m(350_000),
                }),
                ..Obligation::default()
            },
        );
        obligations.insert(
            "usefulness".to_owned(),
            Obligation {
                concise: true,
                ..Obligation::default()
            },
        );
        Rules {
            abstain_on: ["medical dosing".to_owned()].into(),
            confident_but_wrong_max: Some(m(400_000)),
            length_bias_cap: Some((500, m(500_000))),
            obligations,
            tool_trace_consistency: true,
        }
    }

    /// A record against which no rule of [`rules`] has anything.
    fn good() -> Evidence {
        Evidence {
            concise: true,
            counter_position: true,
            stakeholders: true,
            ..Evidence::default()
        }
    }

    /// Score and fired paths.
    fn run(evidence: &Evidence) -> (i64, Vec<String>) {
        let scored = rules().score(m(900_000), evidence).unwrap();
        let paths = scored.trace.into_iter().map(|fired| fired.path).collect();
        (scored.score.value(), paths)
    }

    #[test]
    fn obligations_subtract_once_and_by_name() {
        assert_eq!(run(&good()), (900_000, vec![]));
        let mut evidence = good();
        evidence.citations = vec![
            cited("nih.gov", Some(true), Some(true)),
            cited("spam.example", None, None),
            cited("spam.example", Some(false), None),
        ];
        let mismatch = "obligations.factual_adequacy.verification.mismatch_penalty";
        assert_eq!(run(&evidence), (550_000, vec![mismatch.to_owned()]));
        evidence.citations = vec![cited("who.int", Some(true), Some(false))];
        assert_eq!(run(&evidence).0, 550_000);
        evidence.citations.clear();
        evidence.needs_evidence = true;
        let required = "obligations.factual_adequacy.required";
        assert_eq!(run(&evidence), (550_000, vec![required.to_owned()]));
        // source: 0.9 - 0.1 - 0.1 - 0.05 by the defaults.
        let evidence = Evidence::default();
        let expected = [
            "obligations.reasoning_quality.requires_counter_position",
            "obligations.risk_accounting.requires_stakeholders",
            "obligations.usefulness.be_concise_by_default",
        ];
        assert_eq!(
            run(&evidence),
            (650_000, expected.map(str::to_owned).to_vec())
        );
    }

    #[test]
    fn the_score_is_cut_off_before_guards_cap_it() {
        let mut evidence = Evidence {
            needs_evidence: true,
            ..Evidence::default()
        };
        let scored = rules().score(m(300_000), &evidence).unwrap();
        assert_eq!(scored.score.value(), 0);
        assert_eq!(scored.trace.last().unwrap().after.value(), -300_000);
        evidence = good();
        evidence.tokens = Count::new(501).unwrap();
        let cap = "guards.length_bias_cap.max_raw_score".to_owned();
        assert_eq!(run(&evidence), (500_000, vec![cap.clone()]));
        evidence.tool_trace_claims = Count::new(1).unwrap();
        let trace = "guards.tool_trace_consistency".to_owned();
        assert_eq!(run(&evidence), (400_000, vec![cap, trace]));
        evidence.tokens = Count::new(500).unwrap();
        evidence.tool_trace_matches = Count::new(1).unwrap();
        assert_eq!(run(&evidence), (900_000, vec![]));
        evidence.confident = true;
        evidence.factual_error = Some(true);
        assert_eq!(run(&evidence).0, 400_000);
    }

    #[test]
    fn abstention_flags_and_keeps_the_number() {
        let mut evidence = good();
        evidence.topics = ["medical dosing".to_owned()].into();
        assert!(!rules().score(m(900_000), &evidence).unwrap().abstain);
        evidence.critical_info_missing = true;
        let scored = rules().score(m(900_000), &evidence).unwrap();
        assert!(scored.abstain);
        assert_eq!(scored.score.value(), 900_000);
        assert_eq!(scored.trace[0].path, "abstention.triggers");
    }

    #[test]
    fn what_nobody_checked_is_missing_only_where_it_decides() {
        let missing = |evidence: &Evidence| rules().score(m(900_000), evidence).unwrap_err();
        let mut evidence = good();
        evidence.confident = true;
        assert_eq!(
            missing(&evidence).to_string(),
            "guards.confident_but_wrong_max needs factual_error, which was never checked"
        );
        evidence.confident = false;
        assert_eq!(run(&evidence).0, 900_000);
        evidence.citations = vec![cited("nih.gov", None, Some(true))];
        assert!(
            missing(&evidence)
                .to_string()
                .contains("citations.resolved")
        );
        evidence.citations = vec![cited("nih.gov", Some(true), None)];
        assert!(
            missing(&evidence)
                .to_string()
                .contains("citations.supports")
        );
        evidence.citations.push(cited("spam.example", None, None));
        assert_eq!(run(&evidence).0, 550_000);
        assert!(matches!(
            rules().score(m(1_000_001), &good()),
            Err(EngineError::Base(_))
        ));
    }

    #[test]
    fn an_obligation_can_be_switched_off() {
        let mut rules = rules();
        let obligation = rules.obligations.get_mut("risk_accounting").unwrap();
        obligation.penalty = Some(m(200_000));
        let mut evidence = good();
        evidence.stakeholders = false;
        assert_eq!(
            rules.score(m(900_000), &evidence).unwrap().score,
            m(700_000)
        );
        rules
            .obligations
            .get_mut("risk_accounting")
            .unwrap()
            .required = Some(false);
        assert_eq!(
            rules.score(m(900_000), &evidence).unwrap().score,
            m(900_000)
        );
    }

    proptest::proptest! {
        /// Any raw answer has a score, and a lower cap never raises it.
        #[test]
        fn the_engine_is_total_and_monotone_in_its_caps(
            base in 0_i64..=1_000_000,
            caps in (0_i64..=1_000_000, 0_i64..=1_000_000, 0_i64..=1_000_000, 0_i64..=1_000_000),
            flags in proptest::array::uniform7(proptest::bool::ANY),
            tokens in 0_u64..1000,
            claims in 0_u64..3,
        ) {
            let evidence = Evidence {
                concise: flags[0],
                confident: flags[1],
                counter_position: flags[2],
                factual_error: Some(flags[3]),
                needs_evidence: flags[4],
                stakeholders: flags[5],
                critical_info_missing: flags[6],
                tokens: Count::new(tokens).unwrap(),
                tool_trace_claims: Count::new(claims).unwrap(),
                ..Evidence::default()
            };
            let score = |length, wrong| {
                let mut rules = rules();
                rules.length_bias_cap = Some((500, m(length)));
                rules.confident_but_wrong_max = Some(m(wrong));
                rules.score(m(base), &evidence).unwrap().score
            };
            let low = score(caps.0.min(caps.1), caps.2.min(caps.3));
            let high = score(caps.0.max(caps.1), caps.2.max(caps.3));
            proptest::prop_assert!(low <= high && m(0) <= low && high <= m(base));
        }
    }
}
