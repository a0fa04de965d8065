//! Data with a known truth, what its patch is truly worth, and planned iterations on such data.

pub mod iteration;
mod larger;

use serde::Serialize;

use crate::ground::shell;
use crate::num::Micro;
use crate::view::View;
use crate::view::text::thousands;
use crate::workflow::simulate;
use crate::workflow::simulate::Fault;
use crate::workflow::simulate::World;
use crate::workflow::simulate::files;
use crate::workflow::simulate::truth;

/// What a simulated world is like.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Setting {
    /// Rows of the confirm window.
    pub confirm_rows: u64,
    /// What is wrong with the judge: `citations`, `length` or `none`.
    pub fault: &'static str,
    /// Standard deviation of labels around what a response is worth, in millionths.
    pub label_noise_micro: Micro,
    /// Share of rows with the fault, in millionths.
    pub share_micro: Micro,
    /// Slices: 12 or 4.
    pub slices: u64,
    /// Rows of the window of fit and dev.
    pub window_rows: u64,
}

impl From<simulate::Setting> for Setting {
    fn from(of: simulate::Setting) -> Self {
        Self {
            confirm_rows: of.confirm_rows,
            fault: of.fault.as_str(),
            label_noise_micro: of.label_noise_micro,
            share_micro: of.share_micro,
            slices: of.slices,
            window_rows: of.window_rows,
        }
    }
}

/// What a patch is truly worth: the mean change of the squared error over fresh rows. Negative is better.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Worth {
    /// The mean change by slice, in the order of slices.
    pub by_slice: Vec<f64>,
    /// The true change of the mean squared error.
    pub dmse: f64,
    /// The mean squared error before the patch.
    pub mse_before: f64,
    /// Fresh rows.
    pub rows: u64,
    /// Standard error of `dmse`.
    pub se: f64,
}

impl From<&truth::Worth> for Worth {
    fn from(of: &truth::Worth) -> Self {
        Self {
            by_slice: of.by_slice.clone(),
            dmse: of.dmse,
            mse_before: of.mse_before,
            rows: of.rows,
            se: of.se,
        }
    }
}

/// A data set that was written.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Dataset {
    /// Bytes of all files.
    pub bytes: u64,
    /// Rows with the fault.
    pub faulty: u64,
    /// Its files, as paths in its folder.
    pub files: Vec<&'static str>,
    /// Its folder.
    pub folder: String,
    /// Name of the patch that mends the fault.
    pub patch: &'static str,
    /// Rows of the windows.
    pub rows: u64,
    /// What the world is like.
    pub setting: Setting,
    /// What the patch is truly worth.
    pub worth: Worth,
}

/// What the patch of a data set is truly worth.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Truth {
    /// Name of the patch that mends the fault.
    pub patch: &'static str,
    /// What the world is like.
    pub setting: Setting,
    /// What the patch is truly worth.
    pub worth: Worth,
}

/// Counts of a data set that was written.
#[derive(Clone, Debug)]
pub struct DatasetFacts {
    /// Its folder, as it was named.
    pub folder: String,
    /// Its files, as paths in its folder.
    pub files: Vec<&'static str>,
    /// Bytes of all files.
    pub bytes: u64,
    /// Rows of the windows.
    pub rows: u64,
    /// Rows with the fault.
    pub faulty: u64,
}

/// A data set that was written.
pub fn dataset(world: &World, worth: &truth::Worth, of: DatasetFacts) -> View {
    let setting = *world.setting();
    let facts = Dataset {
        bytes: of.bytes,
        faulty: of.faulty,
        files: of.files,
        folder: of.folder,
        patch: files::patch_id(setting.fault),
        rows: of.rows,
        setting: setting.into(),
        worth: worth.into(),
    };
    let mut view = View::of(&facts).with_verdict("written");
    let head = [
        ("folder", facts.folder.clone()),
        (
            "rows",
            format!(
                "{} for fit and dev, {} for confirm, {} for each anchor",
                thousands(setting.window_rows),
                thousands(setting.confirm_rows),
                files::ANCHOR_ROWS
            ),
        ),
        ("faulty", thousands(facts.faulty)),
        ("bytes", thousands(facts.bytes)),
    ];
    view.pairs(head.into_iter().chain(pairs(world, worth)));
    // Labels in the open would be those of confirm too, and nobody could test on them again.
    view.gap();
    view.sentence(
        "Labels go in after the split: those of fit and dev in the open, those of confirm sealed. schema/WALKTHROUGH.md goes \
         all the way.",
    );
    let folder = shell::word(&facts.folder).clone();
    view.with_next(format!(
        "clover judge run --judge builtin --rows {folder}/responses --rows {folder}/anchors --known {folder}/known.json"
    ))
    .with_next(format!(
        "clover import cje {folder}/responses --judge builtin --field domain --field level"
    ))
    .with_next("clover experiment split --help")
}

/// What the patch of a world is truly worth.
pub fn truth(world: &World, worth: &truth::Worth) -> View {
    let setting = *world.setting();
    let facts = Truth {
        patch: files::patch_id(setting.fault),
        setting: setting.into(),
        worth: worth.into(),
    };
    let mut view = View::of(&facts).with_verdict("computed");
    view.pairs(pairs(world, worth));
    view
}

fn pairs(world: &World, worth: &truth::Worth) -> Vec<(&'static str, String)> {
    let fault = world.setting().fault;
    let place = if fault == Fault::None {
        "none".to_owned()
    } else {
        let (domain, level) = world.slice(world.faulty_slice());
        let share = world.setting().share_micro;
        format!("{fault}, on {share} of rows, all in {domain}/{level}")
    };
    vec![
        ("fault", place),
        ("patch", files::patch_id(fault).to_owned()),
        (
            "true change of MSE",
            format!("{:.6} (se {:.6})", worth.dmse, worth.se),
        ),
        ("MSE before", format!("{:.6}", worth.mse_before)),
        ("fresh rows", thousands(worth.rows)),
    ]
}
