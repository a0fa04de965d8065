//! Answers of models under `clover verify --recompute`: bodies that only the vault beside the ledger opens.

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::event::payload::Verdict;
use crate::ledger::verify;
use crate::ledger::verify::Report;
use crate::model::dialect;
use crate::session::judge::reread;
use crate::session::sgd::leaks;

/// Reads answers of models again, whose bodies only the vault beside the ledger opens.
pub(super) fn read_again(ctx: &mut Ctx<'_>, report: &mut Report) -> Result<(), CliError> {
    let again = home::open_to_read(ctx).and_then(|(home, ledger)| {
        let answers = reread::all(&home, &ledger, &dialect::wire)?;
        Ok((answers, leaks::all(&home, &ledger)?))
    });
    let (again, looked) = match again {
        Ok(again) => again,
        // What does not hold up may be unreadable too.
        Err(_) if report.verdict == Verdict::Fail => return Ok(()),
        Err(error) => return Err(error),
    };
    report
        .not_checked
        .retain(|what| !what.ends_with(verify::UNREAD));
    let found = again.findings.into_iter().chain(looked.findings);
    report.add_recomputed(found.map(|of| (of.seq, of.expected, of.found)).collect());
    if again.answers + again.asks > 0 {
        report.notes.push(format!(
            "{} answers of models were read again, and {} asks were made again from texts",
            again.answers, again.asks
        ));
    }
    if looked.read > 0 {
        report.notes.push(format!(
            "{} requests, gradients and patches of runs were looked through for words of rows again",
            looked.read
        ));
    }
    let counted = |count: u64, one: &str, more: &str| {
        let what = if count == 1 { one } else { more };
        (count > 0).then(|| format!("{count} {what}"))
    };
    let answers = counted(again.unread, "answer of a model", "answers of models");
    let asks = counted(again.unasked, "ask of a model", "asks of models");
    let leaks = counted(
        looked.unread,
        "text of a run, for words of rows",
        "texts of runs, for words of rows",
    );
    let all = answers.into_iter().chain(asks).chain(leaks);
    report.not_checked.extend(all);
    if let Some(why) = again.why {
        report.notes.push(format!("what was not read again: {why}"));
    }
    Ok(())
}
