//! The data sets that ship under `fixtures/demo`, and what each is there to show.

use clover_ground::yaml::YamlError;
use clover_num::Micro;
use clover_rubric::Rubric;
use serde_json::Value;
use serde_json::json;

use crate::simulate::files;
use crate::simulate::files::File;
use crate::simulate::world::Fault;
use crate::simulate::world::Kind;
use crate::simulate::world::Setting;
use crate::simulate::world::SimulatedRow;
use crate::simulate::world::World;

/// A data set with a patch that is put to the test on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShippedDataset {
    /// Its folder.
    pub name: &'static str,
    /// What every draw starts from.
    pub seed: u64,
    /// Its world.
    pub setting: Setting,
    /// Improvement that is demanded of the patch, in millionths.
    pub eta_micro: i64,
    /// Whether slices are domains; else domains by level.
    pub by_domain: bool,
    /// The rubric to start from.
    pub rubric: String,
    /// The patch.
    pub patch: String,
    /// Name of the patch.
    pub patch_id: &'static str,
}

/// A cap that was tuned on the development rows of `overfitted`.
const TUNED: &str = "patch:
  family: length_bias_cap
  id: cap-long-answers
  rationale: Long answers look over-scored on the development rows; cap them.
  changes:
    guards.length_bias_cap:
      if_tokens_gt: 104
      max_raw_score: 0.75
  constraints:
    max_tokens_added: 10
    affects_rescore: false
";

/// Both: `mended`, whose patch is a true fix, and `overfitted`, few and noisy labels of a judge without a fault, whose patch
/// was the best of many on its development rows.
pub fn shipped() -> [ShippedDataset; 2] {
    let micro = |value| Micro::new(value).unwrap_or_default();
    let setting = Setting {
        confirm_rows: 600,
        slices: 4,
        window_rows: 900,
        ..Setting::default()
    };
    let fault = Fault::Citations;
    let open = files::rubric_yaml(fault);
    let closed = open.replace("mismatch_penalty: 0\n", "mismatch_penalty: 0.3\n");
    let mended = ShippedDataset {
        name: "mended",
        seed: 3,
        setting,
        eta_micro: 1_000,
        by_domain: false,
        rubric: open,
        patch: files::patch_yaml(fault),
        patch_id: files::patch_id(fault),
    };
    let overfitted = ShippedDataset {
        name: "overfitted",
        seed: 44,
        setting: Setting {
            confirm_rows: 300,
            label_noise_micro: micro(120_000),
            share_micro: micro(0),
            window_rows: 480,
            ..setting
        },
        eta_micro: 500,
        by_domain: true,
        rubric: closed,
        patch: TUNED.to_owned(),
        patch_id: "cap-long-answers",
    };
    [mended, overfitted]
}

impl ShippedDataset {
    /// Its world.
    #[expect(clippy::missing_panics_doc, reason = "a `BUG:` states what cannot be")]
    pub fn world(&self) -> World {
        World::new(self.setting, self.seed).expect("BUG: what ships is in range")
    }

    /// Its rows.
    pub fn rows(&self) -> Vec<SimulatedRow> {
        let world = self.world();
        let numbers = 0..world.rows();
        numbers
            .map(|number| world.row(Kind::Base, number))
            .collect()
    }

    /// The plan of an iteration over its rows, as a manifest in JSON.
    ///
    /// # Errors
    /// Where its rubric cannot be read.
    pub fn plan(&self, anchors: &str) -> Result<Value, YamlError> {
        let world = self.world();
        let rubric = Rubric::parse(self.rubric.as_bytes())?;
        let slices: Vec<(String, Value)> = if self.by_domain {
            let domains = world.domains().iter();
            domains
                .map(|domain| {
                    (
                        (*domain).to_owned(),
                        json!([{"any_of": [domain], "field": "domain"}]),
                    )
                })
                .collect()
        } else {
            (0..world.slices())
                .map(|slice| {
                    let (domain, level) = world.slice(slice);
                    let conditions = json!([
                        {"any_of": [domain], "field": "domain"}, {"any_of": [level], "field": "level"},
                    ]);
                    (format!("{domain}-{level}"), conditions)
                })
                .collect()
        };
        let count = slices.len() as u64;
        let cells: Vec<Value> = slices
            .into_iter()
            .map(|(slice, conditions)| {
                json!({"conditions": conditions, "must_not_regress": false, "slice": slice, "stakes_micro": 500_000})
            })
            .collect();
        let (window, confirm) = (self.setting.window_rows, self.setting.confirm_rows);
        // Three hundred rows show nothing smaller by betting.
        let effect = if confirm < 600 { 12_000 } else { 6_000 };
        Ok(json!({
            "experiment": self.name, "manifest": format!("plan-{}", self.name), "template": "iteration",
            "title": self.name, "version": 1,
            "hypothesis": {"claim": "the patch makes scores better", "kind": "promote"},
            "iteration": {
                "alpha_micro": 50_000, "confirm_rows": confirm, "confirm_separation": "time", "confirm_test": "betting",
                "design": {
                    "anchors": anchors, "calibrator": "monotone", "covariates": [], "dev_calls_max": 10,
                    "environments": [], "judge": "builtin", "must_not_regress": "guard", "peek_account": "confirm-peeks",
                    "rubric_hash": rubric.hash().to_hex(), "seed": "ab".repeat(32),
                    "slices": [{"cells": cells, "family": "cell"}], "topics": [],
                },
                "dev_rows": window / 3, "difference_sd_micro": 20_000, "drift_max_micro": 10_000,
                "ece_slack_micro": 5_000, "effect_micro": effect, "eta_micro": self.eta_micro, "fit_rows": window - window / 3,
                "gap_seconds": 259_200, "green_sd_micro": 3_000, "green_slices": count - 1, "hypotheses_max": 2,
                "ks_max_micro": 50_000, "patch_families": ["evidence_verification", "length_bias_cap"],
                "power_micro": 800_000, "profile": "recommended", "q_micro": 100_000, "shift_metric": "either",
                "slice_rows_min": window / 3 / (count + 1), "tau_micro": 1_500, "uplift_max_micro": 50_000,
                "w1_max_micro": 20_000,
            },
        }))
    }

    /// Its files but `truth.json`.
    pub fn files(&self) -> Vec<File> {
        let mut all = files::files(&self.world(), &self.rows());
        for file in &mut all {
            match file.path {
                "rubric.yaml" => file.bytes = self.rubric.clone().into_bytes(),
                "patch.yaml" => file.bytes = self.patch.clone().into_bytes(),
                _ => {}
            }
        }
        all
    }
}
