//! `clover guide`: four questions, and the commands of the case that the answers make.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::path::Path;
use std::path::PathBuf;
use std::str::FromStr;

use clap::Parser;

use crate::cli::ctx::Ctx;
use crate::cli::current;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::intake_files;
use crate::cli::intake_verbs::GivenRows;
use crate::event::registry::Scope;
use crate::ground::ambient;
use crate::ground::shell;
use crate::ledger::KindQuery;
use crate::ledger::Ledger;
use crate::ledger::LedgerError;
use crate::ledger::read::LogEntry;
use crate::projection::tallies::Tallies;
use crate::session::Home;
use crate::session::listing;
use crate::view::Exit;
use crate::view::View;
use crate::view::guide;
use crate::view::guide::Company;
use crate::view::guide::GuideAim;
use crate::view::guide::GuideCase;
use crate::view::guide::GuideData;
use crate::view::guide::GuideNames;
use crate::view::guide::GuideRecord;
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
    /// Folder of prompts and responses [default: rows]
    #[arg(long, value_name = "DIR")]
    pub texts: Option<String>,
    /// The judge's program [default: "python3 judge.py"]
    #[arg(long, value_name = "COMMAND")]
    pub program: Option<String>,
    /// Name of the experiment [default: the one on record, else exp-1]
    #[arg(long, value_name = "ID")]
    pub experiment: Option<String>,
    /// Who you are [default: Ada]
    #[arg(long, value_name = "NAME")]
    pub holder: Option<String>,
}

/// Options of the guide as they are kept beside a ledger.
#[derive(Debug, clap::Parser)]
#[command(no_binary_name = true)]
struct KeptAnswers {
    #[command(flatten)]
    args: Args,
}

impl Args {
    /// The options that give these answers, each joined to its value.
    fn words(&self) -> Vec<String> {
        let have = self.have.as_ref().map(|have| {
            let each: Vec<_> = have.iter().map(crate::view::word).collect();
            each.join(",")
        });
        let named = [
            ("want", self.want.as_ref().map(crate::view::word)),
            ("have", have),
            ("judges", self.judges.as_ref().map(crate::view::word)),
            ("with", self.company.as_ref().map(crate::view::word)),
            ("labels", self.labels.clone()),
            ("probes", self.probes.clone()),
            ("texts", self.texts.clone()),
            ("program", self.program.clone()),
            ("experiment", self.experiment.clone()),
            ("holder", self.holder.clone()),
        ];
        let scores = self.scores.iter().map(|path| format!("--scores={path}"));
        let named = named
            .into_iter()
            .filter_map(|(name, value)| Some(format!("--{name}={}", value?)));
        named.chain(scores).collect()
    }

    /// These answers, and those of before where none is given now.
    fn or(self, before: Self) -> Self {
        Self {
            want: self.want.or(before.want),
            have: self.have.or(before.have),
            judges: self.judges.or(before.judges),
            company: self.company.or(before.company),
            scores: if self.scores.is_empty() {
                before.scores
            } else {
                self.scores
            },
            labels: self.labels.or(before.labels),
            probes: self.probes.or(before.probes),
            texts: self.texts.or(before.texts),
            program: self.program.or(before.program),
            experiment: self.experiment.or(before.experiment),
            holder: self.holder.or(before.holder),
        }
    }
}

/// What was answered beside this ledger before, where there is one; a person is told of it.
fn remembered(ctx: &mut Ctx<'_>, home: Option<&Home>, args: Args) -> Result<Args, CliError> {
    let Some(home) = home else {
        return Ok(args);
    };
    let words = home.remembered_answers()?;
    if words.is_empty() {
        return Ok(args);
    }
    let Ok(before) = KeptAnswers::try_parse_from(&words) else {
        let path = home.guide_path();
        ctx.warn(format!(
            "{}: answers of before cannot be read and are left out",
            path.display()
        ));
        return Ok(args);
    };
    let given = args.words();
    let args = args.or(before.args);
    let taken: Vec<_> = args
        .words()
        .into_iter()
        .filter(|word| !given.contains(word))
        .map(|word| shell::word(&word))
        .collect();
    if !taken.is_empty() {
        ctx.note(&format!("as answered before: {}", taken.join(" ")));
    }
    Ok(args)
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
            let message =
                format!("{option} is not given, and nobody is there to say it: {question}");
            Err(CliError::usage(message, next))
        }
    }
}

fn have(text: &str) -> Result<Vec<GuideData>, String> {
    text.split(',').map(GuideData::from_str).collect()
}

/// A file or folder that a person names for an end, with what can be read of it: it need not be there yet.
fn read(ctx: &mut Ctx<'_>, path: &str, end: &str) -> GivenRows {
    let paths = intake_files::unfolded(ctx, &[PathBuf::from(path)]).unwrap_or_default();
    let is_there = |path: &PathBuf| ambient::is_file(&ctx.path(path));
    let paths: Vec<_> = paths.into_iter().filter(is_there).collect();
    let files = paths.into_iter().filter_map(|path| {
        let bytes = ctx.read(&path).ok()?;
        Some((path, bytes))
    });
    GivenRows::of(path, files.collect()).written_to(format!("{end}-comma.csv"))
}

/// How many rows have a label, of those policies that have any: other policies were not drawn from. The rows are those of
/// the scores, or of the texts where none is scored yet.
fn share(
    scores: &[GivenRows],
    texts: &GivenRows,
    (labels, brings): (&GivenRows, Brings),
) -> Option<LabelledShare> {
    let rows = match scores.first() {
        Some(scores) => scores.rows(Brings::Scores)?,
        None => texts.rows(Brings::Texts)?,
    };
    let labels = labels.rows(brings)?;
    let labelled = labels.iter().flat_map(|file| &file.rows);
    let labelled = labelled.filter(|row| row.label.is_some());
    let labelled: BTreeSet<_> = labelled
        .map(|row| (&row.policy, &row.item, row.draw))
        .collect();
    let drawn_from: BTreeSet<_> = labelled.iter().map(|(policy, ..)| policy).collect();
    let rows = || rows.iter().flat_map(|file| &file.rows);
    // Where the labels name no policy that the rows have, nothing tells from whose rows they were drawn.
    let of_these = rows()
        .filter(|row| drawn_from.contains(&&row.policy))
        .count();
    Some(LabelledShare {
        labels: labelled.len(),
        rows: if of_these > 0 {
            of_these
        } else {
            rows().count()
        },
    })
}

pub(super) fn run(ctx: &mut Ctx<'_>, args: Args) -> Result<View, CliError> {
    let opened = match home::open_to_read(ctx) {
        Ok(opened) => Some(opened),
        Err(error) if error.exit == Exit::NotFound => None,
        Err(error) => return Err(error),
    };
    let home = opened.as_ref().map(|(home, _)| home);
    let args = remembered(ctx, home, args)?;
    let args = asked(ctx, args)?;
    // A folder that cannot be written keeps nobody from being guided.
    if let Some(Err(error)) = home.map(|home| home.remember_answers(&args.words())) {
        ctx.warn(format!("the answers are not remembered: {error}"));
    }
    let case = case(ctx, args)?;
    let record = match &opened {
        Some((_, ledger)) => Some(recorded(ledger, &case)?),
        None => None,
    };
    Ok(guide::guide(&case, record.as_ref()))
}

/// What the ledger shows of the case's experiment: entries are counted up to as many as a step leaves.
fn recorded<'l>(ledger: &'l Ledger, case: &GuideCase) -> Result<GuideRecord<'l>, CliError> {
    let mut entries = BTreeMap::new();
    for (kind, most) in guide::counted(case) {
        let is_beside = kind.scope() == Scope::Anywhere;
        let is_of = |read: &LogEntry| {
            let of = read.event.header.experiment.as_ref();
            is_beside || of.is_some_and(|of| of.as_str() == case.names.experiment)
        };
        let query = KindQuery {
            kind,
            takes: &is_of,
        };
        let mut found = 0_u64;
        listing::each::<LedgerError>(ledger, &query, (0, ledger.size()), |_| {
            found += 1;
            Ok(found < most)
        })?;
        if found > 0 {
            entries.insert(kind, found);
        }
    }
    let state = ledger.state();
    Ok(GuideRecord { state, entries })
}

/// The four questions, of which those are asked that have no answer.
fn asked(ctx: &mut Ctx<'_>, mut args: Args) -> Result<Args, CliError> {
    let next = answered(args.want);
    let question = "What do you have? scores, labels, texts, separated by commas.";
    let have = given(ctx, args.have, (question, "--have", &next), have, None)?;
    args.have = Some(have);
    let question = "One judge or several? one, several.";
    let judges = given(
        ctx,
        args.judges,
        (question, "--judges", &next),
        JudgeCount::from_str,
        Some(JudgeCount::One),
    )?;
    args.judges = Some(judges);
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
    args.want = Some(want);
    let question = "Alone or with colleagues? alone, colleagues.";
    let company = given(
        ctx,
        args.company,
        (question, "--with", &next),
        Company::from_str,
        Some(Company::Alone),
    )?;
    args.company = Some(company);
    Ok(args)
}

/// The case that the answers make, with what can be read of the files that they name.
fn case(ctx: &mut Ctx<'_>, args: Args) -> Result<GuideCase, CliError> {
    let scores = args.scores.iter().enumerate().map(|(at, path)| {
        let end = match at {
            0 => "scores".to_owned(),
            _ => format!("scores-{}", at + 1),
        };
        read(ctx, path, &end)
    });
    let scores: Vec<_> = scores.collect();
    let labels = args.labels.as_ref();
    let labels = labels.map(|path| read(ctx, path, "labels"));
    let probes = args.probes.as_ref();
    let probes = probes.map(|path| read(ctx, path, "probes"));
    let texts = read(ctx, args.texts.as_deref().unwrap_or("rows"), "texts");
    let recorded = on_record(ctx, args.experiment.as_deref());
    let (experiment, judged) = match recorded {
        Some((experiment, judged)) => (Some(experiment), judged),
        None => (None, Vec::new()),
    };
    let experiment = args.experiment.or(experiment);
    let names = GuideNames {
        experiment: experiment.unwrap_or_else(|| "exp-1".to_owned()),
        judges: judged,
        holder: args.holder.unwrap_or_else(|| "Ada".to_owned()),
        judge: args
            .program
            .unwrap_or_else(|| "python3 judge.py".to_owned()),
        share: match (&labels, scores.first()) {
            (Some(labels), _) => share(&scores, &texts, (labels, Brings::Labels)),
            // Else they may stand beside the scores.
            (None, Some(rows)) => share(&scores, &texts, (rows, Brings::Scores)),
            (None, None) => None,
        },
        probed: probes.as_ref().and_then(|probes| {
            let brings = probes.brings().unwrap_or(Brings::Scores);
            share(&scores, &texts, (probes, brings))
        }),
        scores: scores.iter().map(|of| of.file(Brings::Scores)).collect(),
        labels: labels.map(|of| of.file(Brings::Labels)),
        probes: probes.map(|of| of.file(of.brings().unwrap_or(Brings::Scores))),
        apart: texts.apart(),
        written: guide::WRITTEN
            .into_iter()
            .filter(|name| ambient::is_file(&ctx.path(Path::new(name))))
            .collect(),
        texts: texts.file(Brings::Texts),
    };
    let missing = |option: &str| {
        let message = format!("{option} is not given");
        CliError::usage(message, answered(None))
    };
    Ok(GuideCase {
        want: args.want.ok_or_else(|| missing("--want"))?,
        have: args.have.into_iter().flatten().collect::<BTreeSet<_>>(),
        judges: args.judges.unwrap_or(JudgeCount::One),
        company: args.company.unwrap_or(Company::Alone),
        names,
    })
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
                                probed: None,
                                apart: None,
                                written: BTreeSet::new(),
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
