//! A plan drafted from the fit window: the file, what it rests on, and what its labels can show.

use serde::Serialize;

use crate::event::payload::BlobRef;
use crate::event::payload::intake::SplitPart;
use crate::event::payload::intake::SplitSeparation;
use crate::event::payload::manifest::ShiftMetric;
use crate::event::payload::manifest::SliceFamily;
use crate::event::payload::manifest::Template;
use crate::num::Micro;
use crate::rubric::leaf::Family;
use crate::session::prereg::draft::LedgerDraft;
use crate::view::View;
use crate::view::iterate::reach::ExpectedPause;
use crate::view::prereg::file;
use crate::view::text::thousands;
use crate::workflow::iterate::draft;
use crate::workflow::iterate::draft::InSight;
use crate::workflow::iterate::draft::Profile;
use crate::workflow::iterate::rows;
use crate::workflow::iterate::wider;

/// Column at which comments begin, as in the template.
const COMMENT_AT: usize = 34;

/// Numbers of fit, dev and confirm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OfParts {
    /// Of fit.
    pub fit: u64,
    /// Of dev.
    pub dev: u64,
    /// Of confirm.
    pub confirm: u64,
}

impl From<[u64; 3]> for OfParts {
    fn from([fit, dev, confirm]: [u64; 3]) -> Self {
        Self { fit, dev, confirm }
    }
}

/// The largest improvement that the fit window lets expect.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Sight {
    /// The family of slices.
    pub family: String,
    /// The slice.
    pub slice: String,
    /// Labelled fit rows in it.
    pub rows: u64,
    /// Its mean residual, shrunk towards that of its family.
    pub mean: f64,
    /// The improvement of the mean squared error, were that mean corrected.
    pub effect: f64,
    /// Standard deviation of the loss difference of a row.
    pub deviation: f64,
}

/// What a number of labels shows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Shows {
    /// Labels of all parts.
    pub labels: u64,
    /// Labels of each part.
    pub of_parts: OfParts,
    /// The smallest improvement of the mean squared error that they show; `null` where they show none.
    pub detectable: Option<f64>,
    /// What the labels beyond those at hand cost; `null` without a price.
    pub cost: Option<f64>,
}

/// What a draft rests on and what it comes to.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DraftFacts {
    /// How it was drafted, by name and version.
    pub algorithm: &'static str,
    /// The experiment.
    pub experiment: String,
    /// The split whose fit part was read.
    pub split: String,
    /// Root of that part.
    pub fit_root: String,
    /// Whose scores were read.
    pub judge: String,
    /// The last entry that was read.
    pub through_seq: u64,
    /// Labelled fit rows: the only labels that were read.
    pub labelled: u64,
    /// What labels are shares of, in words; absent where they go from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_scale: Option<String>,
    /// Scored rows.
    pub rows: OfParts,
    /// Whether it is held to what few labels can show.
    pub few_labels: bool,
    /// The improvement that the confirm block is planned for.
    pub effect: f64,
    /// Standard deviation of the paired loss difference.
    pub difference_sd: f64,
    /// The same in a slice that a patch leaves alone.
    pub green_sd: f64,
    /// Slices that may not get worse.
    pub green_slices: u64,
    /// Rows of the smallest of them.
    pub slice_rows_min: u64,
    /// The largest improvement in sight; `null` where no slice is off.
    pub in_sight: Option<Sight>,
    /// The slice that is off the most, where its cell is too small for a plan; absent where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub too_small: Option<Sight>,
    /// What the labels at hand show, and more of them.
    pub shows: Vec<Shows>,
    /// Labels that would show what is in sight; `null` where nothing is, or no number would.
    pub labels_needed: Option<u64>,
    /// The pause that waits; `null` where labels are too few to tell.
    pub pause: Option<ExpectedPause>,
}

/// What a draft comes to, with the price of a label.
pub fn facts(of: &LedgerDraft, price: Option<Micro>) -> DraftFacts {
    let (draft, window) = (&of.draft, &of.window);
    let at_hand: u64 = draft.sizes.iter().sum();
    let shows = |sizes: [u64; 3], detectable: Option<f64>| {
        let labels: u64 = sizes.iter().sum();
        let more = labels.saturating_sub(at_hand) as f64;
        Shows {
            labels,
            of_parts: sizes.into(),
            detectable,
            cost: price.map(|price| more * price.value() as f64 / 1e6),
        }
    };
    let more = draft.more.iter().map(|of| shows(of.sizes, of.detectable));
    let first = shows(draft.sizes, draft.detectable);
    DraftFacts {
        algorithm: draft::ALGORITHM,
        experiment: of.experiment.to_string(),
        split: window.split.to_string(),
        fit_root: window.fit_root.0.to_base64(),
        judge: window.judge.to_string(),
        through_seq: window.through.value(),
        labelled: window.labelled(),
        label_scale: window.label_scale.and_then(rows::label_scale_in_words),
        rows: [SplitPart::Fit, SplitPart::Dev, SplitPart::Confirm]
            .map(|part| window.rows_of(part))
            .into(),
        few_labels: at_hand < draft::FEW_LABELS,
        effect: draft.effect,
        difference_sd: draft.difference_sd,
        green_sd: draft.green_sd,
        green_slices: draft.green_slices,
        slice_rows_min: draft.slice_rows_min,
        in_sight: draft.in_sight.as_ref().map(sight),
        too_small: draft.too_small.as_ref().map(sight),
        shows: std::iter::once(first).chain(more).collect(),
        labels_needed: draft.labels_needed,
        pause: draft.pause.map(ExpectedPause::from),
    }
}

fn sight(of: &InSight) -> Sight {
    Sight {
        family: of.family.to_string(),
        slice: of.slice.to_string(),
        rows: of.rows as u64,
        mean: of.mean,
        effect: of.effect,
        deviation: of.deviation,
    }
}

/// What a draft rests on as a file, so that its digest can stand in the plan.
///
/// # Panics
/// Never: the facts of a view are JSON.
pub fn basis(of: &LedgerDraft) -> Vec<u8> {
    let facts = facts(of, None);
    let mut bytes = serde_json::to_vec_pretty(&facts).expect("BUG: facts of a view are JSON");
    bytes.push(b'\n');
    bytes
}

/// Whole millionths, up to the next one.
fn micro(value: f64) -> String {
    format!("{:.0}", (value * 1e6).ceil())
}

/// Whole millionths of a number that is one.
fn given(value: f64) -> String {
    format!("{:.0}", value * 1e6)
}

/// A line of the template with a value, and another comment where there is one.
fn set(line: &str, value: &str, comment: Option<&str>) -> String {
    let (key, rest) = line.split_once(':').unwrap_or((line, ""));
    let old = rest.split_once("# ").map_or("", |(_, comment)| comment);
    let comment = comment.unwrap_or_else(|| old.trim_start_matches("FILL: "));
    let start = format!("{key}: {value}");
    format!("{start:<width$} # {comment}", width = COMMENT_AT - 1)
}

/// The template of an iteration with values in place of its own, by the name of their field.
fn with(values: &[(&str, String, Option<String>)], slices: Option<&str>) -> String {
    let mut text = String::new();
    let (mut in_slices, mut is_drafted) = (false, false);
    for line in file::template(Template::Iteration).lines() {
        if in_slices && !line.starts_with("     ") {
            in_slices = false;
        }
        // A comment that goes on is of the template's own value.
        let goes_on = line.trim_start().starts_with("# ") && line.find('#') == Some(COMMENT_AT);
        if in_slices || is_drafted && goes_on {
            continue;
        }
        is_drafted = false;
        let name = line.trim_start().split(':').next().unwrap_or_default();
        let value = values.iter().find(|(of, ..)| *of == name);
        if let (Some(slices), "slices") = (slices, name) {
            text.push_str(slices);
            in_slices = true;
        } else if let Some((_, value, comment)) = value {
            text.push_str(&set(line, value, comment.as_deref()));
            is_drafted = comment.is_some();
        } else {
            text.push_str(line);
        }
        text.push('\n');
    }
    text
}

fn slices(families: &[SliceFamily]) -> String {
    if families.is_empty() {
        return "    slices: []                    # no field parts these rows into cells that they can judge"
            .to_owned();
    }
    let mut text = "    slices:                       # drafted: whose cells these rows can judge; stakes are yours to say"
        .to_owned();
    for family in families {
        text.push_str(&format!(
            "\n      - family: {}\n        cells:",
            family.family
        ));
        for cell in &family.cells {
            let conditions = serde_json::to_string(&cell.conditions);
            let conditions = conditions.expect("BUG: conditions are JSON");
            text.push_str(&format!(
                "\n          - {{slice: {}, conditions: {conditions}, stakes_micro: {}, must_not_regress: {}}}",
                cell.slice,
                cell.stakes_micro.value(),
                cell.must_not_regress
            ));
        }
    }
    text
}

/// The numbers that a profile takes as given.
fn of_profile(profile: &Profile) -> Vec<(&'static str, String, Option<String>)> {
    vec![
        ("eta_micro", given(profile.eta), None),
        ("power_micro", given(profile.power), None),
        ("alpha_micro", given(profile.alpha), None),
        ("hypotheses_max", profile.hypotheses.to_string(), None),
        ("confirm_test", profile.test.as_str().to_owned(), None),
        ("tau_micro", given(profile.tau), None),
        ("q_micro", given(profile.q), None),
        ("ks_max_micro", given(profile.shift_max.0), None),
        ("w1_max_micro", given(profile.shift_max.1), None),
        ("drift_max_micro", given(profile.drift_max), None),
    ]
}

/// The file of a draft; `annex` is the digest of what it rests on.
///
/// # Panics
/// Never: a reference is JSON.
pub fn text(of: &LedgerDraft, annex: Option<&BlobRef>) -> String {
    let mut values = drafted(of);
    if let Some(annex) = annex {
        let reference = serde_json::to_string(annex).expect("BUG: a reference is JSON");
        let words = "drafted: what it rests on; put it into the ledger";
        values.push(("# annex", reference, Some(words.to_owned())));
    }
    let text = with(&values, Some(&slices(&of.draft.slices)));
    let text = text.replace("\n    # judge: ", "\n    judge: ");
    let text = match of.anchors {
        Some(_) => text.replace("\n    # anchors: ", "\n    anchors: "),
        None => text,
    };
    let text = match annex {
        Some(_) => text.replace("\n# annex: ", "\nannex: "),
        None => text,
    };
    let scale = of.window.label_scale.and_then(rows::label_scale_in_words);
    let scale = scale.map_or_else(String::new, |words| format!("# In this plan {words}.\n"));
    format!(
        "# Drafted by {} from the fit part of {} through seq {}: no label of dev, confirm or an audit was read.\n{scale}{text}",
        draft::ALGORITHM,
        of.window.split,
        of.window.through
    )
}

/// Values of fields that the fit window gives, each with what it was drafted from.
fn drafted(of: &LedgerDraft) -> Vec<(&'static str, String, Option<String>)> {
    let (draft, window) = (&of.draft, &of.window);
    let said = |words: &str| Some(format!("drafted: {words}"));
    let [fit, dev, confirm] = draft.sizes;
    let at_rate = "at the rate of labels in fit";
    let sealed = if window.sealed > 0 {
        "rows with a sealed label"
    } else {
        at_rate
    };
    let (separation, gap) = of.separation;
    let mut values = of_profile(&draft.profile);
    values.extend([
        ("experiment", of.experiment.to_string(), None),
        ("fit_rows", fit.to_string(), said("fit rows with a label")),
        ("dev_rows", dev.to_string(), said(at_rate)),
        ("confirm_rows", confirm.to_string(), said(sealed)),
        ("confirm_separation", word(separation).to_owned(), None),
        (
            "effect_micro",
            micro(draft.effect),
            said("what these labels show, or what is in sight"),
        ),
        (
            "difference_sd_micro",
            micro(draft.difference_sd),
            said("of the correction in sight, at least 20000"),
        ),
        (
            "green_slices",
            draft.green_slices.to_string(),
            said("every cell but one of each family"),
        ),
        (
            "slice_rows_min",
            draft.slice_rows_min.to_string(),
            said("of the smallest cell"),
        ),
        (
            "green_sd_micro",
            micro(draft.green_sd),
            said("of refitting without a fifth of the labels"),
        ),
        (
            "rubric_hash",
            of.rubric_hash.to_hex(),
            Some("of the rubric in force".to_owned()),
        ),
        (
            "seed",
            of.seed.to_hex(),
            Some("from the root of fit".to_owned()),
        ),
        ("covariates", "[]".to_owned(), None),
        (
            "patch_families",
            format!("[{}]", Family::ALL.map(Family::as_str).join(", ")),
            said("all there are; keep those that may be proposed"),
        ),
    ]);
    values.extend(gap.map(|gap| ("gap_seconds", gap.to_string(), None)));
    let account = of.account.as_ref();
    values.extend(account.map(|account| ("peek_account", account.to_string(), None)));
    let judge = window.judge.to_string();
    values.push(("# judge", judge, said("whose scores were read")));
    if let Some(anchors) = &of.anchors {
        values.push(("# anchors", anchors.to_string(), None));
    }
    values
}

fn word(of: SplitSeparation) -> &'static str {
    match of {
        SplitSeparation::Hashed => "hashed",
        SplitSeparation::Time => "time",
    }
}

/// A template for so many labels in all, of which no data are read: half for fit, a quarter each for dev and confirm.
pub fn sized(labels: u64) -> String {
    let profile = Profile::of(labels);
    let (dev, confirm) = (labels / 4, labels / 4);
    let fit = labels - dev - confirm;
    let deviation = 0.02;
    let effect = profile.detectable(deviation, confirm);
    let effect = effect.unwrap_or(2.0 * profile.eta);
    let mut values = of_profile(&profile);
    let comment = |words: &str| Some(words.to_owned());
    values.extend([
        (
            "fit_rows",
            fit.to_string(),
            comment("rows for fitting: half"),
        ),
        (
            "dev_rows",
            dev.to_string(),
            comment("rows for development: a quarter"),
        ),
        (
            "confirm_rows",
            confirm.to_string(),
            comment("rows of the confirm block: a quarter"),
        ),
        (
            "effect_micro",
            micro(effect),
            comment("the smallest improvement that so many confirm rows show with power_micro"),
        ),
        ("green_slices", "1".to_owned(), None),
        ("slice_rows_min", "40".to_owned(), None),
        ("covariates", "[]".to_owned(), None),
    ]);
    with(&values, None)
}

/// Adds to the view of a new plan what it rests on and what its labels can show.
pub fn put(view: &mut View, of: &DraftFacts, profile: &Profile) {
    let parts = |of: OfParts| format!("fit {}, dev {}, confirm {}", of.fit, of.dev, of.confirm);
    let mut pairs = vec![
        (
            "read",
            format!(
                "{} labels of {} fit rows of {}, by judge {}, through seq {}",
                thousands(of.labelled),
                thousands(of.rows.fit),
                of.split,
                of.judge,
                of.through_seq
            ),
        ),
        ("not read", "labels of dev, confirm and audits".to_owned()),
        ("rows", parts(of.rows)),
    ];
    if let Some(scale) = &of.label_scale {
        pairs.push(("scale", scale.clone()));
    }
    let none = match of.too_small {
        Some(_) => "no slice that the plan has is off",
        None => "no slice is off",
    };
    pairs.push((
        "in sight",
        of.in_sight.as_ref().map_or(none.to_owned(), |of| {
            format!(
                "{:.4}, were the mean of {}/{} corrected: off by {:+.3} on {} rows. It is the largest of all cells, so \
                 rather too high; a patch that finds the rows at fault within a cell earns more",
                of.effect, of.family, of.slice, of.mean, of.rows
            )
        }),
    ));
    if let Some(of) = &of.too_small {
        pairs.push((
            "too small",
            format!(
                "{}/{} is off by {:+.3} on {} rows, and the plan does not have it: dev and confirm would hold too few of \
                 its rows to judge. More labels there would",
                of.family, of.slice, of.mean, of.rows
            ),
        ));
    }
    if let Some(pause) = &of.pause {
        let what = if pause.pauses {
            "it is likely to pause for labels"
        } else {
            "no pause"
        };
        pairs.push((
            "calibrator",
            format!(
                "{:.2} of the variance, {:.2} with a label on every fit row (0.3): {what}. Opening draws other folds, and the \
                 run reads every log: both say a number of their own, some hundredths away",
                pause.share, pause.share_at_best
            ),
        ));
    }
    view.broken_pairs(pairs);
    view.gap();
    shown(view, of, profile);
}

/// What so many labels can show, and what they cost.
fn shown(view: &mut View, of: &DraftFacts, profile: &Profile) {
    let rows = of.shows.iter().map(|of| {
        vec![
            thousands(of.labels),
            format!(
                "{}/{}/{}",
                of.of_parts.fit, of.of_parts.dev, of.of_parts.confirm
            ),
            of.detectable
                .map_or("nothing".to_owned(), |of| format!("{of:.4}")),
            of.cost.map_or("-".to_owned(), |cost| format!("{cost:.2}")),
        ]
    });
    let head = [
        "labels",
        "fit/dev/confirm",
        "improvement shown",
        "more cost",
    ];
    view.table(&head, rows);
    view.sentence(format!(
        "An improvement of the mean squared error is shown by the {} test alone, with power {} at level {} over {} hypotheses.",
        profile.test.as_str(),
        profile.power,
        profile.alpha,
        profile.hypotheses
    ));
    let families = Family::ALL.len() as u64;
    if families > profile.hypotheses {
        view.sentence(format!(
            "That is the level once the plan keeps {} of the {families} patch families: alpha is divided by the families where they are more, as prereg check says.",
            profile.hypotheses
        ));
    }
    view.sentence(match (of.labels_needed, &of.too_small) {
        (Some(labels), _) => format!(
            "What is in sight would be shown by {} labels.",
            thousands(labels)
        ),
        (None, Some(small)) => format!(
            "Nothing is in sight but {}/{}, which is too small.",
            small.family, small.slice
        ),
        (None, None) => "Nothing is in sight that any number of labels would show.".to_owned(),
    });
    for said in wider::locality(ShiftMetric::Either, profile.shift_max, profile.drift_max) {
        view.sentence(format!("Before you sign: {said}."));
    }
    if of.few_labels {
        few(view);
    }
}

/// What few labels can and cannot show, in honest words.
pub fn few(view: &mut View) {
    for sentence in FEW {
        view.sentence(sentence);
    }
}

/// What a plan of few labels gives up.
const FEW: [&str; 6] = [
    "Few labels: the plan seals one hypothesis and takes the t test, whose level is asymptotic.",
    "It shows the repair of a gross fault alone. With 500 labels simulated fixes of a fault on 15 % of rows pass in about 9 \
     of 10 iterations, on 8 % in about 7, on 2 % hardly ever.",
    "Such a patch moves many rows, so its caps of the shift are wider: p4 and p5 hold less that a patch is local.",
    "It does not protect small slices: a cell below 40 rows in dev or confirm is inconclusive.",
    "That nothing is accepted says nothing against a patch.",
    "Before you sign: clover simulate iteration --truth citations --seed 7 --manifest FILE",
];
