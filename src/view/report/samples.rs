//! Samples that an auditor draws from the population behind each criterion: fixed by a seed, so that anybody draws the
//! same again, and nobody picks.
//!
//! An entry's rank is SHA-256("clover/audit-sample/v1" 0x00 seed 0x00 code 0x00 event id), the id as its 32 bytes. Those of
//! lowest rank are drawn. The seed is a word of the auditor's, else the root of the log at its last entry: whoever writes
//! the log could try entries until that one pleases, and a word that comes from outside cannot be tried.

use std::collections::BTreeMap;
use std::collections::BinaryHeap;

use crate::event::Kind;
use crate::event::id::ExperimentId;
use crate::ground::digest::Digest;
use crate::ground::time::Timestamp;
use crate::ledger::LedgerError;
use crate::projection::bundle::Cell;
use crate::projection::bundle::Table;
use crate::report::document::Chapter;
use crate::report::document::ReportKind;
use crate::session::chronicle;
use crate::session::chronicle::holder;
use crate::view::report::made::ReportSource;
use crate::view::report::made::counted;
use crate::view::report::requirements;
use crate::view::report::requirements::Requirement;

/// Domain label of a rank.
const LABEL: &[u8] = b"clover/audit-sample/v1";
/// Entries that are drawn for each criterion, where nobody says how many.
pub const DRAWN: usize = 25;
/// Most entries that are drawn for each.
pub const DRAWN_MAX: usize = 500;

/// How samples are drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampleTerms {
    /// Entries that are drawn for each criterion, 1 to [`DRAWN_MAX`].
    pub drawn: usize,
    /// The auditor's word; without one, the root of the log.
    pub seed: Option<String>,
}

impl Default for SampleTerms {
    fn default() -> Self {
        Self {
            drawn: DRAWN,
            seed: None,
        }
    }
}

/// An entry that may be drawn. Ordered by its rank.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    rank: Digest,
    seq: u64,
    kind: &'static str,
    at: Timestamp,
    by: String,
}

/// The population of a criterion, and those of lowest rank in it.
#[derive(Default)]
struct Population {
    entries: u64,
    lowest: BinaryHeap<Candidate>,
}

/// The rank of an entry under a seed, for a criterion.
pub fn rank(seed: &str, code: &str, id: &Digest) -> Digest {
    let parts: [&[u8]; 7] = [
        LABEL,
        b"\0",
        seed.as_bytes(),
        b"\0",
        code.as_bytes(),
        b"\0",
        id.as_bytes(),
    ];
    Digest::sha256(&parts.concat())
}

/// Populations with what is drawn from each, and the entries themselves behind them.
///
/// # Errors
/// [`LedgerError`].
pub(super) fn chapters(
    source: &ReportSource<'_>,
    kind: ReportKind,
    (experiment, terms): (Option<&ExperimentId>, &SampleTerms),
) -> Result<(Chapter, Chapter), LedgerError> {
    let seed = match &terms.seed {
        Some(word) => word.clone(),
        None => source.ledger.root_at(source.through_seq + 1)?.to_base64(),
    };
    let asked: Vec<&Requirement> = requirements::of(kind).collect();
    let found = populations(source, &asked, (experiment, &seed, terms.drawn))?;
    let mut part = Chapter::new(
        "samples",
        "Populations and samples",
        "For each criterion, the entries of its kinds in the range, and how many of them were drawn. REPORT.md says how to draw the same again.",
    );
    let whose = match &terms.seed {
        Some(word) => format!("{word} (as it was given with --seed)"),
        None => format!("{seed} (the root of the log: for a seed of your own, --seed WORD)"),
    };
    part.fact(Vec::new(), "seed", "Seed of the draw", Cell::text(whose));
    let columns = [
        ("code", "criterion"),
        ("population", "population"),
        ("drawn", "drawn"),
        ("asks", "asks, in short"),
    ];
    let mut table = Table::new("populations", "Populations", &columns);
    let columns = [
        ("code", "criterion"),
        ("seq", "entry"),
        ("kind", "kind"),
        ("at", "recorded at (UTC)"),
        ("by", "by"),
        ("rank", "rank"),
    ];
    let mut sampled = Table::new("sampled", "Entries that were drawn", &columns);
    for (of, population) in asked.iter().zip(found) {
        let drawn = population.lowest.into_sorted_vec();
        let cells = vec![
            Cell::text(of.code),
            Cell::count(population.entries),
            Cell::count(drawn.len() as u64),
            Cell::text(of.asks),
        ];
        let first = drawn.first().map_or(source.through_seq, |of| of.seq);
        table.row_of(vec![first], cells);
        for one in drawn {
            let at: String = one.at.to_string().chars().take(16).collect();
            let cells = vec![
                Cell::text(of.code),
                Cell::count(one.seq),
                Cell::text(one.kind),
                Cell::text(at.replace('T', " ")),
                Cell::text(one.by),
                Cell::Digest(one.rank),
            ];
            sampled.row(one.seq, cells);
        }
    }
    part.table_or(table, "no criterion is known of this framework");
    let mut behind = Chapter::new(
        "sampled",
        "Entries that were drawn",
        format!(
            "At most {} for each criterion. clover show N prints one; clover prove N proves that it is in the log.",
            counted(terms.drawn as u64, "entry", "entries")
        ),
    );
    behind.table_or(sampled, "the range has no entry of these kinds");
    Ok((part, behind))
}

/// The population of each criterion, read in one pass: no more is held than what may still be drawn.
fn populations(
    source: &ReportSource<'_>,
    asked: &[&Requirement],
    (experiment, seed, drawn): (Option<&ExperimentId>, &str, usize),
) -> Result<Vec<Population>, LedgerError> {
    let mut of_kind: BTreeMap<Kind, Vec<usize>> = BTreeMap::new();
    for (at, of) in asked.iter().enumerate() {
        for kind in of.kinds {
            of_kind.entry(*kind).or_default().push(at);
        }
    }
    let mut found: Vec<Population> = asked.iter().map(|_| Population::default()).collect();
    chronicle::each(
        source.ledger,
        (source.from_seq, source.through_seq),
        |read| {
            let of = read.event.experiment();
            if of.is_some() && experiment.is_some() && of != experiment {
                return;
            }
            let kind = read.event.kind();
            for at in of_kind.get(&kind).into_iter().flatten() {
                let population = &mut found[*at];
                population.entries += 1;
                let rank = rank(seed, asked[*at].code, &read.event.id.0);
                let is_full = population.lowest.len() >= drawn;
                if is_full && population.lowest.peek().is_some_and(|of| of.rank <= rank) {
                    continue;
                }
                if is_full {
                    population.lowest.pop();
                }
                population.lowest.push(Candidate {
                    rank,
                    seq: read.stored.seq,
                    kind: kind.as_str(),
                    at: read.stored.recorded_at,
                    by: holder(source.state, &read.event.header.author),
                });
            }
        },
    )?;
    Ok(found)
}
