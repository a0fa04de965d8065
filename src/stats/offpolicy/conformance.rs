//! Whether teacher-forced log-probabilities keep their contract (CJE paper, appendix E.2), and what filtering them cost.

use std::collections::BTreeMap;

use clover_num::math;

/// What is demanded of every row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Contract<'a> {
    /// How far repeated calls may differ, in nats.
    pub determinism: f64,
    /// How far sums may differ, in nats per 1 + |sum|.
    pub additivity: f64,
    /// The template's hash; `None` where none was pinned.
    pub template: Option<&'a str>,
    /// The tokenizer's hash; `None` where none was pinned.
    pub tokenizer: Option<&'a str>,
}

impl Contract<'_> {
    /// Determinism 1e-7 (appendix E.2), additivity 1e-6, nothing pinned.
    pub const DEFAULT: Self = Self {
        determinism: 1e-7,
        additivity: 1e-6,
        template: None,
        tokenizer: None,
    };
}

/// One teacher-forced row; what the source did not return is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TeacherForced<'a> {
    /// ln p(A | X).
    pub total: f64,
    /// ln p of each token of A.
    pub per_token: Option<&'a [f64]>,
    /// Tokens of A, where they are counted apart.
    pub tokens: Option<usize>,
    /// ln p(X).
    pub prompt: Option<f64>,
    /// ln p(X + A).
    pub whole: Option<f64>,
    /// Totals of identical calls.
    pub repeats: Option<&'a [f64]>,
    /// Whether each token was masked.
    pub mask: Option<&'a [bool]>,
    /// Whether probabilities were renormalised after masking.
    pub renormalised: Option<bool>,
    /// Hash of the chat template that was used.
    pub template: Option<&'a str>,
    /// Hash of the tokenizer that was used.
    pub tokenizer: Option<&'a str>,
}

/// One clause of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Aspect {
    /// Every number is finite.
    Finite,
    /// No log-probability is above 0.
    Sign,
    /// The total is the sum of the tokens.
    TokenSum,
    /// There are as many token log-probabilities as tokens.
    TokenCount,
    /// ln p(X + A) = ln p(X) + ln p(A | X).
    Additivity,
    /// Identical calls agree.
    Determinism,
    /// Mask bits cover the tokens, none is masked, nothing was renormalised.
    Masking,
    /// The template is the pinned one.
    Template,
    /// The tokenizer is the pinned one.
    Tokenizer,
}

impl Aspect {
    /// All, in the order in which a row is judged.
    pub const ALL: [Self; 9] = [
        Self::Finite,
        Self::Sign,
        Self::TokenSum,
        Self::TokenCount,
        Self::Additivity,
        Self::Determinism,
        Self::Masking,
        Self::Template,
        Self::Tokenizer,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Finite => "finite",
            Self::Sign => "sign",
            Self::TokenSum => "token-sum",
            Self::TokenCount => "token-count",
            Self::Additivity => "additivity",
            Self::Determinism => "determinism",
            Self::Masking => "masking",
            Self::Template => "template",
            Self::Tokenizer => "tokenizer",
        }
    }
}

/// What judging one clause came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClauseFinding {
    /// It holds.
    Holds,
    /// It does not; the row is discarded.
    Broken,
    /// The source returned nothing to judge it by.
    NotChecked,
}

/// The findings on one row, in the order of [`Aspect::ALL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conformance([ClauseFinding; 9]);

impl Conformance {
    /// Findings with what they are about.
    pub fn findings(&self) -> impl Iterator<Item = (Aspect, ClauseFinding)> + '_ {
        Aspect::ALL.into_iter().zip(self.0)
    }

    /// The first clause that is broken: the row's place in the filter ledger.
    pub fn broken(&self) -> Option<Aspect> {
        self.findings()
            .find(|(_, finding)| *finding == ClauseFinding::Broken)
            .map(|(aspect, _)| aspect)
    }
}

/// Judges one row.
pub fn conforms(row: &TeacherForced<'_>, contract: &Contract<'_>) -> Conformance {
    Conformance(Aspect::ALL.map(|aspect| finding(aspect, row, contract)))
}

/// Holds or broken, where there was something to judge.
fn judged(holds: Option<bool>) -> ClauseFinding {
    match holds {
        Some(true) => ClauseFinding::Holds,
        Some(false) => ClauseFinding::Broken,
        None => ClauseFinding::NotChecked,
    }
}

/// Every log-probability that the row names.
fn numbers<'a>(row: &'a TeacherForced<'a>) -> impl Iterator<Item = f64> + 'a {
    let lists = [row.per_token, row.repeats].into_iter().flatten().flatten();
    let single = [Some(row.total), row.prompt, row.whole]
        .into_iter()
        .flatten();
    single.chain(lists.copied())
}

fn finding(aspect: Aspect, row: &TeacherForced<'_>, contract: &Contract<'_>) -> ClauseFinding {
    // A comparison with NaN is false, which breaks the clause.
    let near = |a: f64, b: f64, within: f64| (a - b).abs() <= within;
    match aspect {
        Aspect::Finite => judged(Some(numbers(row).all(f64::is_finite))),
        Aspect::Sign => judged(Some(numbers(row).all(|value| value <= 0.0))),
        Aspect::TokenSum => judged(row.per_token.map(|tokens| {
            let slack = contract.additivity * (1.0 + row.total.abs());
            near(math::sum(tokens), row.total, slack)
        })),
        Aspect::TokenCount => {
            let both = row.per_token.zip(row.tokens);
            judged(both.map(|(tokens, count)| tokens.len() == count))
        }
        Aspect::Additivity => judged(row.prompt.zip(row.whole).map(|(prompt, whole)| {
            let slack = contract.additivity * (1.0 + whole.abs());
            near(whole, prompt + row.total, slack)
        })),
        Aspect::Determinism => {
            let repeats = row.repeats.filter(|repeats| !repeats.is_empty());
            let same = |total: &f64| near(*total, row.total, contract.determinism);
            judged(repeats.map(|repeats| repeats.iter().all(same)))
        }
        Aspect::Masking => {
            let covered = row.mask.map(|mask| {
                let length = row.per_token.map(<[f64]>::len).or(row.tokens);
                mask.iter().all(|masked| !masked) && length.is_none_or(|n| n == mask.len())
            });
            match (covered, row.renormalised) {
                (None, None) => ClauseFinding::NotChecked,
                (covered, renormalised) => judged(Some(
                    covered.unwrap_or(true) && !renormalised.unwrap_or(false),
                )),
            }
        }
        Aspect::Template => pinned(contract.template, row.template),
        Aspect::Tokenizer => pinned(contract.tokenizer, row.tokenizer),
    }
}

/// A pinned hash must be named and equal; without a pin nothing is checked.
fn pinned(wanted: Option<&str>, found: Option<&str>) -> ClauseFinding {
    judged(wanted.map(|wanted| found == Some(wanted)))
}

/// The filter ledger: rows in, rows kept, and each discarded row under the first clause that it broke.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilterCounts {
    /// Rows judged.
    pub rows: usize,
    /// Rows kept.
    pub kept: usize,
    /// Rows without a log-probability at all.
    pub missing: usize,
    /// Discarded rows by clause.
    pub broken: BTreeMap<Aspect, usize>,
    /// Kept rows for which a clause could not be checked.
    pub not_checked: BTreeMap<Aspect, usize>,
}

impl FilterCounts {
    /// Counts one row and says whether it is kept; `None` is a row without log-probabilities.
    pub fn add(&mut self, row: Option<&Conformance>) -> bool {
        self.rows += 1;
        let Some(row) = row else {
            self.missing += 1;
            return false;
        };
        if let Some(aspect) = row.broken() {
            *self.broken.entry(aspect).or_default() += 1;
            return false;
        }
        self.kept += 1;
        for (aspect, finding) in row.findings() {
            if finding == ClauseFinding::NotChecked {
                *self.not_checked.entry(aspect).or_default() += 1;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // source: by hand; their sum is -1.75.
    const TOKENS: [f64; 3] = [-1.0, -0.5, -0.25];

    fn whole() -> TeacherForced<'static> {
        TeacherForced {
            total: -1.75,
            per_token: Some(&TOKENS),
            tokens: Some(3),
            prompt: Some(-10.0),
            whole: Some(-11.75),
            repeats: Some(&[-1.75, -1.75]),
            mask: Some(&[false; 3]),
            renormalised: Some(false),
            template: Some("t1"),
            tokenizer: Some("k1"),
        }
    }

    const PINNED: Contract<'static> = Contract {
        template: Some("t1"),
        tokenizer: Some("k1"),
        ..Contract::DEFAULT
    };

    #[test]
    fn a_row_that_keeps_its_contract_is_kept() {
        let found = conforms(&whole(), &PINNED);
        assert!(
            found
                .findings()
                .all(|(_, finding)| finding == ClauseFinding::Holds)
        );
        let bare = TeacherForced {
            total: -3.0,
            ..TeacherForced::default()
        };
        let found = conforms(&bare, &Contract::DEFAULT);
        let held = found
            .findings()
            .filter(|(_, f)| *f == ClauseFinding::Holds)
            .count();
        assert_eq!((held, found.broken()), (2, None));
        assert_eq!(conforms(&bare, &PINNED).broken(), Some(Aspect::Template));
    }

    #[test]
    fn each_clause_breaks_by_itself() {
        type Change = fn(&mut TeacherForced<'static>);
        let cases: [(Change, Aspect); 12] = [
            (|row| row.total = f64::NAN, Aspect::Finite),
            (|row| row.prompt = Some(f64::NEG_INFINITY), Aspect::Finite),
            (|row| row.prompt = Some(0.5), Aspect::Sign),
            (|row| row.total = -1.7, Aspect::TokenSum),
            (|row| row.tokens = Some(4), Aspect::TokenCount),
            (|row| row.whole = Some(-11.0), Aspect::Additivity),
            (|row| row.repeats = Some(&[-1.750_001]), Aspect::Determinism),
            (
                |row| row.mask = Some(&[false, true, false]),
                Aspect::Masking,
            ),
            (|row| row.mask = Some(&[false]), Aspect::Masking),
            (|row| row.renormalised = Some(true), Aspect::Masking),
            (|row| row.template = Some("latest"), Aspect::Template),
            (|row| row.tokenizer = None, Aspect::Tokenizer),
        ];
        for (change, aspect) in cases {
            let mut row = whole();
            change(&mut row);
            assert_eq!(conforms(&row, &PINNED).broken(), Some(aspect), "{row:?}");
        }
    }

    #[test]
    fn the_ledger_adds_up() {
        let mut counts = FilterCounts::default();
        assert!(counts.add(Some(&conforms(&whole(), &PINNED))));
        assert!(!counts.add(None));
        let high = TeacherForced {
            total: 0.5,
            ..TeacherForced::default()
        };
        assert!(!counts.add(Some(&conforms(&high, &Contract::DEFAULT))));
        let bare = TeacherForced {
            total: -0.5,
            ..TeacherForced::default()
        };
        assert!(counts.add(Some(&conforms(&bare, &Contract::DEFAULT))));
        let dropped: usize = counts.broken.values().sum();
        assert_eq!(
            (counts.rows, counts.kept, counts.missing, dropped),
            (4, 2, 1, 1)
        );
        assert_eq!(counts.broken.get(&Aspect::Sign), Some(&1));
        assert_eq!(counts.not_checked.len(), 7);
    }
}
