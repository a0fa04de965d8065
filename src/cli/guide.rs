//! `clover guide`: four questions, and the commands of the case that the answers make.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::str::FromStr;

use crate::cli::ctx::Ctx;
use crate::cli::current;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::intake_files;
use crate::cli::intake_verbs::GivenRows;
use crate::ground::ambient;
use crate::projection::tallies::Tallies;
use crate::view::Exit;
use crate::view::View;
use crate::view::guide;
use crate::view::guide::Company;
use crate::view::guide::GuideAim;
use crate::view::guide::GuideCase;
use crate::view::guide::GuideData;
use crate::view::guide::GuideNames;
use crate::view::guide::JudgeCount;
use crate::view::guide::LabelledShare;
use crate::workflow::import::Brings;

/// What stands below its options.
pub(super) const EXAMPLE: &str = "Without a terminal, --want and --have are needed; judges are one and you are alone by default.\n\n\
Example:\n  clover guide --want best --have scores,labels --scores fresh_draws";

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// What you want: best, value, rubric or gate
    #[arg(long, value_name = "WHAT")]
    pub want: Option<GuideAim>,
    /// What you have: scores, labels, texts, separated by commas
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    pub have: Option<Vec<GuideData>>,
    /// How many judges: one or several
    #[arg(long, value_name = "HOW MANY")]
    pub judges: Option<JudgeCount>,
    /// Who works on it: alone or colleagues
    #[arg(long = "with", value_name = "WHOM")]
    pub company: Option<Company>,
    /// File or folder of scores; may repeat, once for each judge
    #[arg(long, value_name = "PATH")]
    pub scores: Vec<String>,
    /// File of labels, where they do not stand beside the scores
    #[arg(long, value_name = "FILE")]
    pub labels: Option<String>,
    /// File or folder of rows labelled to test the calibrator [else held out of --labels]
    #[arg(long, value_name = "PATH")]
    pub probes: Option<String>,
    /// Folder of prompts and responses
    #[arg(long, value_name = "DIR", default_value = "rows")]
    pub texts: String,
    /// The judge's program
    #[arg(long, value_name = "COMMAND", default_value = "python3 judge.py")]
    pub program: String,
    /// Name of the experiment [default: the one on record, else exp-1]
    #[arg(long, value_name = "ID")]
    pub experiment: Option<String>,
    /// Who you are
    #[arg(long, value_name = "NAME", default_value = "Ada")]
    pub holder: String,
}

/// A command that answers all four questions, with what is wanted where that was said.
fn answered(want: Option<GuideAim>) -> String {
    let want = crate::view::word(&want.unwrap_or(GuideAim::Best));
    format!("clover guide --want {want} --have scores,labels --judges one --with alone")
}

/// What the ledger here has names for: the experiment, and the judges that scored in it.
fn on_record(ctx: &mut Ctx<'_>, named: Option<&str>) -> Option<(String, Vec<String>)> {
    let (home, ledger) = home::open_to_read(ctx).ok()?;
    let state = ledger.state();
    let experiment = current::experiment(ctx, &home, state, named).ok()?;
    let judges = state.fold::<Tallies>().scores.get(&experiment);
    let judges = judges.into_iter().flat_map(|of| of.keys());
    Some((
        experiment.to_string(),
        judges.map(ToString::to_string).collect(),
    ))
}

/// What was given, else what a person answers, else what stands for those who are not there.
fn given<T>(
    ctx: &mut Ctx<'_>,
    given: Option<T>,
    (question, option, next): (&str, &str, &str),
    read: impl FnOnce(&str) -> Result<T, String>,
    else_so: Option<T>,
) -> Result<T, CliError> {
    if let Some(given) = given {
        return Ok(given);
    }
    match (ctx.ask(question)?, else_so) {
        (Some(answer), _) => read(&answer).map_err(|expected| CliError::usage(expected, next)),
        (None, Some(found)) => Ok(found),
        (None, None) => {
            let message = format!("{option} is not given, and nobody is there to say it");
            Err(CliError::usage(message, next))
        }
    }
}

fn have(text: &str) -> Result<Vec<GuideData>, String> {
    text.split(',').map(GuideData::from_str).collect()
}

/// A file or folder that a person names, with what can be read of it: it need not be there yet.
fn read(ctx: &mut Ctx<'_>, path: &str) -> GivenRows {
    let paths = intake_files::unfolded(ctx, &[PathBuf::from(path)]).unwrap_or_default();
    let is_there = |path: &PathBuf| ambient::is_file(&ctx.path(path));
    let paths: Vec<_> = paths.into_iter().filter(is_there).collect();
    let files = paths.into_iter().filter_map(|path| {
        let bytes = ctx.read(&path).ok()?;
        Some((path, bytes))
    });
    GivenRows::of(path, files.collect())
}

/// How many rows of the scores, or of the texts where none is scored yet, have a label in a file of their own.
fn share(scores: &[GivenRows], texts: &GivenRows, labels: &GivenRows) -> Option<LabelledShare> {
    let rows = match scores.first() {
        Some(scores) => scores.rows(Brings::Scores)?,
        None => texts.rows(Brings::Texts)?,
    };
    let labels = labels.rows(Brings::Labels)?;
    let labelled = labels.iter().flat_map(|file| &file.rows);
    let labelled = labelled.filter(|row| row.label.is_some());
    let labelled: BTreeSet<_> = labelled
        .map(|row| (&row.policy, &row.item, row.draw))
        .collect();
    Some(LabelledShare {
        labels: labelled.len(),
        rows: rows.iter().map(|file| file.rows.len()).sum(),
    })
}

pub(super) fn run(ctx: &mut Ctx<'_>, args: Args) -> Result<View, CliError> {
    let next = answered(args.want);
    let question = "What do you have? scores, labels, texts, separated by commas.";
    let have = given(ctx, args.have, (question, "--have", &next), have, None)?;
    let question = "One judge or several? one, several.";
    let judges = given(
        ctx,
        args.judges,
        (question, "--judges", &next),
        JudgeCount::from_str,
        Some(JudgeCount::One),
    )?;
    let wants =
        GuideAim::ALL.map(|want| format!("{}: {}", crate::view::word(&want), want.meaning()));
    let question = format!("What do you want to know? {}.", wants.join("; "));
    let want = given(
        ctx,
        args.want,
        (&question, "--want", &next),
        GuideAim::from_str,
        None,
    )?;
    let question = "Alone or with colleagues? alone, colleagues.";
    let company = given(
        ctx,
        args.company,
        (question, "--with", &next),
        Company::from_str,
        Some(Company::Alone),
    )?;
    let scores: Vec<_> = args.scores.iter().map(|path| read(ctx, path)).collect();
    let labels = args.labels.as_ref().map(|path| read(ctx, path));
    let probes = args.probes.as_ref().map(|path| read(ctx, path));
    let texts = read(ctx, &args.texts);
    let recorded = on_record(ctx, args.experiment.as_deref());
    let (experiment, judged) = match recorded {
        Some((experiment, judged)) => (Some(experiment), judged),
        None => (None, Vec::new()),
    };
    let experiment = args.experiment.or(experiment);
    let names = GuideNames {
        experiment: experiment.unwrap_or_else(|| "exp-1".to_owned()),
        judges: judged,
        holder: args.holder,
        judge: args.program,
        share: labels
            .as_ref()
            .and_then(|labels| share(&scores, &texts, labels)),
        scores: scores.iter().map(|of| of.file(Brings::Scores)).collect(),
        labels: labels.map(|of| of.file(Brings::Labels)),
        probes: probes.map(|of| of.file(of.brings().unwrap_or(Brings::Scores))),
        apart: texts.apart(),
        texts: texts.file(Brings::Texts),
    };
    let case = GuideCase {
        want,
        have: have.into_iter().collect::<BTreeSet<_>>(),
        judges,
        company,
        names,
    };
    match home::open_to_read(ctx) {
        Ok((_, ledger)) => Ok(guide::guide(&case, Some(ledger.state()))),
        Err(error) if error.exit == Exit::NotFound => Ok(guide::guide(&case, None)),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;
    use crate::cli::parse;
    use crate::view::guide::GuideFile;

    /// The words of a command as a shell reads them: plain, or in single quotes.
    fn words(command: &str) -> Vec<OsString> {
        let (mut words, mut word, mut quoted) = (Vec::new(), None::<String>, false);
        for c in command.chars() {
            match c {
                '\'' => {
                    quoted = !quoted;
                    word.get_or_insert_default();
                }
                ' ' if !quoted => words.extend(word.take().map(OsString::from)),
                _ => word.get_or_insert_default().push(c),
            }
        }
        words.extend(word.map(OsString::from));
        words
    }

    #[test]
    fn every_command_of_every_case_is_one() {
        let mut count = 0;
        for want in GuideAim::ALL {
            for judges in JudgeCount::ALL {
                for company in Company::ALL {
                    for bits in 0..8_u8 {
                        let has = |at: &usize| bits >> at & 1 == 1;
                        let have = (0..3).filter(has).map(|at| GuideData::ALL[at]);
                        let case = GuideCase {
                            want,
                            have: have.collect(),
                            judges,
                            company,
                            names: GuideNames {
                                experiment: "exp 1".to_owned(),
                                judges: Vec::new(),
                                holder: "Ada of Lab".to_owned(),
                                judge: "python3 judge.py".to_owned(),
                                scores: vec![GuideFile::unread("cje", "my scores")],
                                labels: has(&1)
                                    .then(|| GuideFile::unread("labels", "labels of mine.csv")),
                                probes: has(&0).then(|| GuideFile::unread("cje", "probes")),
                                texts: GuideFile::unread("rows", "rows"),
                                share: None,
                                apart: None,
                            },
                        };
                        let view = guide::guide(&case, None);
                        for step in view.facts()["steps"].as_array().unwrap() {
                            let command = step["command"].as_str().unwrap();
                            // What holds labels out is no command of ours.
                            if command.starts_with("awk ") {
                                continue;
                            }
                            let parsed = parse(&words(command));
                            assert!(parsed.is_ok(), "{command}: {}", parsed.unwrap_err());
                            count += 1;
                        }
                    }
                }
            }
        }
        assert!(count > 500, "{count}");
    }
}
