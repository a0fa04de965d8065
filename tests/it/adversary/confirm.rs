//! Small worlds about a confirm block: right before its iteration opens, and right after its candidates were sealed.
//! Watched are the rows that a confirm criterion reads, who pays for the look, and what is left to pay with.

use std::collections::BTreeSet;
use std::sync::Arc;

use clover::event::Payload;
use clover::event::id::Base64Bytes;
use clover::event::id::Base64Text;
use clover::event::id::EventId;
use clover::event::id::ItemId;
use clover::event::id::Root;
use clover::event::id::SealRecipient;
use clover::event::payload::Role;
use clover::event::payload::budget::BudgetCharged;
use clover::event::payload::intake::SplitPart;
use clover::event::payload::label::LabelRevealed;
use clover::event::payload::label::LabelSealed;
use clover::event::payload::label::SealAccepted;
use clover::event::payload::predicate::ConfirmUnsealed;
use clover::ground::digest::Digest;
use clover::ground::seal;
use clover::ground::seal::Identity;
use clover::ground::time::Timestamp;
use clover::num::Count;
use clover::num::Micro;
use clover::projection::budgets::Budgets;
use clover::projection::budgets::Purpose;
use clover::projection::decisions::AllDecisions;
use clover::projection::iterations::Iterations;
use clover::projection::manifests;
use clover::projection::manifests::Manifests;
use clover::workflow::split;
use clover::workflow::split::Apart;
use serde_json::Value;
use serde_json::json;

use super::search::Allowed;
use super::search::Letter;
use super::search::Observed;
use super::search::Run;
use super::search::Told;
use super::search::World;
use crate::support::decided;
use crate::support::decided::of;
use crate::support::iterated;
use crate::support::planned;
use crate::support::planned::payload;
use crate::support::samples::*;
use crate::support::signer;
use crate::support::text;

pub const IT: &str = "it-7";
const DESIGN: &str = "hold-7";
/// Confirm labels that are sealed before the iteration opens.
const SEALED: usize = 3;
/// The value of a label that was sealed in time, and of one that was sealed late.
const VALUES: [i64; 2] = [250_000, 900_000];

/// What the events of the story are made of.
pub struct Parts {
    pub plan: Value,
    pub patch: Payload,
    pub candidate: Digest,
    pub items: Vec<ItemId>,
    pub root: Root,
    /// From the opening of the iteration to its sealed candidates.
    steps: Vec<(u8, Payload)>,
    /// What the gates say on confirm.
    judged: Vec<Payload>,
}

impl Parts {
    fn new() -> Self {
        let plan = iterated::plan(EXPERIMENT, "m-7");
        let concise = iterated::patch("concise-7", "length_bias_cap", iterated::CONCISE);
        let patch = iterated::proposed(IT, &concise);
        let candidate = decided::patch_of(&patch).0;
        let (mut items, mut root) = (Vec::new(), None);
        for event in split_events("split-7", 'q', 11) {
            match event {
                Payload::SplitsListed(said) if said.part == SplitPart::Confirm => {
                    items.extend(said.clusters);
                }
                Payload::SplitsFormed(said) => root = Some(said.confirm.root),
                _ => {}
            }
        }
        let judged = decided::gates(&plan, candidate, "confirm");
        let judged = judged.iter().map(|gate| of(gate, IT)).collect();
        let mut parts = Self {
            plan,
            patch,
            candidate,
            items,
            root: root.unwrap(),
            steps: Vec::new(),
            judged,
        };
        parts.steps = parts.told_steps();
        parts
    }

    fn told_steps(&self) -> Vec<(u8, Payload)> {
        let result = decided::patch_of(&self.patch).1;
        let mut steps = vec![
            (BEN, iterated::opened(&self.plan, IT, "2026Q3")),
            (BEN, of(&decided::label_process(), IT)),
            (BEN, of(&decided::audited(), IT)),
            (BEN, of(&decided::classified(), IT)),
            (RUNNER_3, of(&decided::battery_in_force(), IT)),
            (RUNNER, self.patch.clone()),
            (
                RUNNER_3,
                of(&decided::battery(Some(self.candidate), result, &[]), IT),
            ),
        ];
        let dev = decided::gates(&self.plan, self.candidate, "dev");
        steps.extend(dev.iter().map(|gate| (BEN, of(gate, IT))));
        steps.push((BEN, of(&decided::sealed(&[self.candidate]), IT)));
        steps
    }
}

fn split_events(name: &str, letter: char, seed: u64) -> Vec<Payload> {
    let clusters = (0..16).map(|i| (format!("{letter}{i:02}").parse().unwrap(), None));
    let parts = split::parts(&clusters.collect(), seed, Apart::Hashed).unwrap();
    let seed = Count::new(seed).unwrap();
    split::events(&name.parse().unwrap(), seed, Apart::Hashed, &parts)
}

fn recipient() -> SealRecipient {
    SealRecipient(Identity::from_bytes(&[0xa0; 32]).recipient())
}

fn row(item: &ItemId) -> String {
    format!("base/{item}/0")
}

/// A score of a confirm row by the judge of the story.
fn scored(item: &ItemId) -> Payload {
    let data = json!({
        "draw": 0, "item": item, "judge": "builtin", "policy": "base", "score_micro": 500_000,
    });
    payload("score.recorded", &data)
}

fn envelope(item: &ItemId) -> Vec<u8> {
    format!("age-encryption.org/v1\nan envelope of {item}").into_bytes()
}

fn sealed(item: &ItemId, value: i64) -> Payload {
    LabelSealed {
        commitment: seal::commitment(ORIGIN, DESIGN, &row(item), &[9; 32], value),
        design: DESIGN.parse().unwrap(),
        envelope: Base64Text(envelope(item)),
        recipient: recipient(),
        reveal_by: Timestamp::parse("2027-01-01T00:00:00.000000Z").unwrap(),
        row: row(item).parse().unwrap(),
    }
    .into()
}

fn accepts(item: &ItemId) -> Payload {
    SealAccepted {
        design: DESIGN.parse().unwrap(),
        envelope_sha256: Digest::sha256(&envelope(item)),
        row: row(item).parse().unwrap(),
    }
    .into()
}

fn shown(item: &ItemId, value: i64, charge: EventId) -> Payload {
    LabelRevealed {
        charge,
        design: DESIGN.parse().unwrap(),
        row: row(item).parse().unwrap(),
        salt: Base64Bytes([9; 32]),
        value_micro: Micro::new(value).unwrap(),
    }
    .into()
}

fn charge(account: &str) -> Payload {
    BudgetCharged {
        account: account.parse().unwrap(),
        amount: Count::new(1).unwrap(),
        purpose: text(IT),
    }
    .into()
}

fn account(name: &str, unit: &str, spender: &str) -> Payload {
    let data = json!({
        "account": name, "amount": 5, "period": "quarter", "purpose": "more of it", "spenders": [spender],
        "unit": unit,
    });
    payload("budget.opened", &data)
}

fn design(name: &str) -> Payload {
    let data = json!({
        "design": name, "inclusion_micro": 1_000_000, "protocol": "sdp-1", "purpose": "confirm",
    });
    payload("label.design_registered", &data)
}

/// The story, up to the opening of the iteration or to its sealed candidates.
fn told(parts: &Parts, is_open: bool) -> Told {
    let mut teller = Teller::begin();
    for (name, who, holder, role) in [
        ("key-ben", BEN, "Ben", Role::Arbiter),
        ("key-opal", RUNNER, "Opal", Role::Optimizer),
        ("key-runa", RUNNER_2, "Runa", Role::Scorer),
        ("key-mal", RUNNER_3, "Mal", Role::Adversary),
        ("key-lena", LENA, "Lena", Role::Labeler),
        ("key-petra", PETRA, "Petra", Role::Approver),
    ] {
        teller.say(ADA, name, key_added(&signer(who), holder, true, &[role]));
    }
    let cleo = clover::event::payload::custody::KeyAdded {
        seal_recipient: Some(recipient()),
        ..key_added(&signer(CLEO), "Cleo", true, &[Role::Custodian])
    };
    teller.say(ADA, "key-cleo", cleo);
    teller.say_in(ADA, "registered", planned::experiment_registered());
    teller.say(ADA, "peeks", iterated::peek_account());
    teller.say_in(ADA, "rubric", iterated::rubric_registered(iterated::RUBRIC));
    teller.say_in(RUNNER_2, "judge", decided::judge());
    teller.say_in(ADA, "anchors", iterated::anchors(200));
    teller.say_in(ADA, "manifest", planned::registered(&parts.plan));
    for event in split_events("split-7", 'q', 11) {
        teller.say_in(BEN, "split", event);
    }
    for item in &parts.items {
        teller.say_in(RUNNER_2, "scored", scored(item));
    }
    teller.say_in(LENA, "design", design(DESIGN));
    for item in &parts.items[..SEALED] {
        teller.say_in(CLEO, "seal", sealed(item, VALUES[0]));
        teller.say_in(CLEO, "takes", accepts(item));
    }
    if is_open {
        for (who, step) in parts.steps.clone() {
            teller.say_in(who, "step", step);
        }
    }
    let story = teller.finish();
    Told {
        lines: story.lines,
        blobs: story.blobs,
    }
}

/// The newest charge of anybody since the history.
fn newest_charge(run: &Run) -> Option<EventId> {
    let charges = run.trail.iter().rev();
    let mut charges =
        charges.filter(|(_, event)| matches!(event.payload, Payload::BudgetCharged(_)));
    charges.next().map(|(_, event)| event.id)
}

fn unsealed(run: &Run, root: Root, charge: EventId) -> Option<Payload> {
    let decided = run.trial.state().fold::<AllDecisions>();
    let sealed = decided.of(&IT.parse().unwrap())?.sealed.as_ref()?;
    let said = ConfirmUnsealed {
        charge,
        confirm_root: root,
        iteration: IT.parse().unwrap(),
        sealed: sealed.once.id,
    };
    Some(said.into())
}

/// What the plan of the iteration says now, with one edit.
fn amendment(run: &Run, edit: impl Fn(&mut Value)) -> Option<Payload> {
    let record = &run.trial.state().fold::<Manifests>().by_id[&"m-7".parse().unwrap()];
    let parent = record.in_force()?;
    let old = serde_json::to_value(&parent.manifest).unwrap();
    let mut new = planned::next(&old, &old);
    edit(&mut new);
    let class = manifests::class(&parent.manifest, &planned::manifest(&new));
    Some(planned::amended(&new, &old, class))
}

type Say = Box<dyn Fn(&Run) -> Option<Payload> + Send + Sync>;

/// The same payload each time.
fn fixed(payload: Payload) -> Say {
    Box::new(move |_| Some(payload.clone()))
}

fn letter(role: &'static str, who: u8, name: &str, make: Say) -> Letter {
    Letter {
        role,
        who,
        name: name.to_owned(),
        experiment: Some(EXPERIMENT),
        is_stale: false,
        make,
    }
}

/// The same of no experiment.
fn apart(role: &'static str, who: u8, name: &str, payload: Payload) -> Letter {
    Letter {
        experiment: None,
        ..letter(role, who, name, fixed(payload))
    }
}

fn custodian(parts: &Arc<Parts>) -> Vec<Letter> {
    let said = |name: &str, make: Say| letter("custodian", CLEO, name, make);
    let mut all = vec![
        apart("custodian", CLEO, "charge", charge("confirm-peeks")),
        apart("custodian", CLEO, "charge side", charge("side")),
    ];
    let root = parts.root;
    let unseal = move |run: &Run| unsealed(run, root, newest_charge(run)?);
    all.push(said("unseal", Box::new(unseal)));
    for at in 0..SEALED {
        let item = parts.items[at].clone();
        let reveal = move |run: &Run| Some(shown(&item, VALUES[0], newest_charge(run)?));
        all.push(said(&format!("reveal {at}"), Box::new(reveal)));
    }
    let late = parts.items[SEALED].clone();
    all.push(said("late: seal", fixed(sealed(&late, VALUES[1]))));
    all.push(said("late: accept", fixed(accepts(&late))));
    let reveal = move |run: &Run| Some(shown(&late, VALUES[1], newest_charge(run)?));
    all.push(said("late: reveal", Box::new(reveal)));
    all
}

fn registrar() -> Vec<Letter> {
    let amend = |name: &str, edit: fn(&mut Value)| {
        let make = move |run: &Run| amendment(run, edit);
        letter("owner", ADA, name, Box::new(make))
    };
    let retired = json!({"key_id": signer(CLEO).id().to_string(), "reason": "she left"});
    let custodian = clover::event::payload::custody::KeyAdded {
        seal_recipient: Some(recipient()),
        ..key_added(&signer(STELLA), "Stella", true, &[Role::Custodian])
    };
    let closed = payload(
        "experiment.closed",
        &json!({"outcome": "aborted", "reason": "enough"}),
    );
    vec![
        apart(
            "owner",
            ADA,
            "open side",
            account("side", "peek", "custodian"),
        ),
        apart(
            "owner",
            ADA,
            "open shared",
            account("shared", "peek", "optimizer"),
        ),
        apart(
            "owner",
            ADA,
            "open labels",
            account("labels", "label", "custodian"),
        ),
        apart(
            "owner",
            ADA,
            "retire custodian",
            payload("key.retired", &retired),
        ),
        apart("owner", ADA, "add custodian", custodian.into()),
        amend("amend words", |new| new["title"] = "Sources".into()),
        amend("amend level", |new| {
            new["iteration"]["alpha_micro"] = 100_000.into();
        }),
        amend("amend account", |new| {
            new["iteration"]["design"]["peek_account"] = "side".into();
        }),
        letter("owner", ADA, "close experiment", fixed(closed)),
    ]
}

fn others(parts: &Parts) -> Vec<Letter> {
    let mut all = vec![
        letter(
            "arbiter",
            BEN,
            "close stopped",
            fixed(iterated::closed(IT, "stopped")),
        ),
        letter(
            "arbiter",
            BEN,
            "close none accepted",
            fixed(iterated::closed(IT, "none_accepted")),
        ),
        letter(
            "arbiter",
            BEN,
            "open next",
            fixed(iterated::opened(&parts.plan, "it-8", "2026Q3")),
        ),
        letter(
            "optimizer",
            RUNNER,
            "withdraw",
            fixed(iterated::withdrawn(IT, "concise-7")),
        ),
        apart("optimizer", RUNNER, "charge shared", charge("shared")),
        letter("labeler", LENA, "design hold-8", fixed(design("hold-8"))),
    ];
    let second = iterated::patch("risks-7", "contradiction_check", iterated::STAKEHOLDERS);
    let second = iterated::proposed(IT, &second);
    all.push(letter("optimizer", RUNNER, "propose", fixed(second)));
    for gate in &parts.judged {
        let name = match gate {
            Payload::GateEvaluated(said) => format!("judge {}", said.gate.as_str()),
            _ => unreachable!("a gate"),
        };
        all.push(letter("arbiter", BEN, &name, fixed(gate.clone())));
    }
    for event in split_events("split-8", 'r', 12) {
        let name = match &event {
            Payload::SplitsListed(said) => format!("split again: {}", said.part),
            _ => "split again: form".to_owned(),
        };
        all.push(letter("arbiter", BEN, &name, fixed(event)));
    }
    let label = |item: &str| {
        let data = json!({
            "design": "open-7", "draw": 0, "item": item, "policy": "base", "purpose": "calibrate", "rater": "lena",
            "value_micro": 900_000,
        });
        payload("label.recorded", &data)
    };
    let confirm = parts.items[0].as_str();
    all.push(letter(
        "labeler",
        LENA,
        "label a confirm cluster",
        fixed(label(confirm)),
    ));
    let score = json!({
        "draw": 1, "item": confirm, "judge": "builtin", "policy": "base", "score_micro": 900_000,
    });
    let score = payload("score.recorded", &score);
    all.push(letter(
        "scorer",
        RUNNER_2,
        "score a confirm cluster",
        fixed(score),
    ));
    let waived = json!({
        "code": "ADV", "expires_at": "2027-01-01T00:00:00.000000Z", "reason": "no battery",
    });
    let waived = payload("assumption.waived", &waived);
    all.push(letter("approver", PETRA, "waive", fixed(waived)));
    let note = payload("note.recorded", &json!({"text": "as it was"}));
    let deviated = planned::deviated(&parts.plan);
    for (role, who) in [
        ("custodian", CLEO),
        ("owner", ADA),
        ("arbiter", BEN),
        ("optimizer", RUNNER),
        ("labeler", LENA),
        ("scorer", RUNNER_2),
        ("approver", PETRA),
    ] {
        all.push(apart(role, who, "note", note.clone()));
        let stale = apart(role, who, "note of an older head", note.clone());
        all.push(Letter {
            is_stale: true,
            ..stale
        });
        all.push(letter(role, who, "deviate", fixed(deviated.clone())));
    }
    all
}

/// Charges, unseals and shows what is sealed, unless somebody did; then says what the criterion reads.
fn observe(run: &mut Run, parts: &Parts, is_open: bool) -> Observed {
    match continued(run, parts, is_open) {
        Ok(found) => found,
        Err(rule) => Observed::from([("stopped", rule.to_owned())]),
    }
}

fn continued(run: &mut Run, parts: &Parts, is_open: bool) -> Result<Observed, &'static str> {
    let it = IT.parse().unwrap();
    if !is_open {
        for (who, step) in parts.steps.clone() {
            run.say(who, Some(EXPERIMENT), step)?;
        }
    }
    let is_unsealed = |run: &Run| {
        let decided = run.trial.state().fold::<AllDecisions>();
        decided.of(&it).is_some_and(|of| of.unsealed.is_some())
    };
    let mut found = Observed::new();
    found.insert("payers", payers(run, parts));
    if !is_unsealed(run) {
        let charge = run.say(CLEO, None, charge("confirm-peeks"))?;
        let unsealing = unsealed(run, parts.root, charge).ok_or("candidates")?;
        run.say(CLEO, Some(EXPERIMENT), unsealing)?;
    }
    let charge = run
        .trail
        .iter()
        .find_map(|(_, event)| match &event.payload {
            Payload::ConfirmUnsealed(said) => Some(said.charge),
            _ => None,
        });
    let charge = charge.ok_or("unsealing")?;
    for (at, item) in parts.items.iter().enumerate() {
        let value = VALUES[usize::from(at >= SEALED)];
        // What is refused was shown before, or never sealed.
        let _ = run.say(CLEO, Some(EXPERIMENT), shown(item, value, charge));
    }
    for gate in &parts.judged {
        // One that was said before is said.
        if let Err(rule) = run.say(BEN, Some(EXPERIMENT), gate.clone())
            && rule != "natural_key"
        {
            return Err(rule);
        }
    }
    found.insert("rows", rows_read(run, parts));
    let state = run.trial.state();
    let budgets = &state.fold::<Budgets>().accounts;
    let left = budgets[&"confirm-peeks".parse().unwrap()].left(run.now());
    found.insert("left", left.to_string());
    let it = state.fold::<Iterations>().by_id.get(&it);
    found.insert(
        "terms",
        it.map_or(String::new(), |it| it.params_hash.short().to_string()),
    );
    Ok(found)
}

/// Accounts of peeks whose charge pays for the unsealing of the iteration.
fn payers(run: &mut Run, parts: &Parts) -> String {
    let length = run.trail.len();
    let budgets = &run.trial.state().fold::<Budgets>().accounts;
    let peeks = budgets
        .iter()
        .filter(|(_, of)| of.purpose() == Purpose::Peeks);
    let names: Vec<String> = peeks.map(|(name, _)| name.to_string()).collect();
    let mut paying = BTreeSet::new();
    for name in names {
        for who in [CLEO, RUNNER] {
            if let Ok(charge) = run.say(who, None, charge(&name))
                && let Some(unsealing) = unsealed(run, parts.root, charge)
                && run.say(CLEO, Some(EXPERIMENT), unsealing).is_ok()
            {
                paying.insert(name.clone());
            }
            run.back_to(length);
        }
    }
    // After the unsealing nothing pays any more: what did is what counts.
    let spent = run
        .trail
        .iter()
        .find_map(|(_, event)| match &event.payload {
            Payload::ConfirmUnsealed(said) => Some(said.charge),
            _ => None,
        });
    let by = run
        .trail
        .iter()
        .find_map(|(_, event)| match &event.payload {
            Payload::BudgetCharged(said) if Some(event.id) == spent => {
                Some(said.account.to_string())
            }
            _ => None,
        });
    paying.extend(by);
    paying.into_iter().collect::<Vec<_>>().join(" ")
}

/// Places and values of the confirm labels that count: shown after the unsealing, and before the first gate on confirm.
fn rows_read(run: &Run, parts: &Parts) -> String {
    let (mut is_unsealed, mut rows) = (false, BTreeSet::new());
    for (_, event) in &run.trail {
        match &event.payload {
            Payload::ConfirmUnsealed(_) => is_unsealed = true,
            Payload::GateEvaluated(said) if said.split.as_str() == "confirm" => break,
            Payload::LabelRevealed(said) if is_unsealed => {
                let mut items = parts.items.iter();
                let at = items.position(|item| row(item) == said.row.as_str());
                rows.insert((at, said.value_micro.value()));
            }
            _ => {}
        }
    }
    format!("{rows:?}")
}

fn allowed(is_open: bool) -> Vec<Allowed> {
    let early = Allowed {
        field: "rows",
        letters: &["late"],
        keys: 1,
        why: "a label that is sealed before the iteration opens counts: nobody knows a candidate yet",
    };
    let always = vec![
        Allowed {
            field: "left",
            letters: &["charge", "unseal"],
            keys: 1,
            why: "the custodian spends from the account, on record; a peek that is wasted is one fewer, never one more",
        },
        Allowed {
            field: "terms",
            letters: &["amend"],
            keys: 1,
            why: "before the iteration opens, its registrar amends the plan, on record, with a class",
        },
    ];
    let early = (!is_open).then_some(early);
    always.into_iter().chain(early).collect()
}

fn world(name: &'static str, is_open: bool) -> World {
    let parts = Arc::new(Parts::new());
    let mut letters = custodian(&parts);
    letters.extend(registrar());
    letters.extend(others(&parts));
    let story = told(&parts, is_open);
    World {
        name,
        rulebook: 17,
        most: [2, 8_000],
        told: story,
        letters,
        observe: Box::new(move |run| observe(run, &parts, is_open)),
        trace: |_| Vec::new(),
        allowed: allowed(is_open),
    }
}

/// Right before the iteration opens.
pub fn before() -> World {
    world("confirm, before the iteration opens", false)
}

/// Right after its candidates were sealed.
pub fn after() -> World {
    world("confirm, after the candidates were sealed", true)
}
