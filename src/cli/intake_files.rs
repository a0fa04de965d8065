//! Files that are taken in or judged: folders, names, and rows whose scores are not asked for.

use std::path::Path;
use std::path::PathBuf;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::intake::HELP;
use crate::cli::intake::name;
use crate::cli::intake::scale;
use crate::cli::intake::wrong;
use crate::cli::intake_verbs::GivenRows;
use crate::event::id::FieldId;
use crate::event::id::PolicyId;
use crate::export::file_name;
use crate::ground::ambient;
use crate::ground::seal;
use crate::workflow::import;
use crate::workflow::import::Brings;
use crate::workflow::import::How;
use crate::workflow::import::ImportRow;
use crate::workflow::import::ImportRows;
use crate::workflow::import::form::FileForm;
use crate::workflow::import::row;

/// Files, with folders as the `.jsonl` files in them.
pub(super) fn unfolded(ctx: &Ctx<'_>, given: &[PathBuf]) -> Result<Vec<PathBuf>, CliError> {
    let mut paths = Vec::new();
    for path in given {
        let full = ctx.path(path);
        if !ambient::is_dir(&full) {
            paths.push(path.clone());
            continue;
        }
        let mut inside = ambient::list(&full)?;
        inside.retain(|path| path.extension().is_some_and(|end| end == "jsonl"));
        inside.sort();
        if inside.is_empty() {
            let message = format!("no .jsonl file in {}", full.display());
            return Err(CliError::not_found(message, HELP));
        }
        paths.append(&mut inside);
    }
    Ok(paths)
}

/// Where scores of rows come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scores {
    /// A judge is asked for them.
    Asked,
    /// The rows bring them along.
    Given,
}

/// Rows of JSON Lines whose labels are not asked for, each draw once.
pub(super) fn rows(
    ctx: &mut Ctx<'_>,
    pepper: &[u8; 32],
    given: &[PathBuf],
    policy: Option<&str>,
    (scores, kept): (Scores, KeptFields<'_>),
) -> Result<Vec<ImportRow>, CliError> {
    let policy = policy.map(|text| name("policy", text, PolicyId::new));
    let policy = policy.transpose()?;
    let name_prompt = |prompt: &str| prompt_name(pepper, prompt);
    let fields = kept.fields.iter();
    let fields = fields.map(|text| name("field", text, FieldId::new));
    let fields = fields.collect::<Result<Vec<_>, _>>()?;
    let mut files = Vec::new();
    for path in unfolded(ctx, given)? {
        let named = policy.clone().or_else(|| of_name(&path));
        let how = How {
            policy: named.as_ref(),
            logprobs: false,
            fields: &fields,
            brings: match scores {
                Scores::Asked => Brings::Texts,
                Scores::Given => Brings::Scores,
            },
            scale: scale("scale", "0:1")?,
            label_scale: None,
            name_prompt: &name_prompt,
        };
        let bytes = ctx.read(&path)?;
        let brings = how.brings;
        let rows = import::cje::rows(&path.display().to_string(), &bytes, how);
        let told = |error| of_rows(&path, &bytes, brings).unwrap_or_else(|| wrong(&error));
        files.push(rows.map_err(told)?);
    }
    import::distinct(&files).map_err(|error| wrong(&error))?;
    import::fields_there(&files, &fields).map_err(|error| wrong(&error))?;
    if scores == Scores::Asked {
        for file in &files {
            warn_of_fields(ctx, file, kept);
        }
    }
    let rows = files.into_iter().flat_map(|file| file.rows);
    Ok(rows.map(|row| ImportRow { label: None, ..row }).collect())
}

/// What of a file of rows is kept beside the scores.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct KeptFields<'a> {
    /// Fields, for slices.
    pub fields: &'a [String],
    /// When rows were sampled.
    pub times: bool,
}

/// Names what a file says of its rows and nobody keeps.
fn warn_of_fields(ctx: &mut Ctx<'_>, file: &ImportRows, kept: KeptFields<'_>) {
    let is_lost = |name: &&String| {
        if *name == row::SAMPLED_AT {
            return !kept.times;
        }
        // A judge is asked for its own scores, and labels come in by another verb.
        let is_left = |field: &str| [row::JUDGE_SCORE, row::ORACLE_LABEL].contains(&field);
        let mut read = row::FIELDS.iter().filter(|field| !is_left(field));
        let is_read = read.any(|field| field == name || row::also(field).contains(&name.as_str()));
        !is_read && name.as_str() != "metadata" && !kept.fields.contains(name)
    };
    let lost: Vec<&str> = file
        .names
        .iter()
        .filter(is_lost)
        .map(String::as_str)
        .collect();
    if !lost.is_empty() {
        ctx.warn(format!(
            "{}: not kept: {}; clover import rows FILE --field NAME keeps fields and times, clover import labels FILE keeps labels",
            file.file,
            lost.join(", ")
        ));
    }
}

/// Of a file that was not read: what it looks like, where that is no JSON Lines of rows, and the command that takes it in before
/// it is judged.
fn of_rows(path: &Path, bytes: &[u8], brings: Brings) -> Option<CliError> {
    let form = FileForm::of(bytes);
    if matches!(
        form,
        FileForm::JsonLines | FileForm::Empty | FileForm::Other
    ) {
        return None;
    }
    let shown = path.display().to_string();
    let message = format!(
        "{shown}: expected JSON Lines, as `--rows` reads, found {}",
        form.name()
    );
    let given = GivenRows::of(&shown, vec![(path.to_owned(), bytes.to_vec())]);
    let taken = given.file(brings).command("");
    let next = match brings {
        Brings::Texts => format!("{taken}; then the same command without --rows"),
        Brings::Scores | Brings::Labels => taken,
    };
    Some(CliError::input(message, next))
}

/// The name of a prompt that has no id.
pub(super) fn prompt_name(pepper: &[u8; 32], prompt: &str) -> String {
    let id = seal::peppered_identifier(pepper, &format!("prompt\n{prompt}"));
    format!("prompt_{}", id.to_hex())
}

/// The policy that a file is named after.
pub(super) fn of_name(path: &Path) -> Option<PolicyId> {
    let name = path.file_name()?.to_str()?;
    let ends = ["_responses.jsonl", "_probe.jsonl"];
    let stem = ends.iter().find_map(|end| name.strip_suffix(end))?;
    // A name that no export wrote stands as it is.
    let policy = file_name::decode(stem).unwrap_or_else(|| stem.to_owned());
    PolicyId::new(policy).ok()
}
