//! Who did what in a range, and whether those who assess others' work had a hand in it: the matrix of independence that
//! MEASURE 1.3 asks for. It counts what keys signed; which roles a key holds and never used is in the appendix of keys.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use crate::event::payload::Role;
use crate::event::payload::Verdict;
use crate::event::registry::Signers;
use crate::ledger::State;
use crate::projection::bundle::Cell;
use crate::projection::bundle::Table;
use crate::report::document::Chapter;
use crate::session::chronicle::Chronicle;
use crate::session::chronicle::holder;
use crate::view::report::course::is_tainted;
use crate::view::word;

/// Roles that check the work of whoever wrote a patch, and what each does.
const ASSESSORS: [(Role, &str); 6] = [
    (Role::Labeler, "gave labels"),
    (Role::Custodian, "kept and opened what was sealed"),
    (Role::Arbiter, "computed and decided"),
    (Role::Approver, "approved or refused"),
    (Role::Auditor, "reviewed or attested"),
    (Role::Releaser, "committed and deployed"),
];

/// What a holder signed in one role: how many entries, the first and the last.
#[derive(Clone, Copy)]
struct RoleTally {
    count: u64,
    first_seq: u64,
    last_seq: u64,
    /// Whether a compromised key signed some of them.
    tainted: bool,
}

/// Entries by holder and the word of the role.
type ByHolder = BTreeMap<String, BTreeMap<String, RoleTally>>;

/// The matrix, and whether each role that checks the work of developers is of other people.
pub(super) fn chapter(state: &State, chronicle: &Chronicle, whole: &Chronicle) -> Chapter {
    let mut part = Chapter::new(
        "independence",
        "Independence of assessors",
        "Entries that each holder signed in the range, by the role that their kind asks for. Whoever proposed a patch up to the end of the range is a developer. A fail names one holder in both roles; whether two holders are two people is not recorded.",
    );
    let by = by_holder(state, chronicle);
    part.table_or(
        checks(&by, &by_holder(state, whole)),
        "nobody proposed a patch up to the end of the range: there is no developer to be independent of",
    );
    part.table_or(
        signed(&by),
        "no entry of a kind that asks for a role is in the range",
    );
    part
}

fn by_holder(state: &State, chronicle: &Chronicle) -> ByHolder {
    let mut out = ByHolder::new();
    for ((key, kind), tally) in &chronicle.authors {
        let role = match kind.signers() {
            Signers::Role(role) => word(&role),
            Signers::Genesis => word(&Role::Owner),
            Signers::Spenders => "spender".to_owned(),
            Signers::Any => "any".to_owned(),
        };
        let of = out.entry(holder(state, key)).or_default();
        let of = of.entry(role).or_insert(RoleTally {
            count: 0,
            first_seq: tally.first_seq,
            last_seq: tally.last_seq,
            tainted: false,
        });
        of.tainted |= is_tainted(state, key, tally.last_seq);
        of.count += tally.count;
        of.first_seq = of.first_seq.min(tally.first_seq);
        of.last_seq = of.last_seq.max(tally.last_seq);
    }
    out
}

/// One row a holder and role.
fn signed(by: &ByHolder) -> Table {
    let columns = [
        ("holder", "holder"),
        ("role", "role"),
        ("entries", "entries"),
        ("first", "first"),
        ("last", "last"),
        ("standing", "keys"),
    ];
    let mut table = Table::new("signed", "Entries by holder and role", &columns);
    for (holder, roles) in by {
        for (role, of) in roles {
            let cells = vec![
                Cell::text(holder.as_str()),
                Cell::text(role.as_str()),
                Cell::count(of.count),
                Cell::count(of.first_seq),
                Cell::count(of.last_seq),
                Cell::text(if of.tainted {
                    "COMPROMISED"
                } else {
                    "in order"
                }),
            ];
            table.row_of(vec![of.first_seq, of.last_seq], cells);
        }
    }
    table
}

/// One row a role that checks: its holders, those who also proposed patches, and what follows.
fn checks<'w>(by: &'w ByHolder, whole: &'w ByHolder) -> Table {
    let columns = [
        ("role", "role that checks"),
        ("verdict", "apart from developers"),
        ("does", "what it did"),
        ("holders", "holders"),
        ("both", "who proposed patches too"),
    ];
    let mut table = Table::new("checks", "Developers and those who check them", &columns);
    let in_role = |by: &'w ByHolder, role: Role| -> BTreeMap<&'w str, RoleTally> {
        let role = word(&role);
        let all = by.iter();
        let all = all.filter_map(|(holder, roles)| Some((holder.as_str(), *roles.get(&role)?)));
        all.collect()
    };
    let developers = in_role(whole, Role::Optimizer);
    if developers.is_empty() {
        return table;
    }
    for (role, does) in ASSESSORS {
        let assessors = in_role(by, role);
        let is_tainted = assessors.values().any(|of| of.tainted);
        let both: BTreeSet<&str> = assessors
            .keys()
            .filter(|holder| developers.contains_key(*holder))
            .copied()
            .collect();
        // Whoever has a key that is not the holder's own may have signed as an assessor.
        let verdict = match (assessors.is_empty(), both.is_empty(), is_tainted) {
            (true, _, _) => Verdict::NotChecked,
            (false, false, _) => Verdict::Fail,
            (false, true, true) => Verdict::Inconclusive,
            (false, true, false) => Verdict::Pass,
        };
        let names = |of: &mut dyn Iterator<Item = &str>| {
            let names: Vec<&str> = of.collect();
            if names.is_empty() {
                Cell::Absent
            } else {
                Cell::text(names.join(", "))
            }
        };
        let events = assessors.values().map(|of| of.last_seq);
        let events = events.chain(developers.values().map(|of| of.last_seq));
        let events = events.collect();
        let cells = vec![
            Cell::text(word(&role)),
            Cell::Verdict(verdict),
            Cell::text(does),
            names(&mut assessors.keys().copied()),
            names(&mut both.iter().copied()),
        ];
        table.row_of(events, cells);
    }
    table
}
