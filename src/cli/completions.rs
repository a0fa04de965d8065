//! `clover completions SHELL` and `clover man`.

use std::path::PathBuf;

use crate::cli;
use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::ids;
use crate::ground::ambient;
use crate::view::View;
use crate::view::manual;

#[derive(Debug, clap::Args)]
pub(super) struct CompletionArgs {
    /// bash, elvish, fish, powershell or zsh
    #[arg(value_enum, hide_possible_values = true)]
    pub shell: clap_complete::Shell,
}

#[derive(Debug, clap::Args)]
pub(super) struct ManArgs {
    /// Folder for one page per verb; default the first page to standard output
    #[arg(long, short, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

pub(super) fn shell(args: &CompletionArgs) -> View {
    let mut bytes = Vec::new();
    clap_complete::generate(args.shell, &mut cli::command_shown(), "clover", &mut bytes);
    let script = String::from_utf8_lossy(&bytes);
    manual::script(ids::with_ids(args.shell, &script))
}

pub(super) fn man(ctx: &mut Ctx<'_>, args: &ManArgs) -> Result<View, CliError> {
    let mut command = cli::command_shown();
    command.build();
    let Some(out) = &args.out else {
        return Ok(manual::page(page(command)?));
    };
    let folder = ctx.path(out);
    ambient::create_dirs(&folder)?;
    let mut names = Vec::new();
    write_pages(&folder, &command, "clover", &mut names)?;
    Ok(manual::pages(names, &folder.display().to_string()))
}

fn write_pages(
    folder: &std::path::Path,
    command: &clap::Command,
    name: &str,
    names: &mut Vec<String>,
) -> Result<(), CliError> {
    // The page's name is the command's words joined, as git has it.
    let titled = command
        .clone()
        .name(name.to_owned())
        .display_name(name.to_owned());
    let file = format!("{name}.1");
    ambient::replace(&folder.join(&file), page(titled)?.as_bytes(), false)?;
    names.push(file);
    for verb in command.get_subcommands() {
        write_pages(folder, verb, &format!("{name}-{}", verb.get_name()), names)?;
    }
    Ok(())
}

fn page(command: clap::Command) -> Result<String, CliError> {
    let mut bytes = Vec::new();
    let rendered = clap_mangen::Man::new(command).render(&mut bytes);
    rendered.map_err(|error| CliError::output(&error))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
