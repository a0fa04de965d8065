//! What each assumption says, what uses it, and which parts of it are looked at. CLOVER v1.1, section 12.

use clover_event::payload::assumption::Assumption;

/// Something that one diagnostic says of an assumption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AssumptionPart {
    /// Whether the assumption is untested without it; else it only ever stands against.
    pub is_required: bool,
    /// Whether a failure of it stays.
    pub is_sticky: bool,
    /// Its name.
    pub name: &'static str,
}

const fn required(name: &'static str) -> AssumptionPart {
    AssumptionPart {
        is_required: true,
        is_sticky: false,
        name,
    }
}

/// A part that is required, and whose failure nothing later undoes.
const fn lasting(name: &'static str) -> AssumptionPart {
    AssumptionPart {
        is_required: true,
        is_sticky: true,
        name,
    }
}

/// A part that only ever stands against, and whose failure nothing later undoes.
const fn against(name: &'static str) -> AssumptionPart {
    AssumptionPart {
        is_required: false,
        is_sticky: true,
        name,
    }
}

/// One assumption.
#[derive(Clone, Copy, Debug)]
pub struct CatalogueEntry {
    /// Its code.
    pub code: Assumption,
    /// What shows whether it holds.
    pub diagnostic: &'static str,
    /// What to do where it does not.
    pub mitigation: &'static str,
    /// What is looked at.
    pub parts: &'static [AssumptionPart],
    /// What it says.
    pub statement: &'static str,
    /// What needs it.
    pub used_by: &'static str,
}

impl CatalogueEntry {
    /// A part by its name.
    ///
    /// # Panics
    /// When it has none of that name: updates name parts that are here.
    pub fn part(&self, name: &str) -> &'static AssumptionPart {
        let mut parts = self.parts.iter();
        parts
            .find(|part| part.name == name)
            .expect("BUG: an update names a part of the catalogue")
    }
}

/// The entry of a code.
///
/// # Panics
/// Never: a test holds that every code has one.
pub fn entry(code: Assumption) -> &'static CatalogueEntry {
    let mut entries = CATALOGUE.iter();
    entries
        .find(|entry| entry.code == code)
        .expect("BUG: the catalogue has every code")
}

macro_rules! catalogue {
    ($($code:ident: $statement:literal, used by $used_by:literal, shown by $diagnostic:literal, else $mitigation:literal,
       parts $parts:expr;)*) => {
        /// Every assumption, in order of its code.
        pub(super) const CATALOGUE: &[CatalogueEntry] = &[$(CatalogueEntry {
            code: Assumption::$code,
            diagnostic: $diagnostic,
            mitigation: $mitigation,
            parts: $parts,
            statement: $statement,
            used_by: $used_by,
        }),*];
    };
}

catalogue! {
    A0: "E[Y*|X,A] = E[Y|X,A]: the label means what it stands for",
        used by "everything", shown by "share of long-run effects, construct audit, stability; signed by a person",
        else "revise the label protocol", parts &[required("construct"), required("pte"), required("stability")];
    A1A3: "deliberation is stable, more evidence helps, the instrument does not matter",
        used by "the meaning of Y*", shown by "nothing; people attest it",
        else "specify the label anew", parts &[required("attestation")];
    Adv: "what gaming can gain is bounded",
        used by "deployment", shown by "mean uplift of each attack of the battery",
        else "guards, a wider battery", parts &[required("battery")];
    Blast: "a patch is local: it changes little else",
        used by "versions", shown by "distance of distributions, drift of anchors",
        else "reject the patch", parts &[required("anchors"), required("shift")];
    CjeD1R3: "the logger is fixed, the judge stable, moments exist",
        used by "IPS and DR theory", shown by "rank drift of anchors, tail index of weights",
        else "restrict the cohort", parts &[required("drift"), required("tails")];
    CjeJ1: "labelled rows are drawn as the logs are",
        used by "calibration", shown by "as L1",
        else "as L1", parts &[required("balance"), lasting("design")];
    CjeJ2M: "E[Y|X,A,S] is monotone in the score, or in its index",
        used by "isotonic calibration", shown by "error out of fold, monotone against two-stage",
        else "calibrate in two stages", parts &[required("calibrator")];
    CjeT1: "E[Y - f] = 0 under the policy",
        used by "claims of level", shown by "mean residual of each policy on 50 to 200 labels",
        else "recalibrate, or refuse the level", parts &[required("residuals")];
    CloverJ1: "the rubric programs the evidence; more evidence does not raise the risk",
        used by "design", shown by "sign of the change in error of patches that add obligations",
        else "add obligations before weights", parts &[required("obligations")];
    CloverJ2: "scoring is deterministic",
        used by "scores that stand once", shown by "no mismatch among 30 or more scores that are replayed",
        else "cache, version, fix the decoding", parts &[against("conflict"), required("replay")];
    H1: "confirm is untouched and replicates",
        used by "acceptance", shown by "reads on record, separation in time, replication",
        else "reject what does not replicate",
        parts &[against("access"), required("replication"), required("separation")];
    L1: "labels are missing at random",
        used by "calibration", shown by "every label traces to a registered design; weighted balance",
        else "randomise, stratify, weight", parts &[required("balance"), lasting("design")];
    L2: "every stratum of scores has labels",
        used by "calibration", shown by "labels in each tenth of the scores, share out of range",
        else "label the tails", parts &[required("coverage")];
    Ope: "what the policies would say, the logger says too (S3)",
        used by "IPS, DR", shown by "effective sample size, largest weight, coverage of typical targets",
        else "fresh draws, the direct method, clipping", parts &[required("overlap")];
    Oua: "the calibrator's own uncertainty is counted",
        used by "intervals, pauses", shown by "its share of the variance",
        else "more labels", parts &[required("share")];
    S1: "E[Y|X,A,S] = f(S) where scores are",
        used by "all", shown by "a test that nothing else tells of the label; reliability curve",
        else "richer evidence, covariates", parts &[required("prentice")];
    S2: "the environment tells nothing of the label once the score is known",
        used by "other environments", shown by "mean residuals by environment",
        else "a calibrator of its own, another prompt", parts &[required("transport")];
    Sup: "scores lie where labels were",
        used by "levels", shown by "share out of range at flat ends",
        else "label the tails", parts &[required("coverage")];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_one_entry_in_order() {
        let codes: Vec<_> = CATALOGUE.iter().map(|entry| entry.code).collect();
        assert_eq!(codes, Assumption::ALL);
        for entry in CATALOGUE {
            let names: Vec<_> = entry.parts.iter().map(|part| part.name).collect();
            assert!(
                names.windows(2).all(|pair| pair[0] < pair[1]),
                "{}",
                entry.code
            );
            assert!(
                entry.parts.iter().any(|part| part.is_required),
                "{}",
                entry.code
            );
        }
    }
}
