//! The life of patches: who opened, proposed, reviewed, accepted, approved, committed and deployed; whether these are
//! different people; and what came of it since.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use crate::event::Kind;
use crate::event::Payload;
use crate::event::id::EventId;
use crate::event::payload::Verdict;
use crate::event::payload::custody::Separation;
use crate::event::payload::rubric::AuthorKind;
use crate::event::registry::Signers;
use crate::ground::sign::KeyId;
use crate::ledger::State;
use crate::projection::bundle::Cell;
use crate::projection::bundle::Table;
use crate::report::document::Remark;
use crate::report::shown;
use crate::session::chronicle::Chronicle;
use crate::session::chronicle::ChronicleEntry;
use crate::session::chronicle::holder;
use crate::view::report::made::cut;
use crate::view::report::picked::day;
use crate::view::word;

/// Characters of what somebody said that a row shows.
const SAID_MAX: usize = 160;

/// Characters of a key id in a table: enough to tell keys apart, and the trail has the whole.
const KEY_SHOWN: usize = 16;

/// What somebody did about a patch, or about all of them.
#[derive(Clone, Debug)]
pub(super) struct Act<'c> {
    /// The entry.
    pub entry: &'c ChronicleEntry,
    /// What was done.
    pub verb: &'static str,
    /// The patch, or what else it is about.
    pub subject: String,
    /// What was said, in short.
    pub said: String,
    /// Whether it came of a decision, and is no step to it.
    pub is_since: bool,
}

impl Act<'_> {
    /// Whether another act says the same, so that a row tells of both.
    fn is_same(&self, other: &Self) -> bool {
        let author = |act: &Self| act.entry.event.header.author;
        self.verb == other.verb
            && self.subject == other.subject
            && self.said == other.said
            && author(self) == author(other)
    }
}

/// What entries are about, by their ids: a patch, a version.
#[derive(Default)]
struct Subjects {
    by_event: BTreeMap<EventId, String>,
}

impl Subjects {
    fn of(&self, id: EventId) -> String {
        let known = self.by_event.get(&id).cloned();
        known.unwrap_or_else(|| "another version".to_owned())
    }
}

/// Every act that the chronicle tells of, in order.
pub(super) fn acts(chronicle: &Chronicle) -> Vec<Act<'_>> {
    let mut subjects = Subjects::default();
    let mut out = Vec::new();
    for entry in &chronicle.entries {
        let Some((verb, subject, said)) = step(&entry.event.payload, &subjects)
            .or_else(|| release(&entry.event.payload, &subjects))
            .or_else(|| live(&entry.event.payload, &subjects))
        else {
            continue;
        };
        subjects.by_event.insert(entry.event.id, subject.clone());
        out.push(Act {
            entry,
            verb,
            subject,
            said: cut(&said, SAID_MAX),
            is_since: SINCE.contains(&entry.event.kind()),
        });
    }
    out
}

/// Kinds that come of a decision.
const SINCE: &[Kind] = &[
    Kind::DeploymentRolledBack,
    Kind::ExploitDiscovered,
    Kind::GuardrailChecked,
    Kind::JudgeDriftChecked,
    Kind::KeyCompromised,
    Kind::PromotionRevoked,
];

/// What was done, about what, and what was said.
type ActWords = (&'static str, String, String);

/// Who wrote a patch, in words.
fn author(kind: AuthorKind) -> &'static str {
    match kind {
        AuthorKind::Human => "a person",
        AuthorKind::Llm => "a model or search",
    }
}

/// A step from an opening to a deployment.
fn step(payload: &Payload, subjects: &Subjects) -> Option<ActWords> {
    let none = String::new;
    Some(match payload {
        Payload::IterationOpened(said) => ("opened", said.iteration.to_string(), none()),
        Payload::IterationClosed(said) => (
            "closed",
            said.iteration.to_string(),
            format!(
                "{}: {}",
                word(&said.outcome).replace('_', " "),
                shown::reason(said.reason.as_str())
            ),
        ),
        Payload::PatchProposed(said) => (
            "proposed",
            said.patch.to_string(),
            format!("by {}", author(said.author_kind)),
        ),
        Payload::ReviewRecorded(said) => (
            "reviewed",
            said.patch.as_ref()?.to_string(),
            format!("{}: {}", word(&said.outcome), said.findings.as_str()),
        ),
        Payload::PatchRejected(said) => (
            "rejected",
            said.patch.as_ref()?.to_string(),
            shown::criteria(said.code.as_str()),
        ),
        Payload::PatchWithdrawn(said) => (
            "withdrew",
            said.patch.to_string(),
            said.reason.as_str().to_owned(),
        ),
        Payload::CandidatesSealed(said) => {
            ("sealed candidates", said.iteration.to_string(), none())
        }
        Payload::ConfirmUnsealed(said) => {
            ("opened confirm labels", said.iteration.to_string(), none())
        }
        Payload::PatchAccepted(said) => ("accepted", said.patch.to_string(), none()),
        Payload::ApprovalGranted(said) => (
            "approved",
            subjects.of(said.subject),
            signed(
                (said.printed_name.as_str(), said.meaning.as_str()),
                said.comment.as_str(),
            ),
        ),
        Payload::ApprovalRefused(said) => (
            REFUSED,
            subjects.of(said.subject),
            signed(
                (said.printed_name.as_str(), said.meaning.as_str()),
                said.comment.as_str(),
            ),
        ),
        _ => return None,
    })
}

/// A step from a commit to a deployment.
fn release(payload: &Payload, subjects: &Subjects) -> Option<ActWords> {
    Some(match payload {
        Payload::PromptCommitted(said) => (
            "committed",
            said.patch.to_string(),
            format!("version {}", said.version),
        ),
        Payload::RubricRegistered(said) => (
            "registered",
            format!("version {}", said.version),
            String::new(),
        ),
        Payload::RecalibrationCompleted(said) => (
            "recalibrated",
            subjects.of(said.commit),
            format!("judge {}", said.judge),
        ),
        Payload::DeploymentActivated(said) => (
            "deployed",
            subjects.of(said.commit),
            format!(
                "version {}, judge {}",
                said.versions.rubric_version, said.versions.judge
            ),
        ),
        _ => return None,
    })
}

/// What came of a deployment, or bears on it.
fn live(payload: &Payload, subjects: &Subjects) -> Option<ActWords> {
    Some(match payload {
        Payload::GuardrailChecked(said) => {
            let failed = said.verdicts.each();
            let failed = failed.iter().filter(|(_, of)| *of == Verdict::Fail);
            let failed: Vec<_> = failed.map(|(name, _)| *name).collect();
            let found = if failed.is_empty() {
                "no guardrail failed".to_owned()
            } else {
                format!("BREACH: {}", failed.join(", "))
            };
            ("checked guardrails", subjects.of(said.deployment), found)
        }
        Payload::DeploymentRolledBack(said) => (
            "ROLLED BACK",
            subjects.of(said.deployment),
            said.reason.as_str().to_owned(),
        ),
        Payload::JudgeDriftChecked(said) => (
            "checked drift",
            format!("judge {}", said.judge),
            format!("verdict {}", word(&said.verdicts.whole()).replace('_', " ")),
        ),
        Payload::ExploitDiscovered(_) => {
            ("found an exploit", "the judge".to_owned(), String::new())
        }
        Payload::PromotionRevoked(said) => (
            "revoked a promotion",
            "a gate's candidate".to_owned(),
            said.reason.as_str().to_owned(),
        ),
        Payload::KeyCompromised(said) => (
            "declared compromised",
            key_named(&said.key_id),
            format!(
                "its entries are not relied on from seq {} on",
                said.since_seq
            ),
        ),
        _ => return None,
    })
}

/// A key by the first characters of its id.
pub(super) fn key_named(id: &KeyId) -> String {
    let id = id.to_string();
    format!("key {}…", id.chars().take(KEY_SHOWN).collect::<String>())
}

/// A signature of a person: printed name, meaning, and what was said.
fn signed((name, meaning): (&str, &str), comment: &str) -> String {
    format!("signed as {name}, meaning {meaning}: {comment}")
}

/// The role in which a kind is signed.
fn role(kind: Kind) -> String {
    match kind.signers() {
        Signers::Role(role) => word(&role),
        Signers::Any => "any".to_owned(),
        Signers::Genesis => "owner".to_owned(),
        Signers::Spenders => "spender".to_owned(),
    }
}

/// Acts as a table: what, about what, by whom, in which role, when.
pub(super) fn table(key: &'static str, title: &str, acts: &[&Act<'_>], state: &State) -> Table {
    let columns = [
        ("act", "what"),
        ("subject", "of what"),
        ("by", "by"),
        ("role", "as"),
        ("at", "when (UTC)"),
        ("said", "said"),
    ];
    let mut table = Table::new(key, title, &columns);
    for same in acts.chunk_by(|one, other| one.is_same(other)) {
        let act = same[0];
        let entry = act.entry;
        let said = match (act.said.is_empty(), same.len()) {
            (true, 1) => Cell::Absent,
            (false, 1) => Cell::text(act.said.clone()),
            (true, times) => Cell::text(format!("{times} times")),
            (false, times) => Cell::text(format!("{times} times: {}", act.said)),
        };
        let cells = vec![
            Cell::text(act.verb),
            Cell::text(act.subject.clone()),
            Cell::text(holder(state, &entry.event.header.author)),
            Cell::text(role(entry.event.kind())),
            Cell::text(minute(entry)),
            said,
        ];
        let events = same.iter().map(|act| act.entry.seq);
        table.row_of(events.collect(), cells);
    }
    table
}

/// Day and minute of an entry.
fn minute(entry: &ChronicleEntry) -> String {
    let at = entry.recorded_at.to_string();
    let at: String = at.chars().take("2026-11-20T10:02".len()).collect();
    at.replace('T', " ")
}

/// Whether those who acted on a patch are different people.
pub(super) fn separation(patch: &str, acts: &[&Act<'_>], state: &State) -> Option<Remark> {
    let mut by: BTreeMap<&str, BTreeSet<KeyId>> = BTreeMap::new();
    let mut events = Vec::new();
    let order = ActOrder::of(acts);
    for act in acts
        .iter()
        .filter(|act| act.subject == patch && !act.is_since && order.stands(act, state))
    {
        let verb = order.late(act).map_or(act.verb, |(verb, _)| verb);
        by.entry(verb)
            .or_default()
            .insert(act.entry.event.header.author);
        events.push(act.entry.seq);
    }
    let people = |verb: &str| -> BTreeSet<String> {
        let keys = by.get(verb).into_iter().flatten();
        keys.map(|key| holder(state, key)).collect()
    };
    let proposers = people("proposed");
    if proposers.is_empty() {
        return None;
    }
    let names = |of: &BTreeSet<String>| of.iter().cloned().collect::<Vec<_>>().join(" and ");
    let mut text = format!("{patch} was proposed by {}", names(&proposers));
    let mut same = Vec::new();
    let steps = ["reviewed", "accepted", "approved", "committed", "deployed"];
    for verb in steps.into_iter().chain(LATE.map(|(_, verb, _)| verb)) {
        let of = people(verb);
        if of.is_empty() {
            continue;
        }
        text.push_str(&format!(", {verb} by {}", names(&of)));
        if of.intersection(&proposers).next().is_some() {
            same.push(verb);
        }
    }
    text.push_str(". ");
    if same.is_empty() {
        text.push_str("Whoever proposed it did none of the rest.");
    } else {
        text.push_str(&format!(
            "NOT SEPARATE: whoever proposed it also {} it.",
            same.join(", ")
        ));
    }
    if !by.contains_key("approved") {
        text.push_str(if LATE.iter().any(|(_, verb, _)| by.contains_key(verb)) {
            " Nobody approved it before it was committed."
        } else {
            " Nobody approved it."
        });
    }
    Some(Remark { events, text })
}

/// Steps after which an approval is late, what is done then, and when it came: it is no part of what led there.
const LATE: [(&str, &str, &str); 2] = [
    (
        "deployed",
        "approved AFTER it was deployed",
        "AFTER it was deployed",
    ),
    (
        "committed",
        "approved AFTER it was committed",
        "AFTER it was committed",
    ),
];

/// What came before what among acts.
struct ActOrder<'a> {
    /// The first entry of each step after which an approval is late, by subject and verb.
    firsts: BTreeMap<(&'a str, &'static str), u64>,
    /// The newest word of each key about each thing.
    words: BTreeMap<(KeyId, &'a str), u64>,
}

/// Whether an act is a word of a person about a thing.
fn is_word(act: &Act<'_>) -> bool {
    ["approved", REFUSED].contains(&act.verb)
}

impl<'a> ActOrder<'a> {
    fn of(acts: &[&'a Act<'_>]) -> Self {
        let (mut firsts, mut words) = (BTreeMap::new(), BTreeMap::new());
        for act in acts {
            let (subject, seq) = (act.subject.as_str(), act.entry.seq);
            if let Some((step, ..)) = LATE.into_iter().find(|(step, ..)| *step == act.verb) {
                let first = firsts.entry((subject, step)).or_insert(seq);
                *first = seq.min(*first);
            }
            if is_word(act) {
                let author = act.entry.event.header.author;
                let newest = words.entry((author, subject)).or_insert(seq);
                *newest = seq.max(*newest);
            }
        }
        Self { firsts, words }
    }

    /// What an approval that came late is called, and when it came; `None` of one in time, and of what is no approval.
    fn late(&self, of: &Act<'_>) -> Option<(&'static str, &'static str)> {
        let before = |step| {
            let first = self.firsts.get(&(of.subject.as_str(), step));
            first.is_some_and(|first| *first < of.entry.seq)
        };
        let found = LATE.into_iter().find(|(step, ..)| before(*step));
        let (_, verb, when) = found.filter(|_| is_word(of))?;
        // What a refusal came to is said where it stands; its verb stays.
        let verb = if of.verb == REFUSED { REFUSED } else { verb };
        Some((verb, when))
    }

    /// Whether a word of a person stands: it is the newest of its key about the thing, and the key is not compromised. What is
    /// no approval and no refusal stands.
    fn stands(&self, of: &Act<'_>, state: &State) -> bool {
        let (author, seq) = (of.entry.event.header.author, of.entry.seq);
        let newest = self.words.get(&(author, of.subject.as_str()));
        let is_void = is_tainted(state, &author, seq) || newest.is_some_and(|newest| *newest > seq);
        !(is_word(of) && is_void)
    }
}

/// Signatures of people among acts, with the holder of the key beside the name that was printed.
pub(super) fn signatures(acts: &[&Act<'_>], state: &State) -> Table {
    let columns = [
        ("name", "printed name"),
        ("holder", "holder of the key"),
        ("outcome", "what"),
        ("subject", "of what"),
        ("meaning", "meaning"),
        ("at", "signed at (UTC)"),
        ("order", "when it came"),
        ("comment", "comment"),
    ];
    let mut table = Table::new("signatures", "Signatures of people", &columns);
    let order = ActOrder::of(acts);
    for act in acts {
        let (name, meaning, comment) = match &act.entry.event.payload {
            Payload::ApprovalGranted(said) => (&said.printed_name, &said.meaning, &said.comment),
            Payload::ApprovalRefused(said) => (&said.printed_name, &said.meaning, &said.comment),
            _ => continue,
        };
        let cells = vec![
            Cell::text(name.as_str()),
            Cell::text(holder(state, &act.entry.event.header.author)),
            Cell::text(act.verb),
            Cell::text(act.subject.clone()),
            Cell::text(meaning.as_str()),
            Cell::text(minute(act.entry)),
            Cell::text(
                match (
                    order.late(act),
                    is_tainted(state, &act.entry.event.header.author, act.entry.seq),
                ) {
                    (_, true) => "VOID: the key is compromised",
                    (Some((_, when)), false) => when,
                    (None, false) => "in time",
                },
            ),
            Cell::text(comment.as_str()),
        ];
        table.row(act.entry.seq, cells);
    }
    table
}

/// Signatures of people among acts, each in words: printed name, holder of the key, meaning, time and entry. Of each key the
/// newest word about a thing alone; refusals come first, and what a compromised key signed says so.
pub(super) fn signed_lines(acts: &[&Act<'_>], state: &State) -> Vec<String> {
    let mut newest = BTreeMap::new();
    for act in acts {
        let (name, meaning) = match &act.entry.event.payload {
            Payload::ApprovalGranted(said) => (&said.printed_name, &said.meaning),
            Payload::ApprovalRefused(said) => (&said.printed_name, &said.meaning),
            _ => continue,
        };
        let author = act.entry.event.header.author;
        newest.insert((author, &act.subject), (act, name, meaning));
    }
    let mut all: Vec<_> = newest.into_iter().collect();
    all.sort_by_key(|(_, (act, ..))| (act.verb != REFUSED, act.entry.seq));
    let lines = all
        .into_iter()
        .map(|((author, subject), (act, name, meaning))| {
            let own = holder(state, &author);
            let who = if own == name.as_str() {
                own
            } else {
                format!("{own}, signing as \"{}\"", cut(name.as_str(), NAME_MAX))
            };
            let void = if is_tainted(state, &author, act.entry.seq) {
                ", VOID: the key is compromised"
            } else {
                ""
            };
            format!(
                "{who}, {} {subject} ({}), {} UTC, seq {}{void}",
                act.verb,
                meaning.as_str(),
                minute(act.entry),
                act.entry.seq
            )
        });
    lines.collect()
}

/// Characters of a printed name in a line of signatures.
const NAME_MAX: usize = 60;

/// What a refusal is called.
const REFUSED: &str = "refused";

/// Whether an entry lies where its key was compromised already.
pub(super) fn is_tainted(state: &State, key: &KeyId, seq: u64) -> bool {
    let end = state.keyring.keys.get(key).and_then(|of| of.end.as_ref());
    let since = end.and_then(|end| end.tainted_since);
    since.is_some_and(|since| since <= seq)
}

/// The policy of separation that is in force, in words.
pub(super) fn policy(state: &State) -> Option<Remark> {
    let (seq, separation) = state.keyring.separations.last()?;
    let text = match separation {
        Separation::Solo => {
            "The ledger's policy is solo: one person may act in every role, and every claim says so."
        }
        Separation::Strict => {
            "The ledger's policy is strict: roles that check one another belong to different people."
        }
    };
    Some(Remark {
        events: vec![*seq],
        text: text.to_owned(),
    })
}

/// When a patch, or the version made of it, was rolled back: a sentence for the head of a report.
pub(super) fn rolled_back(acts: &[&Act<'_>]) -> Option<String> {
    let mut back = acts.iter().rev();
    let act = back.find(|act| act.entry.event.kind() == Kind::DeploymentRolledBack)?;
    Some(format!(
        "Since then it was rolled back, on {}, at seq {}.",
        day(act.entry),
        act.entry.seq
    ))
}
