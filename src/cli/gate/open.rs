//! `clover gate open`: units, order and opening, each where it does not stand yet.

use crate::ledger::Unmet;
use std::collections::BTreeMap;
use std::path::Path;

use crate::cli::cast;
use crate::cli::cast::Part;
use crate::cli::ctx::Ctx;
use crate::cli::error;
use crate::cli::error::CliError;
use crate::cli::gate::OpenArgs;
use crate::cli::gate::RootArgs;
use crate::cli::gate::gate_id;
use crate::cli::home;
use crate::cli::submit;
use crate::cli::ui;
use crate::cli::ui::Answer;
use crate::cli::wallet;
use crate::event::Kind;
use crate::event::Payload;
use crate::event::Seen;
use crate::event::id::ExperimentId;
use crate::event::id::ItemId;
use crate::event::id::ManifestId;
use crate::event::id::MetricId;
use crate::event::id::Root;
use crate::event::id::StratumId;
use crate::event::payload::gate::GateOpened;
use crate::event::payload::gate::GateSource;
use crate::event::payload::manifest::Manifest;
use crate::event::payload::manifest::STRATA_MAX;
use crate::ground::shell;
use crate::ledger::Breach;
use crate::ledger::Command;
use crate::ledger::Ledger;
use crate::ledger::RuleName;
use crate::ledger::State;
use crate::num::Count;
use crate::projection::gates;
use crate::projection::gates::Gates;
use crate::projection::manifests::Manifests;
use crate::projection::manifests::Version;
use crate::projection::orders;
use crate::projection::orders::Orders;
use crate::session::append;
use crate::workflow::gates::steps;
use crate::workflow::gates::steps::Confirm;

const HELP: &str = "clover gate open --help";

pub(super) fn run(ctx: &mut Ctx<'_>, args: &OpenArgs) -> Result<Answer, CliError> {
    let id = gate_id(&args.id)?;
    let units = units(ctx, &args.units)?;
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let next = format!("clover prereg show {id}", id = shell::word(&id));
    let record = ledger.state().fold::<Manifests>().by_id.get(&id);
    let Some(record) = record else {
        let message = format!("no manifest {id}");
        return Err(CliError::not_found(message, "clover prereg sign FILE"));
    };
    let (Some(version), Some(bound)) = (record.in_force(), record.bound()) else {
        let message = format!("{id} has no version in force yet");
        return Err(CliError::refused(message, next));
    };
    let (version, bound) = (version.clone(), bound.clone());
    let experiment = version.manifest.experiment.clone();
    strata_fit(&units, &bound.manifest, &args.units)?;
    let root = root_fits(&units, &bound.manifest, &args.units)?;
    let sources = sources(args, &version.manifest)?;
    let is_ordered = is_drawn(&ledger, &bound);
    if !is_ordered {
        not_ordered(&ledger, &bound, &units)?;
    }
    let custodian = keys(ctx, &ledger, args, (&experiment, root, is_ordered))?;
    if args.dry_run {
        let opened = steps::open(&version, sources);
        return rehearse(ctx, &ledger, (&bound, custodian.as_ref()), (&units, opened));
    }
    let opened = steps::open(&version, sources);
    let opened = opened.ok_or_else(|| CliError::refused(format!("{id} is no gate's"), next))?;
    let signer = wallet::signer(ctx, ledger.state(), Kind::GateOpened)?;
    // Nothing is listed or drawn for a gate that could not be opened then.
    let whose = (signer.id(), Some(&experiment));
    let is_new = !ledger.state().fold::<Gates>().by_id.contains_key(&id);
    let checked = gates::may_open(ledger.state(), whose, &opened);
    if is_new && let Err(Unmet { expected, found }) = checked {
        let breach = Breach::new(RuleName::Gate, expected, found);
        return Err(error::refusal(&breach, None));
    }
    let key = ctx.globals.key.clone();
    ctx.globals.key = custodian;
    let listed = list(ctx, &mut ledger, &experiment, &units, root);
    ctx.globals.key = key;
    listed?;
    draw(ctx, &mut ledger, &bound, &units.units)?;
    let command = Command::new(opened, Some(experiment));
    let mut answer = submit::append(ctx, &mut ledger, &[command], &signer, false)?;
    tell(
        &mut answer,
        ledger.state(),
        (&id, &bound),
        units.units.len(),
    );
    Ok(answer.with_next(format!("clover exposure open {id}", id = shell::word(&id))))
}

/// The root of the file's units, which the manifest binds.
fn root_fits(confirm: &Confirm, manifest: &Manifest, file: &Path) -> Result<Root, CliError> {
    let root = confirm.root();
    let bound = manifest.data.as_ref();
    let bound = bound.filter(|data| {
        data.confirm_root != root || data.n_units.value() != confirm.units.len() as u64
    });
    let Some(data) = bound else {
        return Ok(root);
    };
    let message = format!(
        "{}: {} units under {}, and the manifest binds {} under {} (E_DATA_ROOT)",
        file.display(),
        confirm.units.len(),
        root.0.to_base64(),
        data.n_units,
        data.confirm_root.0.to_base64()
    );
    let next = format!("clover prereg show {}", shell::word(&manifest.manifest));
    Err(CliError::input(message, next))
}

/// Finds every key that the opening needs before anything is listed; answers with the custodian's.
fn keys(
    ctx: &Ctx<'_>,
    ledger: &Ledger,
    args: &OpenArgs,
    (experiment, root, is_ordered): (&ExperimentId, Root, bool),
) -> Result<Option<String>, CliError> {
    let state = ledger.state();
    let mut parts = Vec::new();
    let lists = !is_listed(ledger, experiment, root);
    if lists {
        let named = args.custodian.as_ref();
        parts.push(Part::by(state, Kind::UnitsListed, "--custodian", named));
    }
    if !is_ordered {
        parts.push(Part::by_key(state, Kind::OrderListed));
    }
    parts.push(Part::by_key(state, Kind::GateOpened));
    let mut found = cast::of_parts(ctx, state, &parts)?.into_iter();
    Ok(found.next().flatten().filter(|_| lists))
}

/// Whether no unit stood in an order before the manifest came into force, told before the units are listed.
fn not_ordered(ledger: &Ledger, bound: &Version, confirm: &Confirm) -> Result<(), CliError> {
    for unit in &confirm.units {
        let earlier = ledger.giver(&orders::ordered(unit))?;
        if let Some(earlier) = earlier.filter(|seq| *seq < orders::in_force_since(bound)) {
            let message = format!(
                "unit {unit}: expected one whose order was not drawn before the manifest came into force, found it in an order at seq {earlier} (E_ADAPTIVE_REUSE)"
            );
            return Err(CliError::refused(message, "clover gate list"));
        }
    }
    Ok(())
}

/// The strata of the file are those that the plan counts, told apart before two roots that say less.
fn strata_fit(confirm: &Confirm, manifest: &Manifest, file: &Path) -> Result<(), CliError> {
    let test = manifest.test.as_ref();
    let Some(planned) = test.and_then(|test| test.control_variate.as_ref()) else {
        return Ok(());
    };
    let planned = planned.iter().map(|one| (&one.stratum, one.units.value()));
    let planned: BTreeMap<_, _> = planned.collect();
    let found = confirm.counts();
    if planned == found {
        return Ok(());
    }
    let text = |of: &BTreeMap<&StratumId, u64>, other: &BTreeMap<&StratumId, u64>| {
        // Those that differ: there may be many.
        let differ = of
            .iter()
            .filter(|(stratum, units)| other.get(*stratum) != Some(units));
        let differ = differ.map(|(stratum, units)| format!("{units} in {:?}", stratum.as_str()));
        let differ: Vec<_> = differ.collect();
        if differ.is_empty() {
            "none more".to_owned()
        } else {
            differ.join(", ")
        }
    };
    let message = format!(
        "{}: units by stratum: expected {}, as test.control_variate has them, found {} (E_DATA_ROOT)",
        file.display(),
        text(&planned, &found),
        if confirm.strata.is_none() {
            "no strata: a tab and the stratum after each name".to_owned()
        } else {
            text(&found, &planned)
        }
    );
    let next = format!("clover gate root {}", shell::word(&file.display()));
    Err(CliError::input(message, next))
}

/// What was drawn and opened.
fn tell(answer: &mut Answer, state: &State, (id, bound): (&ManifestId, &Version), units: usize) {
    let orders = &state.fold::<Orders>().by_digest;
    let order = orders.get(&bound.digest);
    if let Some(drawn) = order.and_then(|order| order.drawn.as_ref()) {
        let (size, root) = (drawn.beacon.size, drawn.beacon.root.0.to_base64());
        answer.line(&format!(
            "order of {units} units from checkpoint {size}  {root}"
        ));
        answer.data["order"] = serde_json::json!({
            "beacon": drawn.beacon, "permutation_root": drawn.permutation_root, "seed": drawn.seed,
            "seq": drawn.seq,
        });
    }
    answer.data["gate"] = id.as_str().into();
    answer.data["open"] = state.fold::<Gates>().by_id.contains_key(id).into();
}

pub(super) fn root(ctx: &mut Ctx<'_>, args: &RootArgs) -> Result<Answer, CliError> {
    let confirm = units(ctx, &args.units)?;
    let (root, units) = (confirm.root().0.to_base64(), confirm.units.len());
    let mut text = format!("data:\n  confirm_root: {root}\n  n_units: {units}\n");
    let mut data = serde_json::json!({"confirm_root": root, "n_units": units});
    let strata = confirm.counts();
    if !strata.is_empty() {
        text.push_str(
            "test:\n  control_variate:   # FILL: the mean difference that you expect of each\n",
        );
        for (stratum, units) in &strata {
            let name = ui::escape_json(&serde_json::json!(stratum).to_string());
            text.push_str(&format!(
                "    - {{stratum: {name}, units: {units}, predicted_micro: 0}}\n"
            ));
        }
        data["strata"] = serde_json::json!(strata);
    }
    Ok(Answer::new(text, data).with_next("clover prereg new --template gate"))
}

/// Units, ascending: a name on each line, or a name, a tab and a stratum on each.
fn units(ctx: &mut Ctx<'_>, file: &Path) -> Result<Confirm, CliError> {
    let shown = file.display().to_string();
    let bytes = ctx.read(file)?;
    let text = String::from_utf8(bytes)
        .map_err(|_| CliError::input(format!("{shown}: not UTF-8"), HELP))?;
    // The mark with which some editors begin a file is no part of a name.
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let mut units: Vec<(ItemId, u64, Option<StratumId>)> = Vec::new();
    for (at, line) in (1_u64..).zip(text.lines()) {
        let wrong =
            |what: String| CliError::input(format!("{shown}: line {at}: unit: {what}"), HELP);
        let (unit, stratum) = match line.split_once('\t') {
            Some((unit, stratum)) => (unit, Some(stratum)),
            None => (line, None),
        };
        // A blank that nobody sees makes another unit, which has no scores.
        for (what, name) in [("unit", Some(unit)), ("stratum", stratum)] {
            if name.is_some_and(|name| name.trim() != name) {
                let message = format!(
                    "{shown}: line {at}: {what}: expected no blanks around it, found {:?}",
                    name.unwrap_or_default()
                );
                return Err(CliError::input(message, HELP));
            }
        }
        let unit = unit.parse().map_err(|error| wrong(format!("{error}")))?;
        let stratum = stratum.map(str::parse).transpose();
        let stratum = stratum.map_err(|error| {
            let message = format!("{shown}: line {at}: stratum, after the tab: {error}");
            CliError::input(message, HELP)
        })?;
        if units
            .first()
            .is_some_and(|(_, _, first)| first.is_some() != stratum.is_some())
        {
            let found = if stratum.is_some() { "one" } else { "none" };
            let message = format!(
                "{shown}: line {at}: expected a stratum after a tab on every line or on none, found {found}"
            );
            return Err(CliError::input(message, HELP));
        }
        units.push((unit, at, stratum));
    }
    units.sort();
    let mut pairs = units.iter().zip(units.iter().skip(1));
    if let Some(((twice, first, _), (_, again, _))) = pairs.find(|((a, ..), (b, ..))| a == b) {
        let message =
            format!("{shown}: line {again}: unit {twice} stands on line {first} too (E_DUP_UNIT)");
        return Err(CliError::input(message, HELP));
    }
    if units.is_empty() {
        return Err(CliError::input(format!("{shown}: no units"), HELP));
    }
    let (units, strata): (_, Vec<_>) = units
        .into_iter()
        .map(|(unit, _, stratum)| (unit, stratum))
        .unzip();
    let strata: Option<Vec<_>> = strata.into_iter().collect();
    let confirm = Confirm { strata, units };
    let strata = confirm.counts().len();
    if strata > STRATA_MAX {
        let message = format!("{shown}: {strata} strata, expected at most {STRATA_MAX}");
        return Err(CliError::input(message, HELP));
    }
    Ok(confirm)
}

fn sources(args: &OpenArgs, manifest: &Manifest) -> Result<Vec<GateSource>, CliError> {
    let Some(metric) = &manifest.metric else {
        return Ok(Vec::new());
    };
    let guardrails = metric.guardrails.iter().flatten().map(|one| &one.metric);
    let names = std::iter::once(&metric.metric).chain(guardrails);
    for (option, words) in [("--judge", &args.judge), ("--design", &args.design)] {
        let metrics = words.iter().map(|word| {
            let named = word.split_once('=').map(|(metric, _)| metric);
            named.unwrap_or(metric.metric.as_str())
        });
        let metrics: Vec<&str> = metrics.collect();
        let known = |of: &str| names.clone().any(|name| name.as_str() == of);
        if let Some(other) = metrics.iter().find(|of| !known(of)) {
            let message = format!("{option} {other}=…: the manifest has no metric {other}");
            return Err(CliError::usage(message, HELP));
        }
        let mut at = metrics.iter().enumerate();
        if let Some((_, twice)) = at.find(|(at, of)| metrics[..*at].contains(of)) {
            let message = format!("{option}: metric {twice} is named twice");
            return Err(CliError::usage(message, HELP));
        }
    }
    names
        .map(|name| source(args, &metric.metric, name))
        .collect()
}

/// Where the values of a metric come from; a word without `=` is the main metric's.
fn source(args: &OpenArgs, main: &MetricId, name: &MetricId) -> Result<GateSource, CliError> {
    let of = |words: &[String]| -> Option<String> {
        let mut words = words.iter().map(|word| match word.split_once('=') {
            Some((metric, value)) => (metric.to_owned(), value.to_owned()),
            None => (main.to_string(), word.clone()),
        });
        words
            .find(|(metric, _)| metric == name.as_str())
            .map(|(_, value)| value)
    };
    let wrong = |what: String| CliError::usage(what, HELP);
    let (judge, design) = (of(&args.judge), of(&args.design));
    if judge.is_some() == design.is_some() {
        let message =
            format!("metric {name}: --judge {name}=JUDGE or --design {name}=DESIGN, one of them");
        return Err(wrong(message));
    }
    let judge = judge.map(|judge| judge.parse()).transpose();
    let design = design.map(|design| design.parse()).transpose();
    Ok(GateSource {
        design: design.map_err(|error| wrong(format!("--design: {error}")))?,
        judge: judge.map_err(|error| wrong(format!("--judge: {error}")))?,
        metric: name.clone(),
    })
}

/// Appends what is said in an experiment by the key that may say it.
fn say(
    ctx: &mut Ctx<'_>,
    ledger: &mut Ledger,
    experiment: &ExperimentId,
    events: Vec<Payload>,
) -> Result<(), CliError> {
    let Some(first) = events.first() else {
        return Ok(());
    };
    let signer = wallet::signer(ctx, ledger.state(), first.kind())?;
    let command = |event| Command::new(event, Some(experiment.clone()));
    let commands: Vec<_> = events.into_iter().map(command).collect();
    ledger.append(&commands, &signer)?;
    submit::warn_of_pin(ctx, ledger);
    Ok(())
}

/// Prints what would be said: units and their order where they do not stand yet, and the opening.
fn rehearse(
    ctx: &mut Ctx<'_>,
    ledger: &Ledger,
    (bound, custodian): (&Version, Option<&String>),
    (units, opened): (&Confirm, Option<GateOpened>),
) -> Result<Answer, CliError> {
    let (experiment, state) = (&bound.manifest.experiment, ledger.state());
    let mut steps = Vec::new();
    if !is_listed(ledger, experiment, units.root()) {
        steps.push((steps::list_units(units), custodian));
    }
    if !is_drawn(ledger, bound) {
        steps.push((order(ledger, bound, &units.units).unwrap_or_default(), None));
    }
    steps.push((opened.into_iter().map(Payload::from).collect(), None));
    let (mut answer, mut numbers) = (Answer::new("", serde_json::Value::Null), BTreeMap::new());
    let mut judged = true;
    for (events, key) in steps {
        let Some(first) = events.first() else {
            continue;
        };
        let kept = ctx.globals.key.clone();
        if key.is_some() {
            ctx.globals.key = key.cloned();
        }
        let signer = wallet::signer(ctx, state, first.kind());
        ctx.globals.key = kept;
        let command = |event| Command::new(event, Some(experiment.clone()));
        let commands: Vec<_> = events.into_iter().map(command).collect();
        // Only what nothing unsaid comes before can be judged.
        let signer = signer?;
        let next = numbers
            .entry(signer.id())
            .or_insert_with(|| append::next_author_seq(ledger, &signer));
        let shown = submit::bodies(ledger, &commands, &signer, (*next, usize::from(judged)))?;
        (*next, judged) = (*next + commands.len() as u64, false);
        answer.text.push_str(&shown.text);
        answer.events.extend(shown.events);
    }
    let bodies: Vec<_> = answer.text.lines().collect();
    answer.data = serde_json::json!({"bodies": bodies});
    answer.verdict = "dry_run";
    ctx.note(
        "dry run: nothing was appended; of events that build on one another the first was judged",
    );
    Ok(answer)
}

fn is_listed(ledger: &Ledger, experiment: &ExperimentId, root: Root) -> bool {
    let known = ledger.state().fold::<Orders>().units.get(experiment);
    let complete = known.and_then(|of| of.get(&root.0));
    complete.is_some_and(|listing| listing.units.root() == root.0)
}

fn is_drawn(ledger: &Ledger, bound: &Version) -> bool {
    let orders = ledger.state().fold::<Orders>();
    let order = orders.by_digest.get(&bound.digest);
    order.is_some_and(|order| order.drawn.is_some())
}

/// The events that draw the order, from what the next entry will have seen.
fn order(ledger: &Ledger, bound: &Version, units: &[ItemId]) -> Option<Vec<Payload>> {
    let seen = Seen {
        root: Root(ledger.root()),
        size: Count::new(ledger.size()).unwrap_or_default(),
    };
    let beacon = orders::beacon(ledger.state(), bound, Some(seen))?;
    steps::draw(bound, beacon, units)
}

fn list(
    ctx: &mut Ctx<'_>,
    ledger: &mut Ledger,
    experiment: &ExperimentId,
    units: &Confirm,
    root: Root,
) -> Result<(), CliError> {
    if is_listed(ledger, experiment, root) {
        return Ok(());
    }
    say(ctx, ledger, experiment, steps::list_units(units))
}

fn draw(
    ctx: &mut Ctx<'_>,
    ledger: &mut Ledger,
    bound: &Version,
    units: &[ItemId],
) -> Result<(), CliError> {
    if is_drawn(ledger, bound) {
        return Ok(());
    }
    let events = order(ledger, bound, units);
    let Some(events) = events else {
        let id = &bound.manifest.manifest;
        let next = format!("clover prereg show {id}", id = shell::word(&id));
        return Err(CliError::refused(
            format!("{id} binds no confirm data"),
            next,
        ));
    };
    say(ctx, ledger, &bound.manifest.experiment, events)
}
