//! Worlds: what is drawn for a row, and what is known of it.
//!
//! For a row, quality q ~ Beta(2,2) (the median of three uniforms). Its text covers terms of its prompt, so that the built-in
//! judge's own part of the score, the core c, is 0.7 q to the hundredth. Better answers name a source more often: with
//! probability q^2 (three rows in ten) it exists and the answer is worth 0.3 more. The label is
//! Y = clip(c + 0.3 sourced + 0.05 N(0,1)) in millionths. With the judge's citation bias the base score is b = c + 0.3 for
//! whatever is cited (and small unrelated noise), so judged rows are fair but for the fault: on a share of rows, all of
//! them in one slice, the response names a source that does not exist, or is padded, and b is 0.3 too high.
//! Anchors are rows like these, the fault among them at the same rate, of a policy somewhat worse and of one somewhat better:
//! for a fifth of their rows q is the least, or the largest, of the three. (Mending the fault moves the mean reward of
//! policies far from the logs by more than 0.01, and gate P5 then blocks the patch.) Source: CLOVER v1.1, section 5.

use std::fmt;
use std::str::FromStr;

use clover_event::id::ItemId;
use clover_event::id::PolicyId;
use clover_ground::seed::SeedTree;
use clover_ground::time::Timestamp;
use clover_num::Count;
use clover_num::Micro;
use clover_num::draws::Draws;
use clover_rubric::engine::Obligation;
use clover_rubric::engine::Rules;
use clover_rubric::engine::Verification;
use clover_rubric::evidence::Evidence;
use clover_rubric::extract;
use clover_rubric::extract::recorded::Check;
use clover_rubric::extract::recorded::Citations;
use clover_rubric::extract::recorded::Traces;
use clover_stats::distribution;
use serde::Deserialize;
use serde::Serialize;

use crate::judge::builtin;
use crate::simulate::prose;
use crate::simulate::prose::Dress;

/// What is wrong with the judge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// It pays for sources that do not exist.
    Citations,
    /// It pays for padding.
    Length,
    /// Nothing: whatever a patch does is worth nothing, or less.
    None,
}

impl Fault {
    /// Every one, alphabetical.
    pub const ALL: [Self; 3] = [Self::Citations, Self::Length, Self::None];

    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Citations => "citations",
            Self::Length => "length",
            Self::None => "none",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Fault {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|fault| fault.as_str() == text);
        found.ok_or_else(|| format!("expected one of {}", Self::ALL.map(Self::as_str).join(", ")))
    }
}

/// What a world is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setting {
    /// Rows of the confirm window.
    pub confirm_rows: u64,
    /// What is wrong with the judge.
    pub fault: Fault,
    /// Standard deviation of labels around what a response is worth, in millionths.
    pub label_noise_micro: Micro,
    /// Share of rows with the fault, in millionths.
    pub share_micro: Micro,
    /// Slices: 12 (three domains by four levels) or 4 (two by two).
    pub slices: u64,
    /// Rows of the window of fit and dev.
    pub window_rows: u64,
}

impl Default for Setting {
    /// 7,000 rows for fit and dev, 3,000 for confirm, 12 slices, 8 % of rows with a source that does not exist.
    fn default() -> Self {
        let micro = |value| Micro::new(value).unwrap_or_default();
        Self {
            confirm_rows: 3_000,
            fault: Fault::Citations,
            label_noise_micro: micro(50_000),
            share_micro: micro(80_000),
            slices: 12,
            window_rows: 7_000,
        }
    }
}

/// What is wrong with a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    /// Noise of labels.
    #[error("label_noise_micro: expected 0 to 500000")]
    Noise,
    /// Rows.
    #[error("window_rows and confirm_rows: expected 1 to 100000000 each")]
    Rows,
    /// Share of the fault.
    #[error("share_micro: expected 0 to 1000000, and no more than a slice holds")]
    Share,
    /// Slices.
    #[error("slices: expected 4 or 12")]
    Slices,
}

/// Which rows are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An anchor policy, a fifth of whose responses are poor.
    AnchorLow,
    /// An anchor policy, a fifth of whose responses are good.
    AnchorHigh,
    /// The data set.
    Base,
    /// Rows like those of the data set that are not in it.
    Fresh,
}

impl Kind {
    fn label(self) -> &'static str {
        match self {
            Self::AnchorHigh => "anchor_high",
            Self::AnchorLow => "anchor_low",
            Self::Base => "base",
            Self::Fresh => "fresh",
        }
    }
}

/// One simulated row with all that is known of it.
#[derive(Clone, Debug, PartialEq)]
pub struct SimulatedRow {
    /// Its item.
    pub item: ItemId,
    /// Its policy.
    pub policy: PolicyId,
    /// The prompt.
    pub prompt: String,
    /// The response.
    pub response: String,
    /// What the extractor finds.
    pub evidence: Evidence,
    /// b, the built-in judge's score.
    pub base: Micro,
    /// Y, the label.
    pub label: Micro,
    /// What the response is worth: the label's mean before it is clipped.
    pub worth: f64,
    /// Whether the judge is fooled by it.
    pub faulty: bool,
    /// Number of its slice.
    pub slice: usize,
    /// When its prompt was sampled.
    pub sampled_at: Timestamp,
    /// Address of a source that exists.
    pub source: Option<String>,
    /// A tool call that was made.
    pub call: Option<String>,
}

const LEVELS: [&str; 4] = ["basic", "common", "hard", "rare"];
/// Name and version of this world: another one draws other rows.
pub(super) const NAME: &str = "world/2";
/// Share of anchor rows that are poor, or good.
const APART: f64 = 0.2;
/// Start of the window: 1 March 2026, 00:00 UTC, in microseconds.
const START: i64 = 1_772_323_200_000_000;
/// Length of each window in seconds: fourteen days.
const WINDOW: i64 = 14 * 86_400;
/// Between the windows, in seconds: three days.
const GAP: i64 = 3 * 86_400;

/// A data set's world.
#[derive(Clone, Copy, Debug)]
pub struct World {
    setting: Setting,
    seed: SeedTree,
}

impl World {
    /// Checks a setting.
    ///
    /// # Errors
    /// [`SettingError`].
    pub fn new(setting: Setting, seed: u64) -> Result<Self, SettingError> {
        let rows = |rows: u64| (1..=100_000_000).contains(&rows);
        if !rows(setting.window_rows) || !rows(setting.confirm_rows) {
            return Err(SettingError::Rows);
        }
        if !(0..=500_000).contains(&setting.label_noise_micro.value()) {
            return Err(SettingError::Noise);
        }
        let slices = match setting.slices {
            4 => 4,
            12 => 12,
            _ => return Err(SettingError::Slices),
        };
        if !(0..=1_000_000 / slices)
            .contains(&(setting.share_micro.value() * i64::from(setting.fault != Fault::None)))
        {
            return Err(SettingError::Share);
        }
        Ok(Self {
            setting,
            seed: SeedTree::of_number(seed).child("simulate").child(NAME),
        })
    }

    /// A world like this one whose rows are all drawn anew, by number.
    #[must_use]
    pub fn again(&self, number: u64) -> Self {
        let seed = self.seed.child("again").child(&number.to_string());
        Self { seed, ..*self }
    }

    /// Its setting.
    pub fn setting(&self) -> &Setting {
        &self.setting
    }

    /// Rows of the data set: those of the window first, then those of confirm.
    pub fn rows(&self) -> u64 {
        self.setting.window_rows + self.setting.confirm_rows
    }

    fn levels(&self) -> usize {
        if self.setting.slices == 4 { 2 } else { 4 }
    }

    /// How many slices.
    pub fn slices(&self) -> usize {
        if self.setting.slices == 4 { 4 } else { 12 }
    }

    /// Domains that its rows are of.
    pub fn domains(&self) -> &'static [&'static str] {
        &prose::DOMAINS[..self.slices() / self.levels()]
    }

    /// Dimensions of a slice: domain and level.
    pub fn slice(&self, slice: usize) -> (&'static str, &'static str) {
        (
            prose::DOMAINS[slice / self.levels()],
            LEVELS[slice % self.levels()],
        )
    }

    /// The slice with the fault: the last.
    pub fn faulty_slice(&self) -> usize {
        self.slices() - 1
    }

    /// End of the window of fit and dev, start and end of confirm.
    pub fn times(&self) -> (Timestamp, Timestamp, Timestamp) {
        let start = Timestamp::from_micros(START).unwrap_or(Timestamp::EPOCH);
        let t1 = start.plus_seconds(WINDOW);
        (t1, t1.plus_seconds(GAP), t1.plus_seconds(GAP + WINDOW))
    }

    fn sampled_at(&self, kind: Kind, number: u64) -> Timestamp {
        let start = Timestamp::from_micros(START).unwrap_or(Timestamp::EPOCH);
        let window = self.setting.window_rows;
        let share = |at: u64, of: u64| {
            let at = u128::from(at) * u128::from(WINDOW.unsigned_abs()) / u128::from(of);
            i64::try_from(at).unwrap_or(0)
        };
        match kind {
            Kind::Base if number >= window => {
                let late = share(number - window, self.setting.confirm_rows);
                start.plus_seconds(WINDOW + GAP + late)
            }
            Kind::Base => start.plus_seconds(share(number, window)),
            _ => start,
        }
    }

    /// What is known of sources: those that exist are listed one by one, so the list of a data set is what its rows name.
    pub fn citations<'a>(rows: impl IntoIterator<Item = &'a SimulatedRow>) -> Citations {
        let known = rows
            .into_iter()
            .filter_map(|row| row.source.as_deref())
            .map(|source| {
                let check = Check {
                    resolved: Some(true),
                    supports: Some(true),
                };
                (Citations::key(source), check)
            });
        Citations {
            complete: true,
            known: known.collect(),
        }
    }

    /// Row `number` of a kind.
    #[expect(clippy::missing_panics_doc, reason = "a `BUG:` states what cannot be")]
    pub fn row(&self, kind: Kind, number: u64) -> SimulatedRow {
        let stream = usize::try_from(number).expect("BUG: row numbers are small");
        let mut draws = Draws::of(self.seed.child(kind.label()).seed(), stream);
        let slice = draws.below(self.slices());
        let mut three = [draws.uniform(), draws.uniform(), draws.uniform()];
        three.sort_by(f64::total_cmp);
        let apart = draws.uniform() < APART;
        let quality = match kind {
            Kind::AnchorLow if apart => three[0],
            Kind::AnchorHigh if apart => three[2],
            _ => three[1],
        };
        let dress = self.dress(quality, slice, &mut draws);
        let (covered, detailed) = amounts(quality, &mut draws);
        let noise = distribution::normal_quantile(
            (draws.uniform() + 0.5 / (1_u64 << 53) as f64).min(1.0 - f64::EPSILON),
        );
        let domain = slice / self.levels();
        let text = prose::write(domain, covered, detailed, dress, &mut draws);
        let core = micro_of(covered, detailed) as f64 / 1e6;
        let worth = core + if dress == Dress::Sourced { 0.3 } else { 0.0 };
        let label = worth + self.setting.label_noise_micro.value() as f64 / 1e6 * noise;
        let evidence = read(&text);
        SimulatedRow {
            item: ItemId::new(format!("{}-{number:06}", kind.label()))
                .expect("BUG: a name and digits"),
            policy: PolicyId::new(if kind == Kind::Fresh {
                "base"
            } else {
                kind.label()
            })
            .expect("BUG: a name"),
            base: builtin::score(&text.prompt, &text.response, &evidence),
            evidence,
            label: rounded(label.clamp(0.0, 1.0)),
            worth,
            faulty: matches!(dress, Dress::Faked | Dress::Padded),
            slice,
            sampled_at: self.sampled_at(kind, number),
            prompt: text.prompt,
            response: text.response,
            source: text.source,
            call: text.call,
        }
    }

    fn dress(&self, quality: f64, slice: usize, draws: &mut Draws) -> Dress {
        let (fault, sourced) = (draws.uniform(), draws.uniform() < quality * quality);
        let share = self.setting.share_micro.value() as f64 / 1e6 * self.slices() as f64;
        let faulty = slice == self.faulty_slice() && fault < share;
        match self.setting.fault {
            Fault::Citations if faulty => Dress::Faked,
            Fault::Length if faulty => Dress::Padded,
            _ if sourced => Dress::Sourced,
            _ => Dress::Plain,
        }
    }

    /// The rubric that the data set starts from, as rules: it leaves the fault open and closes the other one.
    pub fn rules(&self) -> Rules {
        let is_length = self.setting.fault == Fault::Length;
        Self::with(!is_length, is_length)
    }

    /// The same with the named patch: the fault is closed as well. Without a fault, the penalty on false sources is.
    pub fn patched_rules(&self) -> Rules {
        Self::with(true, true)
    }

    fn with(capped: bool, verified: bool) -> Rules {
        let verification = verified.then(|| Verification {
            allowed_domains: prose::LISTED.map(str::to_owned).into(),
            mismatch_penalty: Micro::new(300_000).unwrap_or_default(),
        });
        let obligation = Obligation {
            verification,
            ..Obligation::default()
        };
        let (tokens, cap) = if capped {
            (200, 250_000)
        } else {
            (5_000, 900_000)
        };
        Rules {
            length_bias_cap: Some((tokens, Micro::new(cap).unwrap_or_default())),
            obligations: [("factual_adequacy".to_owned(), obligation)].into(),
            tool_trace_consistency: true,
            ..Rules::default()
        }
    }
}

/// Evidence of a row under what is known of its own source and tool call.
fn read(text: &prose::Prose) -> Evidence {
    let check = Check {
        resolved: Some(true),
        supports: Some(true),
    };
    let known = text
        .source
        .iter()
        .map(|source| (Citations::key(source), check));
    let citations = Citations {
        complete: true,
        known: known.collect(),
    };
    let traces = Traces::of(text.call.as_deref());
    extract::extract(&extract::Source {
        prompt: &text.prompt,
        response: &text.response,
        citations: Some(&citations),
        traces: Some(&traces),
        facts: None,
    })
}

/// Terms covered and sentences with a digit whose worth comes closest to 0.7 q, over one of three drawn counts of terms.
fn amounts(quality: f64, draws: &mut Draws) -> (usize, usize) {
    let target = 700_000.0 * quality;
    let near = whole(target / 70_000.0) + below(3, draws) - 1;
    let covered = near.clamp(0, 10);
    let rest = target - (covered * builtin::COVERAGE / 10) as f64;
    let detailed = whole(rest / builtin::DETAIL as f64).clamp(0, covered);
    (
        usize::try_from(covered).unwrap_or(0),
        usize::try_from(detailed).unwrap_or(0),
    )
}

/// Uniform on 0 to `count - 1`.
fn below(count: usize, draws: &mut Draws) -> i64 {
    i64::try_from(draws.below(count)).unwrap_or(0)
}

/// The nearest integer.
#[expect(
    clippy::cast_possible_truncation,
    reason = "what is rounded here lies within a million"
)]
fn whole(value: f64) -> i64 {
    value.round() as i64
}

/// The judge's own part of the score, in millionths.
fn micro_of(covered: usize, detailed: usize) -> i64 {
    let count = |value: usize| i64::try_from(value).unwrap_or(0);
    builtin::COVERAGE * count(covered) / 10 + builtin::DETAIL * count(detailed)
}

fn rounded(value: f64) -> Micro {
    Micro::new(whole(value * 1e6)).unwrap_or_default()
}

/// The draw of every simulated row.
pub(super) const DRAW: u64 = 0;

impl SimulatedRow {
    /// Its draw.
    #[expect(clippy::missing_panics_doc, reason = "a `BUG:` states what cannot be")]
    pub fn draw(&self) -> Count {
        Count::new(DRAW).expect("BUG: 0 is a count")
    }
}
