//! Families of tests: who belongs to them, what they spent, and which claims hold.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::event::id::FamilyId;
use crate::event::id::ManifestId;
use crate::event::payload::manifest::FamilyMethod;
use crate::event::payload::manifest::HypothesisKind;
use crate::ground::digest::Digest;
use crate::ground::shell;
use crate::ledger::State;
use crate::num::math;
use crate::projection::gates::FamilyClosing;
use crate::projection::gates::Gate;
use crate::projection::gates::Gates;
use crate::projection::manifests::Family;
use crate::projection::manifests::ManifestRecord;
use crate::projection::manifests::Manifests;
use crate::session::gate::GateError;
use crate::view::View;
use crate::view::appended;
use crate::view::word;
use crate::workflow::gates::design;
use crate::workflow::gates::family;

/// The share of the scale from which on a margin is one that hardly any candidate fails.
const EASY_MARGIN: f64 = 0.5;

/// A member of a family.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Member {
    /// Its manifest.
    pub manifest: ManifestId,
    /// The largest alpha that it had, in millionths.
    pub alpha_micro: i64,
    /// Logarithm of its e-value at the last look; `null` before its gate is opened.
    pub log_e: Option<f64>,
    /// The logarithm past which its gate ends.
    pub ends_past: f64,
    /// Its decision in one word; `null` while it has none.
    pub decided: Option<String>,
    /// Whether its claim holds, by the closing of the family; `null` before.
    pub holds: Option<bool>,
    /// Its margin as a share of its scale, where it claims no more than to be within it: from a half on hardly anything fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub margin_share: Option<f64>,
}

/// One family, without what its members show.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FamilyTerms {
    /// Its error rate, in millionths.
    pub alpha_micro: i64,
    /// Alpha of its members together, in millionths.
    pub alpha_taken_micro: i64,
    /// How it keeps its error rate.
    pub method: FamilyMethod,
    /// Members that were registered.
    pub members: u64,
    /// Most members.
    pub members_max: u64,
    /// The entry that opened it.
    pub opened_seq: u64,
    /// The entry that closed it; `null` while it is open.
    pub closed_seq: Option<u64>,
}

/// Every family, by its name.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FamilyList {
    /// The families.
    pub families: BTreeMap<FamilyId, FamilyTerms>,
}

/// What members that test one hypothesis say of it together. It decides nothing.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HypothesisEvidence {
    /// Digest of the hypothesis.
    pub h0_digest: Digest,
    /// Logarithm of their mean e-value over all places of the family.
    pub log_e: f64,
    /// In order of registration.
    pub members: Vec<ManifestId>,
    /// `min(1, 1 / e)`.
    pub p: f64,
}

/// What the generations of an optimisation loop say together.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Generations {
    /// Whether log e is past 1/alpha of the family: the loop has found an improvement.
    pub found: bool,
    /// Logarithm of the product of their e-values.
    pub log_e: f64,
    /// Those that count, in order of registration.
    pub members: Vec<ManifestId>,
    /// `min(1, 1 / e)`.
    pub p: f64,
}

/// One family.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FamilyShown {
    /// Its name.
    pub family: FamilyId,
    /// What it was opened with, and how it stands.
    pub terms: FamilyTerms,
    /// Its members in order of registration.
    pub members: Vec<Member>,
    /// Members of one hypothesis, together.
    pub merged: Vec<HypothesisEvidence>,
    /// The loop of its gates; `null` where it is none.
    pub r#loop: Option<Generations>,
    /// The alpha that the next member may have, in millionths; `null` where none may join.
    pub next_alpha_micro: Option<i64>,
}

/// What the closing of a family found.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Holds {
    /// Members whose claims hold.
    pub holds: Vec<ManifestId>,
}

fn terms(of: &Family, closed: Option<&FamilyClosing>) -> FamilyTerms {
    FamilyTerms {
        alpha_micro: of.alpha,
        alpha_taken_micro: of.spent(),
        method: of.method,
        members: of.joined.len() as u64,
        members_max: of.members_max,
        opened_seq: of.opened_seq,
        closed_seq: closed.map(|closed| closed.seq),
    }
}

/// Every family.
pub fn list(state: &State) -> View {
    let families = &state.fold::<Manifests>().families;
    let closed = &state.fold::<Gates>().closed;
    let families = families.iter();
    let families = families.map(|(id, of)| (id.clone(), terms(of, closed.get(id))));
    let facts = FamilyList {
        families: families.collect(),
    };
    let mut view = View::of(&facts);
    if facts.families.is_empty() {
        view.line("no families");
        return view.with_next(
            "clover family open ID --method spend --alpha 0.05 --members 3 --membership TEXT",
        );
    }
    let rows = facts.families.iter().map(|(id, of)| {
        let standing = of.closed_seq;
        vec![
            id.to_string(),
            word(&of.method),
            format!("{} of {}", of.alpha_taken_micro, of.alpha_micro),
            format!("{} of {}", of.members, of.members_max),
            standing.map_or("open".to_owned(), |seq| format!("closed at seq {seq}")),
        ]
    });
    let head = ["family", "method", "alpha taken", "members", "standing"];
    view.table(&head, rows);
    view.with_next("clover family show ID")
}

/// One family, its members and what they spent.
///
/// # Errors
/// [`GateError::NoFamily`].
pub fn show(state: &State, id: &FamilyId) -> Result<View, GateError> {
    let Some(of) = state.fold::<Manifests>().families.get(id) else {
        return Err(GateError::NoFamily(id.clone()));
    };
    let gates = state.fold::<Gates>();
    let closed = gates.closed.get(id);
    let more = closed.is_none() && (of.joined.len() as u64) < of.members_max;
    let facts = FamilyShown {
        family: id.clone(),
        terms: terms(of, closed),
        members: members((of, gates, state.fold()), closed),
        merged: merged(state, id),
        r#loop: generations(state, id),
        next_alpha_micro: more.then(|| of.alpha_of(state, None).max(0)),
    };
    let mut view = View::of(&facts);
    view.pairs(pairs(&facts));
    if let Some(alpha) = facts.next_alpha_micro {
        let why = next_alpha(of);
        view.line(format!("the next member's alpha_micro may be {alpha}{why}"));
    }
    member_table(&mut view, &facts.members);
    easy(&mut view, &facts.members);
    together(&mut view, &facts);
    if let Some(found) = &facts.r#loop {
        looped(&mut view, found, &facts.terms);
    }
    Ok(view.with_next(match closed {
        Some(_) => "clover gate list".to_owned(),
        None if of.joined.is_empty() => "clover prereg new --template gate".to_owned(),
        None => format!("clover family close {id}", id = shell::word(id)),
    }))
}

fn pairs(facts: &FamilyShown) -> [(&'static str, String); 5] {
    let terms = &facts.terms;
    let alpha = match terms.method {
        FamilyMethod::Spend => format!(
            "{} of {} millionths taken",
            terms.alpha_taken_micro, terms.alpha_micro
        ),
        _ => format!("{} millionths", terms.alpha_micro),
    };
    let closed = terms.closed_seq;
    [
        ("family", facts.family.to_string()),
        ("method", word(&terms.method)),
        ("alpha", alpha),
        (
            "members",
            format!("{} of {}", terms.members, terms.members_max),
        ),
        (
            "closed",
            closed.map_or("no".to_owned(), |seq| format!("seq {seq}")),
        ),
    ]
}

/// Why the next member's alpha is what it is.
fn next_alpha(of: &Family) -> String {
    let held = of.rejected.len();
    match of.method {
        FamilyMethod::Elond => format!(
            ": member {} after {held} claim{} that held",
            of.joined.len() + 1,
            if held == 1 { "" } else { "s" }
        ),
        FamilyMethod::Spend => ": what is left".to_owned(),
        _ => String::new(),
    }
}

/// What each member has shown, past what it ends, and what the closing found.
fn members(
    (of, gates, manifests): (&Family, &Gates, &Manifests),
    closed: Option<&FamilyClosing>,
) -> Vec<Member> {
    let members = of.joined.iter().map(|(manifest, alpha)| {
        let gate = gates.by_id.get(manifest);
        let decided = gate.and_then(|gate| gate.decided);
        Member {
            manifest: manifest.clone(),
            alpha_micro: *alpha,
            log_e: gate.map(|gate| Gate::log_e(gate).value()),
            ends_past: design::ln_stop(*alpha, Some(of)),
            decided: decided.map(|one| word(&one.outcome)),
            holds: closed.map(|one| one.rejected.contains(manifest)),
            margin_share: manifests.by_id.get(manifest).and_then(margin_share),
        }
    });
    members.collect()
}

/// How much of the scale the margin of a claim of noninferiority or equivalence is.
fn margin_share(record: &ManifestRecord) -> Option<f64> {
    let of = &record.in_force()?.manifest;
    let within = matches!(
        of.hypothesis.kind,
        HypothesisKind::Equivalent | HypothesisKind::Noninferior
    );
    let (test, metric) = of
        .test
        .as_ref()
        .filter(|_| within)
        .zip(of.metric.as_ref())?;
    let width = metric.scale_hi_micro.value() - metric.scale_lo_micro.value();
    let margin = test.null_margin_micro.value().unsigned_abs();
    (width > 0).then(|| margin as f64 / width as f64)
}

/// Members that hardly any candidate fails.
fn easy(view: &mut View, members: &[Member]) {
    let share = |of: &Member| of.margin_share.filter(|share| *share >= EASY_MARGIN);
    let easy = members.iter().filter_map(|of| {
        let share = share(of)?;
        Some(format!(
            "{} ({:.0} % of its scale)",
            of.manifest,
            100.0 * share
        ))
    });
    let easy: Vec<String> = easy.collect();
    if !easy.is_empty() {
        view.line(format!(
            "hardly any candidate fails, so wide is the margin of: {}. Each that holds counts as a true discovery",
            easy.join(", ")
        ));
    }
}

fn member_table(view: &mut View, members: &[Member]) {
    let rows = members.iter().map(|of| {
        let log_e = of.log_e;
        let claim = of
            .holds
            .map(|holds| if holds { "holds" } else { "does not hold" });
        vec![
            of.manifest.to_string(),
            of.alpha_micro.to_string(),
            log_e.map_or("-".to_owned(), |log_e| format!("{log_e:.4}")),
            format!("{:.4}", of.ends_past),
            of.decided.clone().unwrap_or_else(|| "open".to_owned()),
            claim.unwrap_or("-").to_owned(),
        ]
    });
    let head = ["member", "alpha", "log e", "ends past", "decided", "claim"];
    view.table(&head, rows);
}

fn merged(state: &State, id: &FamilyId) -> Vec<HypothesisEvidence> {
    let merged = family::merged(state, id).into_iter();
    let merged = merged.map(|of| HypothesisEvidence {
        h0_digest: of.h0_digest,
        log_e: of.log_e,
        members: of.members,
        p: of.p,
    });
    merged.collect()
}

fn generations(state: &State, id: &FamilyId) -> Option<Generations> {
    let of = family::loop_of(state, id)?;
    Some(Generations {
        found: of.found,
        log_e: of.log_e,
        members: of.members,
        p: of.p,
    })
}

/// What members that test one hypothesis say of it.
fn together(view: &mut View, facts: &FamilyShown) {
    for one in &facts.merged {
        let names: Vec<_> = one.members.iter().map(ToString::to_string).collect();
        view.line(format!("of one hypothesis: {}", names.join(", ")));
        view.line(format!(
            "  their mean over {} members decides nothing: log e {:.4}, p {:.4}",
            facts.terms.members_max, one.log_e, one.p
        ));
    }
}

/// What the generations of a loop say together.
fn looped(view: &mut View, found: &Generations, terms: &FamilyTerms) {
    let alpha = terms.alpha_micro as f64 / 1e6;
    view.line(format!(
        "the loop, {} of {} members one after the other: is any candidate better?",
        found.members.len(),
        terms.members
    ));
    let word = if found.found { "yes" } else { "not shown" };
    view.line(format!(
        "  product of their e-values: log e {:.4} of {:.4}, p {:.4}: {word}; it promotes none of them",
        found.log_e,
        -math::ln(alpha),
        found.p
    ));
}

/// Adds to the view of a closing which claims hold.
pub fn closed(view: View, holds: Vec<ManifestId>) -> View {
    let names: Vec<_> = holds.iter().map(ToString::to_string).collect();
    let names = if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(", ")
    };
    let mut view = appended::and(view, &Holds { holds });
    view.line(format!("claims that hold: {names}"));
    view
}
