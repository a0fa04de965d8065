//! `clover seal`: labels committed and encrypted to the custodian, opened only after their peek was charged.

use std::path::PathBuf;

use serde_json::json;

use crate::cli::access;
use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::error::Exit;
use crate::cli::home;
use crate::cli::record;
use crate::cli::submit;
use crate::cli::ui::Answer;
use crate::cli::wallet;
use crate::event::Kind;
use crate::event::Payload;
use crate::event::id::Base64Bytes;
use crate::event::id::Base64Text;
use crate::event::id::DesignId;
use crate::event::id::EventId;
use crate::event::id::ExperimentId;
use crate::event::id::RowId;
use crate::event::payload::Role;
use crate::event::payload::label::LabelRevealed;
use crate::event::payload::label::LabelSealed;
use crate::event::payload::label::SealAccepted;
use crate::event::payload::record::ReadOutcome;
use crate::ground::digest::Digest;
use crate::ground::seal;
use crate::ground::seal::LabelOpening;
use crate::ledger::Command;
use crate::ledger::Ledger;
use crate::num::Micro;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Commit to a label and encrypt it to a custodian
    #[command(
        override_usage = "clover seal label --experiment ID --design ID --row ID --value V --to KEY --reveal-by TIME",
        after_help = "Example:\n  clover seal label --experiment arena --design confirm --row 7 --value @v --to cust \\\n    --reveal-by 2027-01-31T00:00:00.000000Z"
    )]
    Label(LabelArgs),
    /// State, as the custodian, that an envelope opens under your identity
    #[command(
        after_help = "Example:\n  clover seal accept --experiment arena --design confirm --row 7"
    )]
    Accept(AcceptArgs),
    /// Open a label after its peek was charged
    #[command(
        after_help = "Example:\n  clover seal reveal --experiment arena --design confirm --row 7 --charge 3d0c…"
    )]
    Reveal(RevealArgs),
}

/// Which label.
#[derive(Debug, clap::Args)]
pub(super) struct RowArgs {
    /// The experiment
    #[arg(long, value_name = "ID")]
    pub experiment: String,
    /// The label design
    #[arg(long, value_name = "ID")]
    pub design: String,
    /// The row of the design
    #[arg(long, value_name = "ID")]
    pub row: String,
    /// Print the canonical unsigned body and append nothing
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct LabelArgs {
    #[command(flatten)]
    pub row: RowArgs,
    /// The label as a decimal; @FILE or - keeps it out of the shell's history
    #[arg(long, value_name = "VALUE|@FILE|-", allow_hyphen_values = true)]
    pub value: String,
    /// The custodian's key: a name, an id or a holder
    #[arg(long, value_name = "KEY")]
    pub to: String,
    /// By when it is to be revealed
    #[arg(long, value_name = "TIME")]
    pub reveal_by: String,
}

#[derive(Debug, clap::Args)]
pub(super) struct AcceptArgs {
    #[command(flatten)]
    pub row: RowArgs,
    /// The age identity; default among your keys
    #[arg(long, value_name = "FILE")]
    pub identity: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(super) struct RevealArgs {
    #[command(flatten)]
    pub row: RowArgs,
    /// Id of the budget.charged event that paid for it
    #[arg(long, value_name = "ID")]
    pub charge: String,
    /// The age identity; default among your keys
    #[arg(long, value_name = "FILE")]
    pub identity: Option<PathBuf>,
}

pub(super) fn run(ctx: &mut Ctx<'_>, verb: Verb) -> Result<Answer, CliError> {
    match verb {
        Verb::Label(args) => label(ctx, &args),
        Verb::Accept(args) => accept(ctx, &args),
        Verb::Reveal(args) => reveal(ctx, &args),
    }
}

/// The parsed names of a label.
struct Place {
    experiment: ExperimentId,
    design: DesignId,
    row: RowId,
}

impl Place {
    fn new(args: &RowArgs) -> Result<Self, CliError> {
        let wrong = |what: &str, text: &str, error: crate::event::id::IdError| {
            CliError::usage(
                format!("--{what} {text:?}: {error}"),
                "clover seal label --help",
            )
        };
        let (design, row) = (&args.design, &args.row);
        Ok(Self {
            experiment: record::experiment_id(&args.experiment)?,
            design: design
                .parse()
                .map_err(|error| wrong("design", design, error))?,
            row: row.parse().map_err(|error| wrong("row", row, error))?,
        })
    }
}

/// The label from the command line, a file or standard input, exact to the millionth.
fn value(ctx: &mut Ctx<'_>, text: &str) -> Result<Micro, CliError> {
    let text = match text.strip_prefix('@') {
        Some(file) => String::from_utf8_lossy(&ctx.read(file.as_ref())?).into_owned(),
        None if text == "-" => String::from_utf8_lossy(&ctx.read("-".as_ref())?).into_owned(),
        None => text.to_owned(),
    };
    match Micro::parse(text.trim()) {
        Ok((value, false)) => Ok(value),
        Ok((_, true)) => Err(CliError::input(
            "--value: expected at most six decimals",
            "clover seal label --help",
        )),
        Err(error) => Err(CliError::input(
            format!("--value: {error}"),
            "clover seal label --help",
        )),
    }
}

fn age(error: &seal::AgeError) -> CliError {
    CliError::integrity(
        "seal_broken",
        error.to_string(),
        "clover log --kind label.sealed",
    )
}

fn label(ctx: &mut Ctx<'_>, args: &LabelArgs) -> Result<Answer, CliError> {
    let row = Place::new(&args.row)?;
    let value = value(ctx, &args.value)?;
    let reveal_by = record::time(&args.reveal_by)?;
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let signer = wallet::signer(ctx, ledger.state(), Kind::LabelSealed)?;
    let custodian = wallet::resolve(ctx, ledger.state(), &args.to)?;
    let keyring = &ledger.state().keyring;
    let recipient = keyring.keys[&custodian]
        .seal_recipient
        .clone()
        .ok_or_else(|| {
            let message = format!("key {custodian} has no recipient to seal to");
            CliError::refused(message, "clover key new NAME --role custodian --seal")
        })?;
    let ambient = ctx.ambient();
    let opening = ambient.with_entropy(|entropy| LabelOpening::draw(value.value(), entropy))?;
    let envelope = ambient
        .with_entropy(|entropy| {
            seal::encrypt(opening.to_bytes().as_slice(), &[recipient.0], entropy)
        })
        .map_err(|error| age(&error))?;
    let (design, id) = (row.design, row.row);
    let payload = LabelSealed {
        commitment: opening.commitment(&keyring.origin, design.as_str(), id.as_str()),
        design,
        envelope: Base64Text(envelope),
        recipient,
        reveal_by,
        row: id,
    };
    let command = Command::new(payload, Some(row.experiment));
    submit::append(ctx, &mut ledger, &[command], &signer, args.row.dry_run)
}

/// The recorded seal of a row.
fn sealed(ledger: &Ledger, row: &Place) -> Result<LabelSealed, CliError> {
    // The natural key of label.sealed depends on its experiment, design and row alone.
    let like = LabelSealed {
        commitment: Digest([0; 32]),
        design: row.design.clone(),
        envelope: Base64Text(Vec::new()),
        recipient: crate::event::id::SealRecipient(
            seal::Identity::from_bytes(&[0; 32]).recipient(),
        ),
        reveal_by: crate::ground::time::Timestamp::EPOCH,
        row: row.row.clone(),
    };
    let natural_key = Payload::from(like).natural_key(Some(&row.experiment));
    let seq = match natural_key {
        Some(digest) => ledger.giver(&digest)?,
        None => None,
    };
    let read = match seq {
        Some(seq) => ledger.entry(seq)?,
        None => None,
    };
    if let Some(Payload::LabelSealed(sealed)) = read.map(|read| read.event.payload) {
        return Ok(*sealed);
    }
    let message = format!(
        "no sealed label of row {} in design {} of {}",
        row.row, row.design, row.experiment
    );
    Err(CliError::not_found(
        message,
        "clover log --kind label.sealed",
    ))
}

fn accept(ctx: &mut Ctx<'_>, args: &AcceptArgs) -> Result<Answer, CliError> {
    let row = Place::new(&args.row)?;
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let signer = wallet::signer(ctx, ledger.state(), Kind::SealAccepted)?;
    let sealed = sealed(&ledger, &row)?;
    let identity = wallet::identity(
        ctx,
        ledger.state(),
        args.identity.as_deref(),
        &sealed.recipient.0,
    )?;
    seal::check_header(&sealed.envelope.0, &[identity]).map_err(|error| age(&error))?;
    let payload = SealAccepted {
        design: row.design,
        envelope_sha256: Digest::sha256(&sealed.envelope.0),
        row: row.row,
    };
    let command = Command::new(payload, Some(row.experiment));
    submit::append(ctx, &mut ledger, &[command], &signer, args.row.dry_run)
}

/// Refuses a charge that is not a recorded `budget.charged` under the newest checkpoint.
fn check_charge(ledger: &Ledger, charge: EventId) -> Result<(), CliError> {
    let next = "clover record budget.charged --data '{\"account\":…,\"amount\":1,\"for\":…}'";
    let seq = ledger.find(charge)?.filter(|seq| *seq < ledger.size());
    let read = match seq {
        Some(seq) => ledger.entry(seq)?,
        None => None,
    };
    match read {
        Some(read) if read.event.kind() == Kind::BudgetCharged => Ok(()),
        Some(read) => {
            let message = format!("--charge is a {}, not a budget.charged", read.event.kind());
            Err(CliError::refused(message, next))
        }
        None => {
            let message = "--charge is no event of this ledger: a label is opened only after its peek was charged";
            Err(CliError::refused(message, next))
        }
    }
}

fn reveal(ctx: &mut Ctx<'_>, args: &RevealArgs) -> Result<Answer, CliError> {
    let row = Place::new(&args.row)?;
    let charge = record::event_id(&args.charge)?;
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let signer = wallet::signer(ctx, ledger.state(), Kind::LabelRevealed)?;
    let sealed = sealed(&ledger, &row)?;
    check_charge(&ledger, charge)?;
    if args.row.dry_run {
        // A body would show the label: nothing is decrypted before it is revealed.
        let message = "a reveal cannot be rehearsed without opening the label";
        return Err(CliError::refused(
            message,
            "the same command without --dry-run",
        ));
    }
    let identity = wallet::identity(
        ctx,
        ledger.state(),
        args.identity.as_deref(),
        &sealed.recipient.0,
    )?;
    let plain = seal::decrypt(&sealed.envelope.0, &[identity]).map_err(|error| age(&error))?;
    let plain = zeroize::Zeroizing::new(plain);
    let origin = ledger.state().keyring.origin.clone();
    let opening = LabelOpening::from_bytes(&plain)
        .filter(|opening| {
            opening.commitment(&origin, row.design.as_str(), row.row.as_str()) == sealed.commitment
        })
        .ok_or_else(|| {
            let message =
                "the envelope does not open to its commitment: report it, never seal it again";
            CliError::integrity("seal_broken", message, "clover log --kind label.sealed")
        })?;
    let value = Micro::new(opening.value_micro).ok_or_else(|| {
        CliError::new(
            Exit::Integrity,
            "seal_broken",
            "the label is out of range",
            "clover verify",
        )
    })?;
    let payload = LabelRevealed {
        charge,
        design: row.design,
        row: row.row,
        salt: Base64Bytes(opening.salt),
        value_micro: value,
    };
    // Who opens a label reads it: that is on record as any other read.
    let reader = (signer.id(), Some(Role::Custodian));
    let root = Some(access::rows_root([payload.row.as_str()]));
    let read = access::read("label", ReadOutcome::Allowed, "unsealed", reader, root)?;
    let commands = [
        Command::new(payload, Some(row.experiment.clone())),
        Command::new(read, Some(row.experiment)),
    ];
    let mut answer = submit::append(ctx, &mut ledger, &commands, &signer, false)?;
    answer.line(&format!("value {}", decimal(value)));
    answer.data["value_micro"] = json!(value.value());
    Ok(answer)
}

/// Millionths as a decimal.
fn decimal(value: Micro) -> String {
    let (sign, magnitude) = match value.value() {
        negative if negative < 0 => ("-", negative.unsigned_abs()),
        other => ("", other.unsigned_abs()),
    };
    let (whole, part) = (magnitude / 1_000_000, magnitude % 1_000_000);
    let part = format!("{part:06}");
    match part.trim_end_matches('0') {
        "" => format!("{sign}{whole}"),
        part => format!("{sign}{whole}.{part}"),
    }
}
