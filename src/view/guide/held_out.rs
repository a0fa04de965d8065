//! One file of labels serves two ends: most fit the calibrator, and some are held out to test it.

use crate::view::guide::GuideCase;
use crate::view::guide::GuideFile;
use crate::view::guide::LabelledShare;
use crate::view::guide::PromptPlace;

/// Whether labels for the test are to be held out of the one file of labels.
pub(super) fn is_held_out(case: &GuideCase) -> bool {
    // Lines are drawn, so each label has to be one.
    let labels = case.names.labels.as_ref();
    labels.is_some_and(|of| of.verb == "labels") && case.names.probes.is_none()
}

/// Of how many rows, where the files tell.
fn told(share: Option<LabelledShare>) -> Option<LabelledShare> {
    share.filter(|of| of.labels <= of.rows && of.labels > 0)
}

/// Whether the files tell with which probability rows were labelled.
pub(super) fn is_known(case: &GuideCase) -> bool {
    told(case.names.share).is_some()
}

/// The probabilities with which rows were labelled, and labelled for the test, as far as the files tell.
pub(super) fn probabilities(case: &GuideCase) -> (String, String) {
    // Ten-thousandths: of many rows, a coarser number would say another draw.
    let share = |LabelledShare { labels, rows }, part: usize, of: usize| {
        let share = (labels * part * 10_000 / (rows * of)).max(1);
        if share >= 10_000 {
            return "1".to_owned();
        }
        format!("0.{share:04}").trim_end_matches('0').to_owned()
    };
    let probed = told(case.names.probed).map_or("0.05".to_owned(), |of| share(of, 1, 1));
    match told(case.names.share) {
        None => ("0.48".to_owned(), probed),
        Some(of) if is_held_out(case) => (share(of, 9, 10), share(of, 1, 10)),
        Some(of) => (share(of, 1, 1), probed),
    }
}

/// A part of a file of labels.
pub(super) fn part(labels: &GuideFile, name: &str) -> GuideFile {
    let ending = if labels.file.trim_end_matches('\'').ends_with("jsonl") {
        "jsonl"
    } else {
        "csv"
    };
    GuideFile {
        // The command that splits the file made it.
        before: String::new(),
        file: format!("{name}.{ending}"),
        ..labels.clone()
    }
}

/// The command that puts the labels of one prompt in ten into a file of their own, or of one line in ten where it cannot be told
/// where prompts stand; both files begin with the header.
pub(super) fn command(labels: &GuideFile) -> String {
    let (fit, test) = (part(labels, "calib").file, part(labels, "probes").file);
    let header = if fit.ends_with("jsonl") {
        String::new()
    } else {
        format!(r#"NR == 1 {{ print > "{fit}"; print > "{test}"; next }} "#)
    };
    let by_lot = |option: &str, key: &str| {
        format!(
            r#"{}awk {option}'BEGIN {{ srand(1) }} {header}{key}!(k in t) {{ t[k] = rand() < 0.1 }} {{ print > (t[k] ? "{test}" : "{fit}") }}' {}"#,
            labels.before, labels.file
        )
    };
    match &labels.prompt {
        Some(PromptPlace::Quoted(at)) => {
            let at = at - 1;
            format!(
                r#"{}python3 -c 'import csv, random, sys; random.seed(1); head, *rows = [row for row in csv.reader(open(sys.argv[1], encoding="utf-8-sig", newline="")) if row]; t = {{k: random.random() < 0.1 for k in sorted({{row[{at}] for row in rows}})}}; [csv.writer(open(to, "w", encoding="utf-8", newline="")).writerows([head] + [row for row in rows if t[row[{at}]] == test]) for to, test in (("{fit}", False), ("{test}", True))]' {}"#,
                labels.before, labels.file
            )
        }
        Some(PromptPlace::Column(at)) => by_lot("-F, ", &format!("{{ k = ${at} }} ")),
        // An id is a text or a number; a line without one is drawn on its own.
        Some(PromptPlace::Member(name)) => by_lot(
            "",
            &format!(
                r#"{{ match($0, /"{name}" *: *("[^"]*"|-?[0-9.]+)/); k = RSTART ? substr($0, RSTART, RLENGTH) : NR }} "#
            ),
        ),
        None => by_lot("", "{ k = NR } "),
    }
}
