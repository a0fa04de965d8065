//! Which verb takes a file, with its columns, its scale and the options that were given.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::path::Path;
use std::path::PathBuf;

use crate::cli::intake::ImportArgs;
use crate::cli::intake::SealOptions;
use crate::cli::intake_files;
use crate::cli::intake_forms;
use crate::cli::intake_forms::Verb;
use crate::cli::intake_found::FileColumns;
use crate::event::id::ItemId;
use crate::event::id::PolicyId;
use crate::ground::shell;
use crate::ground::time::Timestamp;
use crate::num::Micro;
use crate::view::guide::GuideFile;
use crate::workflow::import;
use crate::workflow::import::Brings;
use crate::workflow::import::How;
use crate::workflow::import::ImportError;
use crate::workflow::import::ImportRows;
use crate::workflow::import::csv;
use crate::workflow::import::form::FileForm;
use crate::workflow::import::row;
use crate::workflow::import::tools;
use crate::workflow::import::tools::TakenAs;
use crate::workflow::import::tools::Tool;
use crate::workflow::import::tools::ToolTerms;
use crate::workflow::split;
use crate::workflow::split::SampledTimes;

/// Options of a command that were given, as they can be typed again for `import VERB`; scales are beside them.
pub(super) fn options(common: &ImportArgs, verb: &str) -> String {
    let mut words = String::new();
    let mut add = |option: &str, value: Option<&str>| {
        if let Some(value) = value {
            words.push_str(&format!(" --{option} {}", shell::word(&value)));
        }
    };
    let other = |value: &'_ str, default: &str| (value != default).then(|| value.to_owned());
    add("experiment", common.experiment.as_deref());
    add("policy", common.policy.as_deref());
    for field in common.field.iter().filter(|_| verb != "labels") {
        add("field", Some(field));
    }
    if verb != "rows" {
        add(
            "purpose",
            common
                .purpose
                .as_deref()
                .filter(|word| *word != "calibrate"),
        );
        add("rater", other(&common.rater, "oracle").as_deref());
        add("seal", common.sealing.seal.as_deref());
        add("reveal-by", common.sealing.reveal_by.as_deref());
        add("to", common.sealing.to.as_deref());
    }
    let design = common.labels.as_deref();
    match verb {
        "rows" => {}
        "labels" => add("design", design.filter(|design| !design.is_empty())),
        _ => {
            add("judge", other(&common.judge, "judge").as_deref());
            match design {
                Some("") => words.push_str(" --labels"),
                Some(design) => words.push_str(&format!(" --labels={}", shell::word(&design))),
                None => {}
            }
        }
    }
    if common.dry_run {
        words.push_str(" --dry-run");
    }
    words
}

/// Scales that were given, as they can be typed again for `import VERB`.
fn given_scales(common: &ImportArgs, verb: &str) -> String {
    let scale = Some(&common.scale).filter(|scale| *scale != "0:1");
    let labels = common.label_scale.as_ref();
    let say = |option: &str, scale: Option<&String>| {
        scale.map_or_else(String::new, |scale| format!(" --{option} {scale}"))
    };
    match verb {
        "rows" => String::new(),
        "labels" => say("scale", labels.or(scale)),
        _ => say("scale", scale) + &say("label-scale", labels),
    }
}

/// The options by which the verb of a tool brings what another verb was asked for; `None` where its files have no such thing.
fn own_of_tool(tool: Tool, brings: Brings) -> Option<&'static str> {
    match (tool, brings) {
        (_, Brings::Scores) => Some(""),
        (Tool::Inspect | Tool::Promptfoo, Brings::Texts) => Some(" --texts-only"),
        (Tool::Langfuse, Brings::Labels) => Some(" --as label"),
        (_, Brings::Texts | Brings::Labels) => None,
    }
}

/// Whether a file of another tool holds scores of a judge, and never labels of people.
pub(super) fn has_scores_alone(form: FileForm) -> bool {
    let tool = Tool::of(form);
    tool.is_some_and(|tool| own_of_tool(tool, Brings::Labels).is_none())
}

/// The command that takes in a file of another tool; `None` for any other file.
pub(super) fn rows_of(form: FileForm, path: &Path) -> Option<String> {
    let tool = Tool::of(form)?;
    let file = shell::word(&path.display());
    Some(format!("clover import {} {file}", tool.verb()))
}

/// The command that takes in a file of a tool that was given to another verb.
fn of_tool(tool: Tool, file: &str, (verb, common): (Verb, &ImportArgs)) -> String {
    let own = own_of_tool(tool, verb.brings()).unwrap_or_default();
    // Labels stand in files of their own; what these verbs share is the rest.
    let common = ImportArgs {
        labels: None,
        sealing: SealOptions::default(),
        purpose: None,
        rater: "oracle".to_owned(),
        ..common.clone()
    };
    let options = options(&common, tool.verb());
    let scale = given_scales(&common, "labels");
    format!("clover import {} {file}{own}{options}{scale}", tool.verb())
}

/// The command that takes a file of another form.
pub(super) fn elsewhere(
    form: FileForm,
    (path, bytes): (&Path, &[u8]),
    (verb, common): (Verb, &ImportArgs),
) -> String {
    let file = shell::word(&path.display());
    let own = match verb {
        Verb::Labels | Verb::Rows => verb.name(),
        Verb::Cje | Verb::Csv | Verb::Logged | Verb::Tool(_) => "cje",
    };
    let jq = |filter: &str, own: &str| {
        let options = options(common, own);
        let scales = given_scales(common, own);
        format!(
            "jq -c '{filter}' {file} > rows.jsonl && clover import {own} rows.jsonl{options}{scales}"
        )
    };
    if let Some(tool) = Tool::of(form) {
        return of_tool(tool, &file, (verb, common));
    }
    match form {
        FileForm::JsonList => jq(".[]", own),
        FileForm::Json => jq(".[] | arrays | .[]", own),
        FileForm::Csv | FileForm::JsonLines | FileForm::Separated(_) => {
            taking((path, bytes), (verb.brings(), common))
        }
        FileForm::Utf16 => format!("iconv -f UTF-16 -t UTF-8 {file} > utf8.csv"),
        // `of_tool` has the others.
        FileForm::Empty
        | FileForm::Other
        | FileForm::Inspect
        | FileForm::InspectArchive
        | FileForm::Promptfoo
        | FileForm::Langfuse
        | FileForm::LangfuseTable
        | FileForm::OpenaiEvals
        | FileForm::Otel => intake_forms::help(verb),
    }
}

/// Rows of a file, whatever their scale; `None` where one cannot be read.
fn any_scale(
    (name, bytes): (&Path, &[u8]),
    columns: &FileColumns,
    policy: Option<&str>,
    brings: Brings,
) -> Option<ImportRows> {
    let wide = (Micro::new(-Micro::MAX)?, Micro::new(Micro::MAX)?);
    let given = policy.and_then(|name| PolicyId::new(name).ok());
    let named = given.or_else(|| intake_files::of_name(name));
    let has_own = columns.has(row::TARGET_POLICY);
    let stand_in = || PolicyId::new("policy").ok().filter(|_| !has_own);
    let policy = named.or_else(stand_in);
    let pairs = columns.map.iter();
    let map: BTreeMap<_, _> = pairs
        .map(|(field, column)| ((*field).to_owned(), column.clone()))
        .collect();
    // Rows are counted, and nothing of them is kept.
    let name_prompt = |prompt: &str| intake_files::prompt_name(&[0; 32], prompt);
    let how = How {
        policy: policy.as_ref(),
        logprobs: false,
        brings,
        scale: wide,
        label_scale: Some(wide),
        fields: &[],
        name_prompt: &name_prompt,
    };
    readable(bytes, |bytes| {
        if columns.form == FileForm::Csv {
            csv::rows("", bytes, &map, how)
        } else {
            import::cje::mapped("", bytes, &map, how)
        }
    })
}

/// The rows of a file without the lines that cannot be read; `None` where no line can.
pub(super) fn readable(
    bytes: &[u8],
    parse: impl Fn(&[u8]) -> Result<ImportRows, ImportError>,
) -> Option<ImportRows> {
    let error = match parse(bytes) {
        Ok(rows) => return Some(rows),
        Err(error) => error,
    };
    let wrong = std::iter::once(&error).chain(&error.more);
    let wrong: BTreeSet<u64> = wrong.map(|of| of.line).collect();
    // A header that is wrong, or the file as a whole, leaves nothing to read.
    if wrong.contains(&0) || wrong.contains(&1) {
        return None;
    }
    let lines = bytes.split_inclusive(|byte| *byte == b'\n');
    let lines = (1..).zip(lines).filter(|(at, _)| !wrong.contains(at));
    let rest: Vec<u8> = lines.flat_map(|(_, line)| line).copied().collect();
    parse(&rest).ok()
}

/// Rows of a file of a tool, whatever their scale; `None` where one cannot be read, or where more has to be said.
fn of_any_scale(tool: Tool, bytes: &[u8], brings: Brings) -> Option<ImportRows> {
    let wide = (Micro::new(-Micro::MAX)?, Micro::new(Micro::MAX)?);
    let stand_in = PolicyId::new("policy")
        .ok()
        .filter(|_| tool == Tool::Langfuse);
    let name_prompt = |prompt: &str| intake_files::prompt_name(&[0; 32], prompt);
    let how = How {
        policy: stand_in.as_ref(),
        logprobs: false,
        brings,
        scale: wide,
        label_scale: Some(wide),
        fields: &[],
        name_prompt: &name_prompt,
    };
    let taken_as = (brings == Brings::Labels).then_some(TakenAs::Label);
    let terms = ToolTerms {
        taken_as,
        ..ToolTerms::default()
    };
    tools::rows(tool, ("", bytes), terms, how).ok()
}

/// The scales that the values of files need, where 0 to 1 does not hold them.
fn own_scales(files: &[ImportRows], brings: Brings) -> String {
    let scale = |values: &mut dyn Iterator<Item = Micro>| {
        let all: Vec<_> = values.collect();
        intake_forms::scale_meant(&all)
    };
    let rows = || files.iter().flat_map(|file| &file.rows);
    let labels = scale(&mut rows().filter_map(|row| row.label));
    let say = |option: &str, scale: Option<String>| {
        scale.map_or_else(String::new, |scale| format!(" --{option} {scale}"))
    };
    let is_other = |scale: &String| scale != "0:1";
    match brings {
        Brings::Texts => String::new(),
        Brings::Labels => say("scale", labels.filter(is_other)),
        Brings::Scores => {
            let scores = scale(&mut rows().map(|row| row.score));
            let apart = labels.filter(|labels| Some(labels) != scores.as_ref());
            say("scale", scores.filter(is_other)) + &say("label-scale", apart)
        }
    }
}

/// The columns with those of times among them, and the rows that they give: where texts are taken in and every time is one.
fn timed(
    columns: &FileColumns,
    brings: Brings,
    read: impl Fn(&FileColumns) -> Option<ImportRows>,
) -> Option<(FileColumns, ImportRows)> {
    if brings != Brings::Texts {
        return None;
    }
    let with = columns.with_times()?;
    let rows = read(&with)?;
    let is_timed = rows.rows.iter().all(|row| row.sampled_at.is_some());
    let is_whole = read(columns).is_some_and(|all| all.rows.len() == rows.rows.len());
    (is_timed && is_whole).then_some((with, rows))
}

/// A file or folder that a person names for what it brings, as far as it could be read.
pub(super) struct GivenRows {
    given: String,
    files: Vec<(PathBuf, Vec<u8>)>,
    /// What stands between the values of the one file, where that is no comma.
    separator: Option<char>,
    /// The file that a command writes with commas.
    with_commas: String,
}

/// The file of a table once it has commas.
const WITH_COMMAS: &str = "comma.csv";

/// The command that writes a table with commas into another file.
fn with_commas(file: &str, separator: char, written: &str) -> String {
    let by = if separator == '\t' { r"\t" } else { ";" };
    format!(
        "python3 -c 'import csv, sys; csv.writer(sys.stdout).writerows(csv.reader(open(sys.argv[1], encoding=\"utf-8-sig\"), delimiter=\"{by}\"))' {file} > {written}"
    )
}

impl GivenRows {
    pub(super) fn of(given: &str, mut files: Vec<(PathBuf, Vec<u8>)>) -> Self {
        let mut separator = None;
        if let [(_, bytes)] = &mut files[..]
            && let FileForm::Separated(by) = FileForm::of(bytes)
            && let Some(with) = csv::with_commas(bytes, by)
        {
            (*bytes, separator) = (with, Some(by));
        }
        Self {
            given: given.to_owned(),
            files,
            separator,
            with_commas: WITH_COMMAS.to_owned(),
        }
    }

    /// The same with a file of its own for the table with commas, so that two of a script do not overwrite each other.
    pub(super) fn written_to(self, name: String) -> Self {
        Self {
            with_commas: name,
            ..self
        }
    }

    fn columns(&self) -> Option<FileColumns> {
        let (_, bytes) = self.files.first()?;
        FileColumns::of(bytes)
    }

    /// What the file brings.
    pub(super) fn brings(&self) -> Option<Brings> {
        Some(self.columns()?.brings())
    }

    /// Its rows, whatever their scale.
    pub(super) fn rows(&self, brings: Brings) -> Option<Vec<ImportRows>> {
        let files = self.files.iter().map(|(path, bytes)| {
            if let Some(tool) = Tool::of(FileForm::of(bytes)) {
                return of_any_scale(tool, bytes, brings);
            }
            let columns = FileColumns::of(bytes)?.meant(brings);
            let read = |columns: &FileColumns| any_scale((path, bytes), columns, None, brings);
            let timed = timed(&columns, brings, read).map(|(_, rows)| rows);
            timed.or_else(|| read(&columns))
        });
        files.collect()
    }

    /// Options that split its rows: by time where every one has one.
    pub(super) fn apart(&self) -> Option<String> {
        if self.files.is_empty() {
            return None;
        }
        let files = self.rows(Brings::Texts)?;
        let mut first: BTreeMap<&ItemId, Option<Timestamp>> = BTreeMap::new();
        for row in files.iter().flat_map(|file| &file.rows) {
            let at = first.entry(&row.item).or_insert(row.sampled_at);
            *at = at.zip(row.sampled_at).map(|(a, b)| a.min(b));
        }
        let times = SampledTimes::of(first.into_values(), split::GAP_SECONDS_DEFAULT);
        let days = times.and_then(|times| times.days);
        Some(days.map_or("--hashed".to_owned(), |(t1, t2)| {
            format!("--t1 {} --t2 {}", split::day_of(t1), split::day_of(t2))
        }))
    }

    /// How it is taken in.
    pub(super) fn file(&self, brings: Brings) -> GuideFile {
        let unread = match brings {
            Brings::Scores => "cje",
            Brings::Texts => "rows",
            Brings::Labels => "labels",
        };
        let mut file = GuideFile::unread(unread, &self.given);
        if let Some(by) = self.separator {
            let written = &self.with_commas;
            file.before = format!("{} && ", with_commas(&file.file, by, written));
            file.file.clone_from(written);
        }
        let Some((path, bytes)) = self.files.first() else {
            return file;
        };
        let columns = FileColumns::of(bytes).map(|columns| columns.meant(brings));
        let Some(columns) = columns else {
            if let Some(tool) = Tool::of(FileForm::of(bytes))
                && let Some(own) = own_of_tool(tool, brings)
            {
                tool.verb().clone_into(&mut file.verb);
                own.clone_into(&mut file.columns);
                if let Some(files) = self.rows(brings) {
                    file.scale = own_scales(&files, brings);
                }
            }
            return file;
        };
        let read = |columns: &FileColumns| any_scale((path, bytes), columns, None, brings);
        let columns = timed(&columns, brings, read).map_or(columns, |(with, _)| with);
        columns.verb(brings).clone_into(&mut file.verb);
        file.prompt = columns.prompt(bytes);
        if let Some(files) = self.rows(brings) {
            file.scale = own_scales(&files, brings);
        }
        if columns.map.is_empty() {
            return file;
        }
        if file.verb == "cje" {
            file.before = format!("jq -c {} {} > rows.jsonl && ", columns.renamed(), file.file);
            "rows.jsonl".clone_into(&mut file.file);
        } else {
            file.columns = format!(" --map {}", shell::word(&columns.pairs(bytes, brings)));
        }
        file
    }
}

/// The command that takes comma-separated values or JSON Lines with these columns: by what they bring, else by what was wanted
/// of them.
pub(super) fn taking(
    (path, bytes): (&Path, &[u8]),
    (wanted, common): (Brings, &ImportArgs),
) -> String {
    let given = GivenRows::of(
        &path.display().to_string(),
        vec![(path.to_owned(), bytes.to_vec())],
    );
    let brings = given
        .columns()
        .map_or(wanted, |of| of.meant(wanted).brings());
    let mut file = given.file(brings);
    let scales = given_scales(common, &file.verb);
    if !scales.is_empty() {
        file.scale = scales;
    }
    file.command(&options(common, &file.verb))
}
