//! Plans drafted from the fit window, and templates for a number of labels.

use std::path::Path;
use std::path::PathBuf;

use crate::cli::ctx::Ctx;
use crate::cli::current;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::prereg::PreregNewArgs;
use crate::cli::simulate::in_range;
use crate::event::id::JudgeId;
use crate::event::payload::BlobRef;
use crate::event::payload::MediaType;
use crate::event::payload::manifest::Manifest;
use crate::event::payload::manifest::Template;
use crate::ground::ambient;
use crate::ground::digest::Digest;
use crate::ground::shell;
use crate::num::Count;
use crate::num::Micro;
use crate::session::SessionError;
use crate::session::prereg::draft as session;
use crate::view::View;
use crate::view::prereg::draft;
use crate::view::prereg::file;
use crate::workflow::iterate::course::CourseError;

const HELP: &str = "clover prereg new --help";
/// Labels below which no part holds enough to fit or to test anything.
const LABELS_MIN: u64 = 160;
/// Labels beyond which a plan is sized by its data.
const LABELS_MAX: u64 = 10_000_000;

/// The template for a number of labels.
pub(super) fn sized(labels: u64) -> Result<String, CliError> {
    in_range("--labels", labels, LABELS_MIN..=LABELS_MAX, HELP)?;
    Ok(draft::sized(labels))
}

fn price(text: &str) -> Result<Micro, CliError> {
    let parsed = Micro::parse(text).ok().filter(|(_, rounded)| !rounded);
    let above = parsed.filter(|(price, _)| price.value() > 0);
    above.map(|(price, _)| price).ok_or_else(|| {
        let message =
            format!("--label-price {text:?}: expected a number above 0, of six decimals at most");
        CliError::usage(message, HELP)
    })
}

fn judge(name: &str) -> Result<JudgeId, CliError> {
    JudgeId::new(name).map_err(|error| CliError::usage(format!("--judge {name:?}: {error}"), HELP))
}

/// Where what a draft rests on is written: beside it.
fn beside(output: &Path) -> PathBuf {
    output.with_extension("basis.json")
}

/// The bytes that a plan rests on, from the file beside it where that is the one which the plan names.
pub(super) fn basis(
    ctx: &Ctx<'_>,
    file: &Path,
    manifest: &Manifest,
) -> Result<Option<Vec<u8>>, CliError> {
    let path = ctx.path(beside(file));
    let Some(annex) = manifest.annex.as_ref().filter(|_| ambient::is_file(&path)) else {
        return Ok(None);
    };
    let bytes = ambient::read(&path)?;
    Ok((Digest::blake3(&bytes) == annex.blake3).then_some(bytes))
}

/// Drafts a plan, and writes it with what it rests on.
pub(super) fn new(ctx: &mut Ctx<'_>, args: &PreregNewArgs) -> Result<View, CliError> {
    let price = args.label_price.as_deref().map(price).transpose()?;
    let (home, ledger, view) = home::view(ctx)?;
    let state = view.state(&ledger);
    let experiment = current::experiment(ctx, &home, state, args.experiment.as_deref())?;
    let through = state.size.saturating_sub(1);
    let judge = args.judge.as_deref().map(judge).transpose()?;
    let drafted = session::draft((&ledger, state), &experiment, judge.as_ref(), through);
    let drafted = drafted.map_err(|error| match error {
        // A draft reads labels of the fit window, and no iteration is there yet.
        SessionError::Course(CourseError::Unfit(_)) => {
            let experiment = shell::word(&experiment);
            let labels = format!("clover import labels FILE --experiment {experiment}");
            CliError::from(error).with_next(labels)
        }
        error => error.into(),
    })?;
    let basis = draft::basis(&drafted);
    let annex = args.file().map(|_| BlobRef {
        blake3: Digest::blake3(&basis),
        bytes: Count::new(basis.len() as u64).unwrap_or_default(),
        media: MediaType::new("application/json").expect("BUG: a media type"),
    });
    let text = draft::text(&drafted, annex.as_ref());
    let written = args.file().map(beside);
    if let (Some(output), Some(beside)) = (args.file(), &written) {
        ambient::write_new(&ctx.path(output), text.as_bytes(), 0o644)?;
        ambient::replace(&ctx.path(beside), &basis, false)?;
    }
    let facts = draft::facts(&drafted, price);
    let profile = &drafted.draft.profile;
    let draft = (&facts, profile, written.as_deref());
    Ok(file::new(
        Template::Iteration,
        text,
        args.file(),
        Some(draft),
    ))
}
