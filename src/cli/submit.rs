//! Appending what verbs want said, or showing with `--dry-run` what would be appended.

use serde_json::json;

use crate::cli::ctx::Ctx;
use crate::cli::error;
use crate::cli::error::CliError;
use crate::cli::ui::Answer;
use crate::event::Draft;
use crate::event::Event;
use crate::event::Header;
use crate::event::Seen;
use crate::event::id::EventId;
use crate::event::id::Root;
use crate::ground::digest::Digest;
use crate::ground::sign::Signed;
use crate::ground::sign::Signer;
use crate::ledger::Appended;
use crate::ledger::Candidate;
use crate::ledger::Command;
use crate::ledger::Ledger;
use crate::ledger::rules;
use crate::num::Count;

/// Appends commands by one key as one batch, or shows them.
pub(super) fn append(
    ctx: &mut Ctx<'_>,
    ledger: &mut Ledger,
    commands: &[Command],
    signer: &Signer,
    dry_run: bool,
) -> Result<Answer, CliError> {
    if dry_run {
        return rehearse(ctx, ledger, commands, signer);
    }
    let appended = ledger.append(commands, signer)?;
    warn_of_pin(ctx, ledger);
    Ok(answer(ledger, commands, &appended))
}

/// Appends a command and one that names its event, as one batch: both stand, or neither.
pub(super) fn append_two(
    ctx: &mut Ctx<'_>,
    ledger: &mut Ledger,
    first: Command,
    second: impl FnOnce(EventId) -> Command,
    signer: &Signer,
) -> Result<Answer, CliError> {
    let number = next_author_seq(ledger, signer);
    let sign = |ledger: &Ledger, command: &Command, number| {
        let signed = draft(ledger, command, signer, number).sign(signer);
        signed.map_err(|error| CliError::input(error.to_string(), "clover blob put FILE"))
    };
    let one = sign(ledger, &first, number)?;
    let second = second(EventId(Digest::sha256(one.body())));
    let two = sign(ledger, &second, number + 1)?;
    let events = [one, two].map(|of| Signed::new(of.body().to_vec(), of.signer(), *of.signature()));
    let appended = ledger.submit(events.into())?;
    warn_of_pin(ctx, ledger);
    Ok(answer(ledger, &[first, second], &appended))
}

/// Says when the pin did not follow an append, which stands all the same.
pub(super) fn warn_of_pin(ctx: &mut Ctx<'_>, ledger: &Ledger) {
    if let Some(error) = ledger.pin_failure() {
        ctx.warn(format!(
            "recorded, and the pin lags behind: {error}; next: clover checkpoint pin"
        ));
    }
}

/// The answer after an append.
pub(super) fn answer(ledger: &Ledger, commands: &[Command], appended: &[Appended]) -> Answer {
    let kinds = commands.iter().map(|command| command.payload.kind());
    let lines = appended.iter().zip(kinds).map(|(appended, kind)| {
        let already = if appended.already {
            "  already recorded"
        } else {
            ""
        };
        format!("seq {}  {kind}  {}{already}\n", appended.seq, appended.id)
    });
    let text: String = lines.collect();
    let data = json!({
        "appended": appended.iter().filter(|appended| !appended.already).count(),
        "already": appended.iter().filter(|appended| appended.already).count(),
        "seqs": appended.iter().map(|appended| appended.seq).collect::<Vec<_>>(),
    });
    let mut answer = Answer::new(text, data).with_events(appended);
    answer.verdict = if appended.iter().all(|appended| appended.already) {
        "already_recorded"
    } else {
        "appended"
    };
    answer.checkpoint = Some((ledger.size(), ledger.root().to_base64()));
    answer
}

/// The event that a command would become at the head.
pub(super) fn draft(ledger: &Ledger, command: &Command, signer: &Signer, author_seq: u64) -> Draft {
    let keyring = &ledger.state().keyring;
    let now = ledger.ambient().now();
    let seen = Seen {
        root: Root(ledger.root()),
        size: Count::new(ledger.size()).expect("BUG: a log is below 2^53"),
    };
    let header = Header {
        at: command
            .at
            .unwrap_or(now.max(keyring.recorded_at.unwrap_or(now))),
        author: signer.id(),
        author_seq,
        experiment: command.experiment.clone(),
        ledger: keyring.origin.as_str().into(),
        refs: command.refs.clone(),
        seen: Some(seen),
    };
    Draft {
        header,
        payload: command.payload.clone(),
    }
}

/// The number of a key's next event.
pub(super) fn next_author_seq(ledger: &Ledger, signer: &Signer) -> u64 {
    let keys = &ledger.state().keyring.keys;
    keys.get(&signer.id()).map_or(0, |key| key.next_author_seq)
}

/// Prints the canonical unsigned bodies, judged by the rules that need no more than the state at the head.
fn rehearse(
    ctx: &mut Ctx<'_>,
    ledger: &Ledger,
    commands: &[Command],
    signer: &Signer,
) -> Result<Answer, CliError> {
    let first = next_author_seq(ledger, signer);
    let answer = bodies(ledger, commands, signer, (first, commands.len()))?;
    ctx.note("dry run: nothing was appended; rules that need the whole history were not asked");
    Ok(answer)
}

/// As a dry run of commands each of which builds on those before it: the first alone is judged.
pub(super) fn rehearse_story(
    ctx: &mut Ctx<'_>,
    ledger: &Ledger,
    commands: &[Command],
    signer: &Signer,
) -> Result<Answer, CliError> {
    let first = next_author_seq(ledger, signer);
    let answer = bodies(ledger, commands, signer, (first, 1))?;
    ctx.note(
        "dry run: nothing was appended; of events that build on one another the first was judged",
    );
    Ok(answer)
}

/// The canonical unsigned bodies of commands, numbered from `first`; the first `judged` of them are judged.
pub(super) fn bodies(
    ledger: &Ledger,
    commands: &[Command],
    signer: &Signer,
    (first, judged): (u64, usize),
) -> Result<Answer, CliError> {
    let mut text = String::new();
    let mut ids = Vec::new();
    for (at, (author_seq, command)) in (first..).zip(commands).enumerate() {
        let draft = draft(ledger, command, signer, author_seq);
        let body = draft
            .to_body()
            .map_err(|error| CliError::input(error.to_string(), "clover blob put FILE"))?;
        let id = EventId(Digest::sha256(&body));
        if at < judged {
            judge(ledger, draft, id)?;
        }
        text.push_str(&String::from_utf8_lossy(&body));
        text.push('\n');
        ids.push(id.to_string());
    }
    let bodies: Vec<_> = text.lines().collect();
    let mut answer = Answer::new(text.clone(), json!({"bodies": bodies}));
    answer.verdict = "dry_run";
    answer.events = ids;
    Ok(answer)
}

/// Judges a command by the rules that need no more than the state at the head, before something is done that only it makes
/// worth doing.
pub(super) fn permitted(
    ledger: &Ledger,
    command: &Command,
    signer: &Signer,
) -> Result<(), CliError> {
    let draft = draft(ledger, command, signer, next_author_seq(ledger, signer));
    judge(ledger, draft, EventId(Digest::sha256(b"")))
}

fn judge(ledger: &Ledger, draft: Draft, id: EventId) -> Result<(), CliError> {
    let v = draft.payload.kind().version();
    let event = Event {
        id,
        header: draft.header,
        payload: draft.payload,
        v,
    };
    let now = ledger.ambient().now();
    let candidate = Candidate {
        seq: ledger.size(),
        recorded_at: now.max(ledger.state().keyring.recorded_at.unwrap_or(now)),
        event: &event,
    };
    let mut breaches = Vec::new();
    rules::custody(ledger.state(), &candidate, &mut breaches);
    for rule in ledger.state().rulebook().every_rule() {
        rule.judge(ledger.state(), &candidate, &mut breaches);
    }
    match breaches.first() {
        Some(breach) => Err(error::refusal(breach, None)),
        None => Ok(()),
    }
}
