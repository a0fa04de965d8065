//! `clover erase SUBJECT`: the event first, since a rule may refuse it; then the key is destroyed. A run that
//! stopped between the two is finished by the same command.

use serde_json::json;

use crate::cli::blob;
use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::key;
use crate::cli::submit;
use crate::cli::ui::Answer;
use crate::cli::wallet;
use crate::event::Kind;
use crate::event::Payload;
use crate::event::payload::custody::SubjectErased;
use crate::ground::shell;
use crate::ledger::Command;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The subject's handle: 64 hex digits
    pub subject: String,
    /// On which ground
    #[arg(long, value_name = "TEXT")]
    pub basis: String,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
    /// Print the canonical unsigned body; destroy and append nothing
    #[arg(long)]
    pub dry_run: bool,
}

pub(super) fn run(ctx: &mut Ctx<'_>, args: &Args) -> Result<Answer, CliError> {
    let subject = blob::digest("subject", &args.subject)?;
    let (home, mut ledger) = home::open_to_write(ctx)?;
    let payload = SubjectErased {
        basis: key::text("basis", &args.basis)?,
        subject,
    };
    let vault = home.known_vault(&ctx.ambient())?;
    let held = match &vault {
        Some(vault) => vault.subject_key(&subject)?.is_some(),
        None => false,
    };
    let natural_key = Payload::from(payload.clone()).natural_key(None);
    let recorded = match natural_key {
        Some(digest) => ledger.giver(&digest)?,
        None => None,
    };
    if !held && recorded.is_none() {
        let message = format!("no key of subject {subject} in the vault: unknown here");
        return Err(CliError::not_found(message, "clover blob list"));
    }
    let signer = wallet::signer(ctx, ledger.state(), Kind::SubjectErased)?;
    let command = Command::new(payload, None);
    if args.dry_run {
        return submit::append(ctx, &mut ledger, &[command], &signer, true);
    }
    let question =
        format!("destroy the key of subject {subject}; its private content is lost for good");
    let again = format!(
        "clover erase {subject} --basis {}",
        shell::quoted(&args.basis),
        subject = shell::word(&subject)
    );
    ctx.confirm(&question, args.yes, &again)?;
    let mut answer = match recorded {
        // Recorded before: what is left to do is the key. The basis that stands is the one on record.
        Some(seq) => {
            let mut answer = Answer::new(
                format!("seq {seq}  subject.erased  already recorded\n"),
                json!({}),
            );
            answer.verdict = "already_recorded";
            answer
        }
        None => submit::append(ctx, &mut ledger, &[command], &signer, false)?,
    };
    let destroyed = match &vault {
        Some(vault) => vault
            .destroy_subject(&subject)
            .map_err(|error| CliError::from(error).with_next(format!("{again} --yes")))?,
        None => false,
    };
    let fate = if destroyed {
        "destroyed"
    } else {
        "gone before"
    };
    answer.line(&format!("key of subject {subject}: {fate}"));
    answer.data["destroyed"] = json!(destroyed);
    Ok(answer)
}
