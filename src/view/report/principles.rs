//! The checklist of ALCOA++: what a ledger shows of each principle, counted over the range, and what it cannot show.

use std::collections::BTreeSet;

use crate::event::Kind;
use crate::event::Payload;
use crate::event::payload::Verdict;
use crate::ledger::State;
use crate::projection::bundle::Cell;
use crate::projection::bundle::Table;
use crate::report::document::Chapter;
use crate::session::chronicle::Chronicle;
use crate::session::expiry::LogsFloor;
use crate::view::report::course::is_tainted;
use crate::view::report::made::counted;
use crate::view::report::made::seqs;

/// Microseconds of an hour.
const HOUR: i64 = 3_600_000_000;

/// What a range shows of one principle.
struct Principle {
    asks: &'static str,
    events: Vec<u64>,
    name: &'static str,
    shows: String,
    verdict: Verdict,
}

/// The checklist.
pub(super) fn chapter(
    state: &State,
    chronicle: &Chronicle,
    logs: (LogsFloor, Option<u64>),
) -> Chapter {
    let mut part = Chapter::new(
        "alcoa",
        "ALCOA++, a checklist",
        "Each principle with what the entries of the range show of it. A pass is about these entries alone; NOT CHECKED says what has to be looked at elsewhere.",
    );
    let columns = [
        ("principle", "principle"),
        ("verdict", "verdict"),
        ("shows", "the entries show"),
        ("asks", "asks"),
    ];
    let mut table = Table::new("principles", "Principles", &columns);
    for mut of in principles(state, chronicle, logs) {
        if of.events.is_empty() {
            // Whatever is counted is counted up to the last entry.
            of.events.push(chronicle.through_seq);
        }
        let cells = vec![
            Cell::text(of.name),
            Cell::Verdict(of.verdict),
            Cell::text(of.shows),
            Cell::text(of.asks),
        ];
        table.row_of(of.events, cells);
    }
    part.table_or(table, "the range has no entry");
    part
}

fn principles(
    state: &State,
    chronicle: &Chronicle,
    logs: (LogsFloor, Option<u64>),
) -> Vec<Principle> {
    vec![
        attributable(state, chronicle),
        Principle {
            asks: "records can be read",
            events: Vec::new(),
            name: "Legible",
            shows: format!(
                "{} read and decoded for this report; clover report trail prints them",
                counted(chronicle.clock.entries, "entry was", "entries were")
            ),
            verdict: Verdict::Pass,
        },
        contemporaneous(chronicle),
        original(chronicle),
        Principle {
            asks: "records are true",
            events: Vec::new(),
            name: "Accurate",
            shows: "no signature proves it; clover verify --recompute computes decisions again"
                .to_owned(),
            verdict: Verdict::NotChecked,
        },
        complete(chronicle),
        consistent(chronicle),
        enduring(logs),
        Principle {
            asks: "records can be had throughout their retention",
            events: seqs(chronicle.of(Kind::SubjectErased)),
            name: "Available",
            shows: format!(
                "{}; whether files and backups are at hand is outside of the log: clover verify --recompute names each that is not",
                counted(
                    chronicle.count(Kind::SubjectErased),
                    "subject was erased in the range",
                    "subjects were erased in the range"
                )
            ),
            verdict: Verdict::NotChecked,
        },
        traceable(chronicle),
    ]
}

fn attributable(state: &State, chronicle: &Chronicle) -> Principle {
    let known = |key| state.keyring.keys.contains_key(key);
    let authors = chronicle.authors.iter();
    let unknown: Vec<_> = authors.filter(|((key, _), _)| !known(key)).collect();
    let by_unknown: u64 = unknown.iter().map(|(_, tally)| tally.count).sum();
    let humans = state.keyring.keys.values().filter(|of| of.human).count() as u64;
    let entries: u64 = chronicle.authors.values().map(|tally| tally.count).sum();
    let signed = chronicle.authors.iter();
    let signed = signed.filter(|((key, _), tally)| is_tainted(state, key, tally.last_seq));
    let tainted: BTreeSet<_> = signed.map(|((key, _), _)| key).collect();
    let tainted = tainted.len() as u64;
    Principle {
        asks: "each record names who made it",
        events: unknown.iter().map(|(_, tally)| tally.first_seq).collect(),
        name: "Attributable",
        shows: format!(
            "{} of {} signed by a key with a named holder; {}; {}",
            entries.saturating_sub(by_unknown),
            counted(entries, "entry is", "entries are"),
            counted(humans, "key is of a person", "keys are of people"),
            counted(
                tainted,
                "key is compromised: who signed with it since is not known",
                "keys are compromised: who signed with them since is not known"
            )
        ),
        verdict: match (by_unknown, tainted) {
            (0, 0) => Verdict::Pass,
            (0, _) => Verdict::Inconclusive,
            _ => Verdict::Fail,
        },
    }
}

fn contemporaneous(chronicle: &Chronicle) -> Principle {
    let clock = &chronicle.clock;
    let widest = clock.widest.map_or(0, |(micros, _)| micros / HOUR);
    let apart = counted(clock.apart, "entry lies", "entries lie");
    Principle {
        asks: "records are made when things happen",
        events: clock
            .first_apart
            .or(clock.widest.map(|(_, seq)| seq))
            .into_iter()
            .collect(),
        name: "Contemporaneous",
        shows: format!(
            "{apart} more than a day between signing and record; the widest is {}. Only an outside anchor proves a time.",
            if widest == 0 {
                "under an hour".to_owned()
            } else {
                counted(widest.unsigned_abs(), "hour", "hours")
            }
        ),
        verdict: if clock.apart == 0 {
            Verdict::Pass
        } else {
            Verdict::Inconclusive
        },
    }
}

fn original(chronicle: &Chronicle) -> Principle {
    let imports = seqs(chronicle.of(Kind::DataIngested));
    Principle {
        asks: "the first record, or a true copy",
        name: "Original",
        shows: match imports.len() as u64 {
            0 => "nothing was taken in from a file in the range".to_owned(),
            n => format!(
                "{} by the SHA-256 of the file's original bytes",
                counted(n, "import is named", "imports are named")
            ),
        },
        verdict: if imports.is_empty() {
            Verdict::NotChecked
        } else {
            Verdict::Pass
        },
        events: imports,
    }
}

fn complete(chronicle: &Chronicle) -> Principle {
    let (mut read, mut recorded) = (0, 0);
    for entry in chronicle.of(Kind::DataIngested) {
        if let Payload::DataIngested(said) = &entry.event.payload {
            read += said.rows_in.value();
            recorded += said.rows_out.value();
        }
    }
    let missed = chronicle.count(Kind::ScoreMissed);
    let left = read - recorded.min(read);
    Principle {
        asks: "nothing is left out, repeats and failures too",
        events: seqs(chronicle.of(Kind::DataIngested)),
        name: "Complete",
        shows: format!(
            "{} read from files, {left} of them left out; {}. That a file was all there was is not proven, and rows that came otherwise are not counted.",
            counted(read, "row was", "rows were"),
            counted(
                missed,
                "score was missed, on record",
                "scores were missed, on record"
            )
        ),
        verdict: match (read, left + missed) {
            (0, 0) => Verdict::NotChecked,
            (_, 0) => Verdict::Pass,
            _ => Verdict::Inconclusive,
        },
    }
}

fn consistent(chronicle: &Chronicle) -> Principle {
    let clock = &chronicle.clock;
    Principle {
        asks: "records follow in order, with times that agree",
        events: clock.first_back.into_iter().collect(),
        name: "Consistent",
        shows: format!(
            "times of record step back {}; clover verify holds every entry against the rules again",
            counted(clock.back, "time", "times")
        ),
        verdict: if clock.back == 0 {
            Verdict::Pass
        } else {
            Verdict::Fail
        },
    }
}

fn enduring((logs, said): (LogsFloor, Option<u64>)) -> Principle {
    let (shows, verdict) = match logs {
        LogsFloor::Unsaid => (
            "nobody set how long class logs is kept: clover retain set logs".to_owned(),
            Verdict::NotChecked,
        ),
        LogsFloor::Below(days, _) => (
            format!("class logs is kept for {days} days, below six months"),
            Verdict::Fail,
        ),
        LogsFloor::Kept => (
            "class logs is kept for six months or more; media are outside of a ledger".to_owned(),
            Verdict::Pass,
        ),
    };
    Principle {
        asks: "records last as long as they have to",
        events: said.into_iter().collect(),
        name: "Enduring",
        shows,
        verdict,
    }
}

fn traceable(chronicle: &Chronicle) -> Principle {
    const CHANGES: [Kind; 5] = [
        Kind::ManifestAmended,
        Kind::ManifestDeviated,
        Kind::PatchWithdrawn,
        Kind::DeploymentRolledBack,
        Kind::PromotionRevoked,
    ];
    let entries = chronicle.entries.iter();
    let found: Vec<u64> = entries
        .filter(|entry| CHANGES.contains(&entry.event.kind()))
        .map(|entry| entry.seq)
        .collect();
    Principle {
        asks: "changes are recorded with their reason, and nothing is overwritten",
        name: "Traceable",
        shows: format!(
            "{}, each with its reason; no entry replaces another",
            counted(
                found.len() as u64,
                "plan was amended or left, patch withdrawn, or release taken back",
                "plans were amended or left, patches withdrawn, or releases taken back"
            )
        ),
        verdict: if found.is_empty() {
            Verdict::NotChecked
        } else {
            Verdict::Pass
        },
        events: found,
    }
}
