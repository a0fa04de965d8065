//! Rows joined from what a log found: scores with their evidence, labels, fields, slices, environments, anchors.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use clover_event::id::DesignId;
use clover_event::id::FamilyId;
use clover_event::id::FieldId;
use clover_event::id::JudgeId;
use clover_event::payload::intake::SplitPart;
use clover_event::payload::iteration::AnchorRows;
use clover_event::payload::iteration::AnchorSetRegistered;
use clover_event::payload::manifest::IterationDesign;
use clover_ground::shell;
use clover_num::Count;
use clover_projection::iterations::rows::Key;
use clover_projection::iterations::rows::RowLog;
use clover_projection::iterations::rows::Score;
use clover_projection::iterations::rows::SplitFormation;
use clover_rubric::Rubric;
use clover_rubric::engine::Rules;
use clover_rubric::evidence::Evidence;

use crate::environments;
use crate::iterate::compute::Anchor;
use crate::iterate::compute::IterationRows;
use crate::iterate::compute::SliceFamily;
use crate::iterate::compute::Table;
use crate::iterate::compute::rows::EnvironmentFamily;
use crate::iterate::compute::rows::Feature;
use crate::iterate::rows::IterationRowsError;
use crate::iterate::rows::RowName;
use crate::iterate::rows::STRATUM;
use crate::iterate::rows::anchor_root;
use crate::iterate::rows::fields;
use crate::iterate::rows::fields::FieldRow;
use crate::iterate::rows::id_of;
use crate::iterate::rows::missing;
use crate::iterate::rows::scored::Lack;
use crate::iterate::rows::scored::Raw;
use crate::iterate::rows::scored::scored;
use crate::iterate::rows::shares;

/// What rows are joined from.
pub(super) struct Sources<'a> {
    pub log: &'a RowLog,
    pub design: &'a IterationDesign,
    pub rubric: &'a Rubric,
    pub evidence: &'a BTreeMap<Key, Evidence>,
    pub imported: &'a BTreeMap<Key, BTreeMap<FieldId, String>>,
    /// Rows of which some field was said once their label could be read.
    pub late: &'a BTreeSet<Key>,
    pub judge: &'a JudgeId,
    pub formed: &'a SplitFormation,
    pub through: u64,
    pub unsealed: Option<u64>,
}

pub(super) type RowColumns = (Table, Vec<RowName>, Vec<Raw>, Vec<Vec<Raw>>, Vec<String>);

impl Sources<'_> {
    fn row<'k>(&'k self, key: &'k Key) -> FieldRow<'k> {
        FieldRow {
            key,
            evidence: self.evidence.get(key),
            fields: self.imported.get(key),
        }
    }

    pub(super) fn raw(&self, score: &Score) -> Raw {
        Raw {
            base: score.base,
            evidence: self.evidence.get(&score.key).cloned(),
            key: score.key.clone(),
            seq: score.seq,
        }
    }

    pub(super) fn anchor_set(&self) -> Option<&AnchorSetRegistered> {
        let named = self.design.anchors.as_ref()?;
        self.log.anchors.iter().find(|of| of.anchors == *named)
    }

    pub(super) fn table(&self) -> Result<RowColumns, IterationRowsError> {
        let set = self.anchor_set();
        let is_anchor =
            |key: &Key| set.is_some_and(|set| set.low.policy == key.0 || set.high.policy == key.0);
        let all = &self.log.scores[self.judge];
        let none = BTreeMap::new();
        let parts = self.log.parts.get(&self.formed.split).unwrap_or(&none);
        let is_confirm = |score: &Score| parts.get(&score.key.1) == Some(&SplitPart::Confirm);
        let is_read = |score: &Score| score.seq <= self.through || is_confirm(score);
        let rows = all.iter();
        let rows: Vec<&Score> = rows
            .filter(|score| !is_anchor(&score.key) && is_read(score))
            .collect();
        let mut notes = Vec::new();
        let raw: Vec<Raw> = rows.iter().map(|score| self.raw(score)).collect();
        let rules = self.rubric.rules();
        let mut lack = Lack::default();
        let mut data = IterationRows {
            rows: rows.iter().map(|score| id_of(&score.key)).collect(),
            clusters: rows.iter().map(|score| score.key.1.to_string()).collect(),
            parts: rows
                .iter()
                .map(|score| parts.get(&score.key.1).copied())
                .collect(),
            scored: scored(&raw, &rules, &mut lack, |at| id_of(&rows[at].key)),
            ..IterationRows::default()
        };
        self.labels(&rows, &mut data)?;
        data.covariates = self.covariates(&rows.iter().map(|score| &score.key))?;
        data.features = self.features(&raw);
        data.slices = self.slices(&rows)?;
        data.environments = self.environments(&rows);
        let mut anchors = Vec::new();
        for of in set.iter().flat_map(|set| [&set.low, &set.high]) {
            let (anchor, raw) = self.anchor(of, &rules, &mut lack, &mut notes)?;
            if let Some(anchor) = anchor {
                data.anchors.push(anchor);
                anchors.push(raw);
            }
        }
        if let Some(first) = lack.first {
            let rows = lack.rows;
            return Err(IterationRowsError::Evidence { rows, first });
        }
        let without = raw.iter().filter(|raw| raw.evidence.is_none()).count();
        if without > 0 {
            notes.push(format!(
                "{without} of {} rows have no evidence record: their recorded score stands, and no patch can be computed on them",
                raw.len()
            ));
        }
        let late = rows.iter().filter(|score| self.late.contains(&score.key));
        let late = late.count();
        if late > 0 {
            notes.push(format!(
                "fields of {late} rows were said once their labels could be read: they do not count"
            ));
        }
        let names = rows.iter().map(|score| RowName {
            policy: score.key.0.clone(),
            item: score.key.1.clone(),
            draw: Count::new(score.key.2).unwrap_or_default(),
        });
        let names = names.collect();
        Ok((Table::new(data)?, names, raw, anchors, notes))
    }

    /// Joins labels as shares of their scale: the mean where a row has several.
    fn labels(&self, rows: &[&Score], data: &mut IterationRows) -> Result<(), IterationRowsError> {
        let at: BTreeMap<&Key, usize> = rows
            .iter()
            .enumerate()
            .map(|(at, of)| (&of.key, at))
            .collect();
        let mut sums: Vec<(i64, u32)> = vec![(0, 0); rows.len()];
        data.inclusion = vec![None; rows.len()];
        for label in &self.log.labels {
            let Some(&row) = at.get(&label.key) else {
                continue;
            };
            let in_confirm = data.parts[row] == Some(SplitPart::Confirm);
            let counts = if label.is_confirm {
                in_confirm && self.unsealed.is_some_and(|seq| label.seq > seq)
            } else {
                data.parts[row].is_some() && !in_confirm && label.seq <= self.through
            };
            if !counts {
                continue;
            }
            sums[row].0 = sums[row].0.saturating_add(label.value.value());
            sums[row].1 += 1;
            if data.inclusion[row].is_none() {
                data.inclusion[row] = self.inclusion(&label.design, &label.key);
            }
        }
        let means = sums
            .iter()
            .map(|&(sum, count)| (count > 0).then(|| sum as f64 / 1e6 / f64::from(count)));
        data.labels = shares::of(self.log, means.collect(), |at| id_of(&rows[at].key))?;
        Ok(())
    }

    /// With what probability a design labels a row; `None` where it does not say.
    pub(super) fn inclusion(&self, design: &DesignId, key: &Key) -> Option<f64> {
        let design = self.log.designs.get(design)?;
        let strata = design.strata.as_deref().unwrap_or_default();
        let micro = if strata.is_empty() {
            design.inclusion_micro
        } else {
            let row = self.row(key);
            let named = row.word(STRATUM)?;
            let found = strata.iter().find(|of| of.stratum.as_str() == named);
            found.map_or(design.inclusion_micro, |of| of.inclusion_micro)
        };
        Some(micro.value() as f64 / 1e6)
    }

    pub(super) fn covariates<'k>(
        &self,
        keys: &(impl Iterator<Item = &'k Key> + Clone),
    ) -> Result<Vec<Vec<f64>>, IterationRowsError> {
        let allowed = fields::allowed(self.rubric);
        let mut columns = Vec::with_capacity(self.design.covariates.len());
        for field in &self.design.covariates {
            let mut column = Vec::new();
            for key in keys.clone() {
                let value = self.row(key).number(field.as_str(), allowed);
                column.push(value.ok_or_else(|| {
                    let found = if self.late.contains(key) {
                        "was said once its label could be read, and does not count"
                    } else {
                        "is not known"
                    };
                    let what = format!("covariate {field} of {} {found}", id_of(key));
                    missing(what, self.next(field.as_str()))
                })?);
            }
            columns.push(column);
        }
        Ok(columns)
    }

    /// How a field that is not known becomes so.
    fn next(&self, field: &str) -> String {
        if fields::is_own(field) {
            format!(
                "clover judge run --judge {} --recorded --rows PATH",
                shell::word(&self.judge)
            )
        } else {
            format!(
                "clover import cje PATH --judge {} --field {}",
                shell::word(&self.judge),
                shell::word(field)
            )
        }
    }

    /// Evidence by column, where every row has a record.
    pub(super) fn features(&self, raw: &[Raw]) -> Vec<Feature> {
        let allowed = fields::allowed(self.rubric);
        let column = |name: &&str| -> Option<Feature> {
            let of = |raw: &Raw| fields::feature(name, raw.evidence.as_ref()?, allowed);
            Some(Feature {
                name: (*name).to_owned(),
                values: raw.iter().map(of).collect::<Option<_>>()?,
            })
        };
        fields::FEATURES.iter().filter_map(column).collect()
    }

    pub(super) fn slices(&self, rows: &[&Score]) -> Result<Vec<SliceFamily>, IterationRowsError> {
        let allowed = fields::allowed(self.rubric);
        let mut families = Vec::with_capacity(self.design.slices.len());
        for family in &self.design.slices {
            for condition in family.cells.iter().flat_map(|cell| &cell.conditions) {
                let field = condition.field.as_str();
                if !rows.iter().any(|score| self.row(&score.key).knows(field)) {
                    let mut what =
                        format!("slice family {}: {field} is known of no row", family.family);
                    if !self.late.is_empty() {
                        what += " from before its label could be read";
                    }
                    return Err(missing(what, self.next(field)));
                }
            }
            let cell_of = |score: &&Score| {
                let row = self.row(&score.key);
                family.cells.iter().position(|cell| {
                    let mut conditions = cell.conditions.iter();
                    conditions.all(|condition| row.meets(condition, allowed))
                })
            };
            let cells = family.cells.iter();
            families.push(SliceFamily {
                id: family.family.clone(),
                slices: cells.clone().map(|cell| cell.slice.clone()).collect(),
                stakes: cells
                    .clone()
                    .map(|cell| cell.stakes_micro.value() as f64 / 1e6)
                    .collect(),
                must_not_regress: cells.map(|cell| cell.must_not_regress).collect(),
                of_row: rows.iter().map(cell_of).collect(),
            });
        }
        Ok(families)
    }

    /// Families of environments are fields, and an environment is one of their words; or it is a window of time.
    pub(super) fn environments(&self, rows: &[&Score]) -> Vec<EnvironmentFamily> {
        let mut families: Vec<EnvironmentFamily> = Vec::new();
        for of in &self.design.environments {
            let place = families.iter().position(|family| family.id == of.family);
            let family: FamilyId = of.family.clone();
            let place = place.unwrap_or_else(|| {
                families.push(EnvironmentFamily {
                    id: family,
                    environments: Vec::new(),
                    required: Vec::new(),
                    of_row: vec![None; rows.len()],
                });
                families.len() - 1
            });
            let family = &mut families[place];
            let scope = of.scope();
            for (of_row, score) in family.of_row.iter_mut().zip(rows) {
                let row = self.row(&score.key);
                if environments::holds(&scope, |field| row.word(field)) {
                    *of_row = Some(family.environments.len());
                }
            }
            family.environments.push(of.environment.clone());
            family.required.push(of.required);
        }
        families
    }

    /// The rows of an anchor policy, if they are those registered.
    pub(super) fn anchor(
        &self,
        of: &AnchorRows,
        rules: &Rules,
        lack: &mut Lack,
        notes: &mut Vec<String>,
    ) -> Result<(Option<Anchor>, Vec<Raw>), IterationRowsError> {
        let all = &self.log.scores[self.judge];
        let by_id: BTreeMap<String, &Score> = all
            .iter()
            .filter(|score| score.key.0 == of.policy && score.seq <= self.through)
            .map(|score| (id_of(&score.key), score))
            .collect();
        let ids: BTreeSet<String> = by_id.keys().cloned().collect();
        if anchor_root(&ids) != of.rows_root {
            notes.push(format!(
                "anchors of {}: {} rows are on record, and not the {} that were registered: criterion P5 lacks them",
                of.policy,
                ids.len(),
                of.count
            ));
            return Ok((None, Vec::new()));
        }
        let raw: Vec<Raw> = by_id.values().map(|score| self.raw(score)).collect();
        let names: Vec<&String> = by_id.keys().collect();
        let anchor = Anchor {
            policy: of.policy.clone(),
            scored: scored(&raw, rules, lack, |at| names[at].clone()),
            covariates: self.covariates(&by_id.values().map(|score| &score.key))?,
        };
        Ok((Some(anchor), raw))
    }
}
