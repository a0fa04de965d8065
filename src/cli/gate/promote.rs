//! `clover gate promote` and `revoke`: what a release may rest on.

use serde_json::json;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::gate::PromoteArgs;
use crate::cli::gate::RevokeArgs;
use crate::cli::gate::gate_id;
use crate::cli::gate::known;
use crate::cli::home;
use crate::cli::key;
use crate::cli::record;
use crate::cli::submit;
use crate::cli::ui::Answer;
use crate::cli::wallet;
use crate::event::Kind;
use crate::event::payload::decision::PromotionRevoked;
use crate::ground::shell;
use crate::ledger::Command;
use crate::projection::gates::Gates;
use crate::projection::gates::Promotion;
use crate::workflow::gates::steps;

pub(super) fn promote(ctx: &mut Ctx<'_>, args: &PromoteArgs) -> Result<Answer, CliError> {
    let ids: Vec<_> = args
        .ids
        .iter()
        .map(|id| gate_id(id))
        .collect::<Result<_, _>>()?;
    let expires = args.expires.as_deref().map(record::time).transpose()?;
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let (size, mut progress) = (ledger.size(), ctx.progress("entries read again"));
    ledger.check_state(|done| progress.at(done, size))?;
    drop(progress);
    for id in &ids {
        known(ledger.state(), id)?;
    }
    let now = ledger.ambient().now();
    let next = format!("clover gate show {}", shell::word(&ids[0]));
    let Some(mut issued) = steps::promote(ledger.state(), &ids, now) else {
        let message = format!("{} has no candidate in force", ids[0]);
        return Err(CliError::refused(message, next));
    };
    let mut all = ledger.state().fold::<Gates>().promotions.iter();
    let same = |one: &&Promotion| one.gates == issued.gates;
    if let Some(seq) = all.find(same).and_then(|one| one.revoked_seq) {
        let message = format!("the promotion on these gates was revoked at seq {seq}");
        return Err(CliError::refused(message, next));
    }
    issued.expires_at = expires;
    let (candidate, grade) = (issued.candidate_digest, json!(issued.grade));
    let signer = wallet::signer(ctx, ledger.state(), Kind::PromotionIssued)?;
    let command = Command::new(issued, None);
    let mut answer = submit::append(ctx, &mut ledger, &[command], &signer, args.dry_run)?;
    if args.dry_run {
        return Ok(answer);
    }
    answer.line(&format!(
        "promoted: {candidate}, grade {}",
        grade.as_str().unwrap_or_default()
    ));
    answer.data["candidate_digest"] = json!(candidate);
    answer.data["grade"] = grade;
    Ok(answer.with_next(next))
}

pub(super) fn revoke(ctx: &mut Ctx<'_>, args: &RevokeArgs) -> Result<Answer, CliError> {
    let reason = key::text("reason", &args.reason)?;
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let mut all = ledger.state().fold::<Gates>().promotions.iter();
    let Some(found) = all.find(|one| one.seq == args.seq) else {
        let message = format!("no promotion at seq {}", args.seq);
        return Err(CliError::not_found(
            message,
            "clover log --kind promotion.issued",
        ));
    };
    let next = found
        .gates
        .first()
        .map(|id| format!("clover gate show {id}", id = shell::word(&id)));
    let revoked = PromotionRevoked {
        promotion: found.id,
        reason,
    };
    let signer = wallet::signer(ctx, ledger.state(), Kind::PromotionRevoked)?;
    let command = Command::new(revoked, None);
    let answer = submit::append(ctx, &mut ledger, &[command], &signer, args.dry_run)?;
    Ok(answer.with_next(next.unwrap_or("clover gate list".to_owned())))
}
