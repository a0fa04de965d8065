//! Opening sealed labels: one charge, one reader on record, and the labels at once or in parts.

use serde_json::Value;
use serde_json::json;

use crate::cli::access;
use crate::cli::confirm::Place;
use crate::cli::confirm::Row;
use crate::cli::confirm::UnsealArgs;
use crate::cli::confirm::account;
use crate::cli::confirm::broken;
use crate::cli::confirm::identity;
use crate::cli::confirm::now;
use crate::cli::confirm::period;
use crate::cli::confirm::place;
use crate::cli::confirm::rows;
use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::submit;
use crate::cli::wallet;
use crate::event::Kind;
use crate::event::Payload;
use crate::event::id::Base64Bytes;
use crate::event::id::EventId;
use crate::event::id::RowId;
use crate::event::id::Text;
use crate::event::payload::Role;
use crate::event::payload::assumption::Assumption;
use crate::event::payload::budget::BudgetCharged;
use crate::event::payload::label::LabelRevealed;
use crate::event::payload::record::ReadOutcome;
use crate::ground::digest::Digest;
use crate::ground::seal;
use crate::ground::seal::Identity;
use crate::ground::seal::LabelOpening;
use crate::ground::shell;
use crate::ground::sign::Signer;
use crate::ledger::Command;
use crate::ledger::Ledger;
use crate::num::Count;
use crate::num::Micro;
use crate::projection::assumptions::Assumptions;
use crate::projection::decisions::block::Blocks;
use crate::projection::decisions::sequence::Sequences;
use crate::session::append;

/// What an opening did.
pub(in crate::cli) struct Opened {
    /// Labels that were open before.
    pub already: usize,
    /// The charge, the labels and words for them; `None` where none was left to open.
    pub revealed: Option<(EventId, Vec<Value>, String)>,
}

/// What is said between the charge and the first label: by the custodian, of the charge. Without it the labels themselves
/// come next, so that they can be judged before a peek is charged.
pub(in crate::cli) type Between<'b> =
    Option<&'b mut dyn FnMut(&mut Ledger, EventId, &Signer) -> Result<(), CliError>>;

/// Charges a peek and reveals what waits in a design.
pub(in crate::cli) fn open(
    ctx: &mut Ctx<'_>,
    ledger: &mut Ledger,
    args: &UnsealArgs,
    between: Between<'_>,
) -> Result<Opened, CliError> {
    let opening = match begin(ctx, ledger, args, between)? {
        Ok(opening) => opening,
        Err(already) => {
            let revealed = None;
            return Ok(Opened { already, revealed });
        }
    };
    let already = opening.already;
    let (values, text) = opening.reveal_in(ctx, ledger, &|_| Some(0))?;
    let revealed = Some((opening.charge, values, text));
    Ok(Opened { already, revealed })
}

/// A design whose sealed labels are paid for.
pub(in crate::cli) struct Opening {
    already: usize,
    charge: EventId,
    known: Vec<Identity>,
    place: Place,
    signer: Signer,
    waiting: Vec<Row>,
}

/// Checks that what waits in a design can be opened, and charges a peek for it; how many labels were open before where
/// none waits.
pub(in crate::cli) fn begin(
    ctx: &mut Ctx<'_>,
    ledger: &mut Ledger,
    args: &UnsealArgs,
    between: Between<'_>,
) -> Result<Result<Opening, usize>, CliError> {
    let place = place(ledger, &args.seal)?;
    let mut rows = rows(ledger, &place.experiment, &place.design)?;
    let blocks = &ledger.state().fold::<Blocks>().by_experiment;
    let block = blocks
        .get(&place.experiment)
        .filter(|of| of.designs.contains(&place.design));
    if let Some(since) = block.and_then(|block| block.since) {
        // Labels of an older block judge nothing any more: they stay closed.
        rows.retain(|row| row.seq > since);
    }
    let (opened, waiting): (Vec<Row>, Vec<Row>) = rows.into_iter().partition(|row| row.is_revealed);
    let already = opened.len();
    if waiting.is_empty() {
        return Ok(Err(already));
    }
    if let Some(row) = waiting.iter().find(|row| !row.is_accepted) {
        let message = format!("seal: row {} has no seal.accepted", row.label.row);
        let next = format!("clover confirm seal {}", shell::word(&place.design));
        return Err(CliError::refused(message, next));
    }
    let failed = ledger.state().fold::<Assumptions>();
    if let Some(seq) = failed.failed(Assumption::CloverJ2, Some(&place.experiment)) {
        let message = format!(
            "blocked: CLOVER.J2 fails in {} since the score.conflict at seq {seq}; no peek was charged",
            place.experiment
        );
        return Err(CliError::refused(message, "clover assume show CLOVER.J2"));
    }
    let signer = wallet::signer(ctx, ledger.state(), Kind::LabelRevealed)?;
    let mut known = Vec::new();
    for row in &waiting {
        // Nothing is paid for what could not be opened.
        identity(ctx, ledger.state(), (&args.seal, &row.label), &mut known)?;
    }
    if let (None, Some(row)) = (&between, waiting.first()) {
        may_be_revealed(ledger, &place, row, &signer)?;
    }
    let newest = waiting.iter().map(|row| row.seq).max().unwrap_or(0);
    let charge = match paid(ledger, &place, args, newest)? {
        Some(charge) => charge,
        None => charge(ctx, ledger, &place, args, waiting.len())?,
    };
    // From here on the peek is on record, under a signed checkpoint.
    if let Some(between) = between {
        between(ledger, charge, &signer)?;
    }
    Ok(Ok(Opening {
        already,
        charge,
        known,
        place,
        signer,
        waiting,
    }))
}

/// Whether labels of a design may be shown now, all at once, by the rules that look at the state alone.
fn may_be_revealed(
    ledger: &Ledger,
    place: &Place,
    row: &Row,
    signer: &Signer,
) -> Result<(), CliError> {
    let Place { design, experiment } = place;
    let sequences = ledger.state().fold::<Sequences>();
    if let Some(id) = sequences.shows_in_order(experiment, design) {
        let message = format!(
            "sealing: labels of {design} are shown in the order that iteration {id} draws; no peek was charged"
        );
        return Err(CliError::refused(
            message,
            format!("clover iterate confirm {id}", id = shell::word(&id)),
        ));
    }
    // Only what the file alone can tell, the charge and the opening, is not known yet.
    let like = LabelRevealed {
        charge: EventId(Digest::sha256(b"")),
        design: design.clone(),
        row: row.label.row.clone(),
        salt: Base64Bytes([0; 32]),
        value_micro: Micro::default(),
    };
    let like = Command::new(like, Some(experiment.clone()));
    Ok(append::permitted(ledger, &like, signer)?)
}

/// What a charge says it is for, so that a run that was cut goes on under the peek it paid.
fn purpose(place: &Place, args: &UnsealArgs) -> Result<Text, CliError> {
    let text = format!(
        "unseal {} of {}: {}",
        place.design, place.experiment, args.purpose
    );
    Text::new(text)
        .ok_or_else(|| CliError::usage("--for: too long", "clover confirm unseal --help"))
}

/// A charge for this very opening, made when everything that waits was sealed: a run that was cut goes on under it.
fn paid(
    ledger: &Ledger,
    place: &Place,
    args: &UnsealArgs,
    newest: u64,
) -> Result<Option<EventId>, CliError> {
    let wanted = purpose(place, args)?;
    let mut found = None;
    ledger.entries::<CliError>(0, ledger.size(), |read| {
        if let Payload::BudgetCharged(charged) = &read.event.payload
            && charged.purpose == wanted
            && charged.account.as_str() == args.account
            && read.stored.seq > newest
        {
            found = Some(read.event.id);
        }
        Ok(())
    })?;
    Ok(found)
}

/// Asks, charges one peek, and ends in a checkpoint that covers it.
fn charge(
    ctx: &mut Ctx<'_>,
    ledger: &mut Ledger,
    place: &Place,
    args: &UnsealArgs,
    count: usize,
) -> Result<EventId, CliError> {
    let now = now(ledger);
    let account = account(ledger, &args.account, now)?;
    let (peek, amount) = (account.spent(now) + 1, account.amount);
    let (unit, spenders) = (account.unit.clone(), account.spenders.clone());
    let period = period(account, now);
    let question = format!(
        "open {count} labels of {} with {unit} {peek} of {amount} in {period}",
        place.design
    );
    let own = || {
        let (design, purpose) = (&place.design, &args.purpose);
        format!(
            "clover confirm unseal {} --for {}",
            shell::word(design),
            shell::quoted(purpose)
        )
    };
    let again = args.again.clone().unwrap_or_else(own);
    ctx.confirm(&question, args.yes, &again)?;
    let payload = BudgetCharged {
        account: args.account.parse().map_err(|error| {
            let message = format!("--account {:?}: {error}", args.account);
            CliError::usage(message, "clover budget list")
        })?,
        amount: Count::new(1).expect("BUG: one is a count"),
        purpose: purpose(place, args)?,
    };
    let signer = wallet::spender(ctx, ledger.state(), Some(&spenders))?;
    let appended = ledger.append(&[Command::new(payload, None)], &signer)?;
    ctx.note(&format!(
        "{unit} {peek} of {amount} in {period} charged at seq {}",
        appended[0].seq
    ));
    Ok(appended[0].id)
}

impl Opening {
    /// Decrypts and reveals rows in one batch: those with a place, in order of their places.
    pub(in crate::cli) fn reveal_in(
        &self,
        ctx: &mut Ctx<'_>,
        ledger: &mut Ledger,
        asked: &dyn Fn(&RowId) -> Option<usize>,
    ) -> Result<(Vec<Value>, String), CliError> {
        let placed = self.waiting.iter();
        let placed = placed.filter_map(|row| Some((asked(&row.label.row)?, row)));
        let mut placed: Vec<(usize, &Row)> = placed.collect();
        placed.sort_by_key(|(place, _)| *place);
        let rows: Vec<&Row> = placed.into_iter().map(|(_, row)| row).collect();
        reveal(ctx, ledger, self, &rows)
    }
}

fn reveal(
    ctx: &mut Ctx<'_>,
    ledger: &mut Ledger,
    opening: &Opening,
    waiting: &[&Row],
) -> Result<(Vec<Value>, String), CliError> {
    let Opening {
        charge,
        known,
        place,
        signer,
        ..
    } = opening;
    let charge = *charge;
    let origin = ledger.state().keyring.origin.clone();
    let (mut commands, mut values) = (Vec::new(), Vec::new());
    for row in waiting {
        let label = &row.label;
        let plain = seal::decrypt(&label.envelope.0, known).map_err(|error| broken(row, &error))?;
        let plain = zeroize::Zeroizing::new(plain);
        let opening = LabelOpening::from_bytes(&plain).filter(|opening| {
            opening.commitment(&origin, place.design.as_str(), label.row.as_str())
                == label.commitment
        });
        let opened =
            opening.and_then(|opening| Some((opening.salt, Micro::new(opening.value_micro)?)));
        let (salt, value) = opened.ok_or_else(|| {
            broken(
                row,
                &"it does not open to its commitment: report it, never seal it again",
            )
        })?;
        values.push(json!({"row": label.row.as_str(), "value_micro": value.value()}));
        let payload = LabelRevealed {
            charge,
            design: place.design.clone(),
            row: label.row.clone(),
            salt: Base64Bytes(salt),
            value_micro: value,
        };
        commands.push(Command::new(payload, Some(place.experiment.clone())));
    }
    let late = now(ledger);
    let late = waiting
        .iter()
        .filter(|row| row.label.reveal_by < late)
        .count();
    // Who opens the labels reads them: that is on record as any other read.
    let mut rows: Vec<_> = waiting.iter().map(|row| row.label.row.as_str()).collect();
    rows.sort_unstable();
    let (reader, root) = (signer.id(), access::rows_root(rows));
    let role = Some(Role::Custodian);
    let outcome = ReadOutcome::Allowed;
    let read = access::read("label", outcome, "unsealed", (reader, role), Some(root))?;
    commands.push(Command::new(read, Some(place.experiment.clone())));
    ledger.append(&commands, signer)?;
    ledger.settle()?;
    submit::warn_of_pin(ctx, ledger);
    if late > 0 {
        ctx.warn(format!("{late} labels were revealed after their deadline"));
    }
    let text = format!(
        "revealed {} labels of {} under charge {charge}\n",
        values.len(),
        place.design
    );
    Ok((values, text))
}
