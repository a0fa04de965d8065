//! From rows and terms to events: the same computation as for files, worded as what was found.

use std::collections::BTreeMap;

use clover_event::id::ExperimentId;
use clover_event::id::PolicyId;
use clover_event::id::Root;
use clover_event::id::Text;
use clover_event::payload::BlobRef;
use clover_event::payload::MediaType;
use clover_event::payload::audit::CoverageChecked;
use clover_event::payload::audit::DecileShare;
use clover_event::payload::audit::OuaEstimated;
use clover_event::payload::audit::TailSupport;
use clover_event::payload::audit::TransportStanding;
use clover_event::payload::estimate::CalibratorFitted;
use clover_event::payload::estimate::ContrastRecorded;
use clover_event::payload::estimate::EstimateRecorded;
use clover_event::payload::estimate::EstimateTerms;
use clover_event::payload::estimate::FamilyCorrection;
use clover_event::payload::estimated::Claim;
use clover_event::payload::estimated::IntervalEnds;
use clover_event::payload::estimated::IntervalMethod;
use clover_event::payload::estimated::LabelMean;
use clover_event::payload::estimated::LabelUse;
use clover_event::payload::estimated::PolicyLabels;
use clover_event::payload::estimated::Reading;
use clover_event::payload::estimated::TransportState;
use clover_ground::canon;
use clover_ground::digest::Digest;
use clover_ground::merkle;
use clover_ground::merkle::Frontier;
use clover_ground::sign::KeyId;
use clover_num::math;
use clover_stats::boundary::TailCoverage;
use clover_stats::direct::ClusterWeights;
use clover_stats::direct::Route;
use clover_stats::inference::Interval;

use crate::analyze;
use crate::analyze::Analysis;
use crate::analyze::AnalyzeError;
use crate::analyze::Difference;
use crate::analyze::Method;
use crate::analyze::PolicyResult;
use crate::analyze::Probe;
use crate::analyze::Replicates;
use crate::estimate::form::Form;
use crate::estimate::missing::Missing;
use crate::estimate::model;
use crate::estimate::rows::Gathered;
use crate::estimate::scope;
use crate::estimate::terms;
use crate::estimate::terms::BUILD;
use crate::estimate::terms::count;
use crate::estimate::terms::ends;
use crate::estimate::terms::finite;
use crate::estimate::terms::size;
use crate::estimate::terms::text;

/// Estimates of an experiment, with what they rest on.
#[derive(Debug)]
pub struct Found {
    /// The rows.
    pub gathered: Gathered,
    /// The numbers.
    pub analysis: Analysis,
    /// On which terms.
    pub terms: EstimateTerms,
    /// The calibrator's curves and their digest.
    pub calibrator: Option<(Vec<u8>, Digest)>,
    /// Policies that rest on entries of a key from its compromise on, each with the key: nothing is claimed of them.
    pub tainted: BTreeMap<usize, KeyId>,
    /// The Merkle root of each policy's rows.
    roots: Vec<Root>,
}

/// A fit with the blobs that it names.
#[derive(Debug)]
pub struct Fitted {
    /// The event.
    pub event: CalibratorFitted,
    /// Its curves and its rows.
    pub blobs: [Vec<u8>; 2],
}

/// Computes estimates, and audits on probes. Other `weights` than the terms' own serve to show how far replicates have
/// come.
///
/// # Errors
/// [`AnalyzeError`].
pub fn compute(
    gathered: Gathered,
    of: EstimateTerms,
    probes: &[Probe],
    audit: Option<&AuditRequest>,
    weights: Option<&dyn ClusterWeights>,
) -> Result<Found, AnalyzeError> {
    let own = of.bootstrap.as_ref().map(terms::weights);
    let own = own.as_ref().map(|own| own as &dyn ClusterWeights);
    let mut request = terms::request(&of);
    request.replicates = own.map(|own| Replicates {
        weights: weights.unwrap_or(own),
        fold_seed: request.fold_seed,
    });
    request.probes = probes;
    scope::check_local(&gathered, &of)?;
    if of.labels == LabelUse::Weighted {
        request.strata = Some(gathered.inclusion()?);
    }
    if let Some(audit) = audit {
        request.options.alpha = audit.alpha;
        request.family_size = Some(audit.family_size);
        request.clusters_min = audit.clusters_min;
        request.bounds_probes = audit.form >= Form::Claimed;
    }
    let analysis = analyze::analyze(&gathered.dataset, &gathered.prompts, &request)?;
    let calibration = analysis.calibration.as_ref().ok();
    let calibrator = calibration.map(|of| model::bytes(&of.calibrator, None));
    Ok(Found {
        roots: (0..gathered.sources.len())
            .map(|policy| gathered.root(policy))
            .collect(),
        gathered,
        analysis,
        terms: of,
        calibrator,
        tainted: BTreeMap::new(),
    })
}

/// How audits are graded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AuditRequest {
    /// Error rate of the family.
    pub alpha: f64,
    /// Audits that share it.
    pub family_size: usize,
    /// Kish-effective prompts below which nothing passes.
    pub clusters_min: f64,
    /// By which rulebook the audit is recorded.
    pub form: Form,
}

/// A blob of bytes, as events name it; `media` is a literal.
///
/// # Panics
/// Where `media` is no media type.
pub fn blob(bytes: &[u8], media: &str) -> BlobRef {
    BlobRef {
        blake3: Digest::blake3(bytes),
        bytes: size(bytes.len()),
        media: MediaType::new(media).expect("BUG: media types here are literals"),
    }
}

/// One labelled row of a fit.
#[derive(serde::Serialize)]
struct FitLine<'a> {
    draw: u64,
    fold: usize,
    item: &'a str,
    labels_micro: &'a [i64],
    policy: &'a str,
    score_micro: i64,
}

/// A fit as older programs said it.
pub fn without_prompts(mut of: CalibratorFitted) -> CalibratorFitted {
    for labels in &mut of.labels_by_policy {
        labels.prompts = None;
    }
    of
}

impl Found {
    /// The digest of the calibrator.
    pub fn digest(&self) -> Option<Digest> {
        self.calibrator.as_ref().map(|(_, digest)| *digest)
    }

    /// The name of a policy, as events have it.
    ///
    /// # Panics
    /// If there is no such policy.
    pub fn name(&self, policy: usize) -> PolicyId {
        let name = &self.analysis.policies[policy].name;
        PolicyId::new(name.clone()).expect("BUG: rows of a ledger have policies with ids")
    }

    /// Labelled rows of the fit, a line each, with the root over them.
    fn fit_rows(&self, folds: &[usize]) -> (Vec<u8>, Digest) {
        let (mut bytes, mut tree) = (Vec::new(), Frontier::new());
        let mut folds = folds.iter();
        let gathered = &self.gathered;
        for (policy, source) in gathered.dataset.policies.iter().zip(&gathered.sources) {
            for (&row, labels) in &source.labels {
                let line = FitLine {
                    draw: source.draws[row],
                    fold: folds.next().copied().unwrap_or_default(),
                    item: &gathered.prompts.ids()[policy.prompts[row] as usize],
                    labels_micro: labels,
                    policy: &policy.name,
                    score_micro: source.scores[row],
                };
                let line = canon::to_bytes(&line).expect("BUG: ids and integers are canonical");
                tree.push(merkle::leaf_hash(&line));
                bytes.extend_from_slice(&line);
                bytes.push(b'\n');
            }
        }
        (bytes, tree.root())
    }

    /// The fit; `None` where there were too few labels for one.
    pub fn fitted(&self) -> Option<Fitted> {
        let calibration = self.analysis.calibration.as_ref().ok()?;
        let (curves, digest) = self.calibrator.as_ref()?;
        let calibrator = &calibration.calibrator;
        let quality = &calibrator.quality;
        let (rows, root) = self.fit_rows(&calibrator.folds);
        let policies = self.gathered.sources.iter().enumerate();
        let labelled = policies.filter_map(|(policy, source)| {
            Some(PolicyLabels {
                labels: size(source.labels.len()),
                newest_seq: count(source.newest_label?),
                policy: self.name(policy),
                prompts: Some(size(self.labelled_prompts(policy))),
            })
        });
        let range = |(low, high): (f64, f64)| ends(Interval { low, high });
        let event = CalibratorFitted {
            algorithm: text(calibrator.settings.algorithm.name()),
            build: text(BUILD),
            calibrator: *digest,
            clusters: size(calibration.clusters),
            folds: size(calibration.folds),
            iteration: None,
            labels: size(calibration.labels),
            labels_by_policy: labelled.collect(),
            model: blob(curves, "application/json"),
            oof_rmse: finite(quality.oof_rmse),
            oof_within_tenth: finite(quality.oof_within_tenth),
            reward_range: range(quality.reward_range),
            rmse: finite(quality.rmse),
            rows: blob(&rows, "application/x-ndjson"),
            rows_root: Root(root),
            score_range: range(calibration.score_range),
            selected: terms::kind(calibrator.selected),
            slope_high: calibration.slopes.high.map(finite),
            slope_low: calibration.slopes.low.map(finite),
            terms: terms::fit(&self.terms),
            through_seq: count(self.gathered.newest),
            uses_covariates: calibrator.uses_covariates,
        };
        Some(Fitted {
            event,
            blobs: [curves.clone(), rows],
        })
    }

    /// What may be claimed of a policy's level.
    pub fn claim(&self, policy: usize, standing: Option<TransportStanding>) -> Claim {
        let result = &self.analysis.policies[policy];
        let state = standing.map(|of| of.state);
        let refused = result.support.is_some_and(|support| support.refuse_level);
        let is_tainted = self.tainted.contains_key(&policy);
        if state == Some(TransportState::Fail) || refused || is_tainted {
            Claim::Refused
        } else if result.route == Route::Naive {
            Claim::Uncalibrated
        } else if result.route.uses_own_labels() {
            Claim::OwnLabels
        } else if state == Some(TransportState::Pass) {
            Claim::BorrowedChecked
        } else {
            Claim::BorrowedUnchecked
        }
    }

    /// The interval in force, and how it came about.
    fn interval(result: &PolicyResult, form: Form) -> Result<(Interval, IntervalMethod), Text> {
        let found = match form {
            Form::Bare => result.plain_interval(),
            Form::Claimed | Form::Compared | Form::Shared => result.interval(),
        };
        let (interval, method) = found.map_err(text)?;
        let method = match method {
            Method::Student => IntervalMethod::T,
            Method::Percentile => IntervalMethod::Percentile,
            Method::Bounded => IntervalMethod::Bounded,
        };
        Ok((interval, method))
    }

    /// Entries that an estimate was read through.
    fn through(&self) -> u64 {
        self.gathered.newest.max(self.gathered.newest_audit)
    }

    /// The value of one policy.
    pub fn estimate(
        &self,
        experiment: &ExperimentId,
        policy: usize,
        form: Form,
    ) -> EstimateRecorded {
        let result = &self.analysis.policies[policy];
        let (low, high) = self.analysis.output_scale.ends();
        let found = Self::interval(result, form);
        let no_interval = match form {
            Form::Bare => result.spread.err().map(|why| text(why.name())),
            Form::Claimed | Form::Compared | Form::Shared => found.as_ref().err().cloned(),
        };
        let (interval, interval_method) =
            found.map_or((None, IntervalMethod::None), |of| (Some(of.0), of.1));
        let alone = match form {
            Form::Bare => result.labels_only,
            Form::Claimed | Form::Compared | Form::Shared => result.labels_alone(),
        };
        let clipped = |of: Interval| IntervalEnds {
            high: finite(of.high.clamp(low, high)),
            low: finite(of.low.clamp(low, high)),
        };
        let transport = self.standing(experiment, policy);
        let spread = result.spread.as_ref().ok();
        let se = result.resampled.map(|of| of.se);
        EstimateRecorded {
            bounds: result.bounds.map(ends),
            build: text(BUILD),
            calibrator: self.digest(),
            claim: self.claim(policy, transport),
            correction: finite(result.correction),
            df: spread.map(|of| finite(of.df)),
            df_method: spread.map(|of| text(of.df_method.name())),
            estimate: finite(result.estimate),
            filter: self.gathered.filter,
            interval: interval.map(ends),
            interval_clipped: interval.map(clipped),
            interval_method,
            labels: size(result.labelled),
            labels_only: alone.map(|of| LabelMean {
                interval: of.interval.map(ends),
                mean: finite(of.mean),
            }),
            late: self.late(policy),
            no_interval,
            off_mode: (form >= Form::Claimed).then(|| size(result.off_mode)),
            plug_in: finite(result.plug_in),
            policy: self.name(policy),
            prompts: size(result.clusters),
            raw_mean: finite(math::mean(&self.gathered.dataset.policies[policy].scores)),
            route: text(result.route.name()),
            rows: size(result.rows),
            rows_root: self.roots[policy],
            se: se.or(spread.map(|of| of.se)).map(finite),
            share: spread
                .map(|of| of.calibration_share)
                .filter(|share| share.is_finite())
                .map(finite),
            terms: self.terms.clone(),
            through_seq: count(self.through()),
            transport,
        }
    }

    /// The calibrator's part of one policy's variance; `None` without a calibrator or an interval.
    pub fn oua(&self, policy: usize) -> Option<OuaEstimated> {
        let result = &self.analysis.policies[policy];
        let (detail, spread) = (result.detail.as_ref()?, result.spread.as_ref().ok()?);
        let deciles = detail.decile_rows.iter().zip(&detail.share_by_decile);
        let var_oua = result.calibration_variance.unwrap_or(0.0);
        Some(OuaEstimated {
            build: text(BUILD),
            calibrator: self.digest()?,
            fold_seeds: Vec::new(),
            inputs: None,
            policy: Some(self.name(policy)),
            rows_root: self.roots[policy],
            share: Some(var_oua / (spread.sampling + var_oua))
                .filter(|share| share.is_finite())
                .map(finite),
            share_by_decile: deciles
                .map(|(rows, share)| DecileShare {
                    rows: size(*rows),
                    share: share.and_then(|of| of.share()).map(finite),
                })
                .collect(),
            terms: self.terms.clone(),
            through_seq: count(self.gathered.newest),
            var_main: finite(spread.sampling),
            var_oua: finite(var_oua),
        })
    }

    /// Whether one policy's scores lie where labels are; `None` without a calibrator.
    pub fn coverage(&self, policy: usize) -> Option<CoverageChecked> {
        let result = &self.analysis.policies[policy];
        let (support, card) = (result.support?, result.card?);
        let (flat_low, flat_high) = self.analysis.calibration.as_ref().ok()?.slopes.flat();
        let recorded = |unit: f64| {
            let scale = self.analysis.judge_scale;
            finite(scale.map_or(unit, |scale| scale.level(unit)))
        };
        let tail = |tail: &TailCoverage| TailSupport {
            edge: recorded(tail.edge),
            labels: size(tail.labels),
            mass: finite(tail.mass),
            starved: tail.starved,
        };
        let counts = &result.detail.as_ref()?.labels_by_decile;
        Some(CoverageChecked {
            build: text(BUILD),
            calibrator: self.digest()?,
            decile_counts: counts.iter().map(|labels| size(*labels)).collect(),
            flat_high,
            flat_low,
            high_tail: tail(&support.high),
            low_tail: tail(&support.low),
            inputs: None,
            out_of_range: finite(support.out_of_range),
            policy: Some(self.name(policy)),
            refuse_level: support.refuse_level,
            rows_root: self.roots[policy],
            saturation: finite(card.saturation),
            terms: self.terms.clone(),
            through_seq: count(self.gathered.newest),
        })
    }

    /// Differences among these policies, adjusted as one family; in the order of their names. One with a policy whose
    /// failed audit stands carries that audit. What is told apart is for the form to say.
    ///
    /// # Errors
    /// [`AnalyzeError`] for a p that is no probability.
    pub fn contrasts(
        &self,
        experiment: &ExperimentId,
        family: &[usize],
        correction: Option<FamilyCorrection>,
        form: Form,
    ) -> Result<Vec<ContrastRecorded>, AnalyzeError> {
        let inside =
            |pair: &&Difference| family.contains(&pair.first) && family.contains(&pair.second);
        let pairs: Vec<&Difference> = self.analysis.differences.iter().filter(inside).collect();
        let adjusted = analyze::adjusted(
            pairs.iter().map(|pair| pair.p),
            terms::correction(correction),
        )?;
        let names: Vec<PolicyId> = family.iter().map(|&policy| self.name(policy)).collect();
        let sides: BTreeMap<usize, Side> = family
            .iter()
            .map(|&policy| (policy, self.side(experiment, policy)))
            .collect();
        let pairs = pairs.into_iter().zip(adjusted);
        let missing = Missing::among(self, family, form);
        let contrast = pairs.filter_map(|(pair, p_adjusted)| {
            let sides = [sides.get(&pair.first)?, sides.get(&pair.second)?];
            let said = self.reading(pair, p_adjusted, sides, form);
            let interval = said.conservative.unwrap_or(pair.interval);
            let (reading, prompts) = missing.read(pair, said.reading, interval);
            let claimed = form >= Form::Claimed;
            Some(ContrastRecorded {
                basis: text(pair.basis.name()),
                build: text(BUILD),
                calibrator: self.digest(),
                conservative: said.conservative.map(ends),
                correction,
                df: pair.df.map(finite),
                difference: finite(pair.difference),
                // What was seen before stands in the state, and in no row.
                exploratory_since: None,
                family: names.clone(),
                first: self.name(pair.first),
                first_claim: claimed.then_some(sides[0].claim),
                first_late: self.late(pair.first),
                first_root: self.roots[pair.first],
                first_transport: sides[0].failed,
                interval: ends(pair.interval),
                p: finite(pair.p),
                p_adjusted: finite(p_adjusted),
                prompts,
                reading: claimed.then_some(reading),
                se: finite(pair.se),
                second: self.name(pair.second),
                second_claim: claimed.then_some(sides[1].claim),
                second_late: self.late(pair.second),
                second_root: self.roots[pair.second],
                second_transport: sides[1].failed,
                told_apart: reading == Reading::ToldApart,
                terms: self.terms.clone(),
                through_seq: count(said.through),
            })
        });
        Ok(contrast.collect())
    }

    /// What one side of a difference rests on.
    fn side(&self, experiment: &ExperimentId, policy: usize) -> Side {
        let standing = self.standing(experiment, policy);
        let claim = self.claim(policy, standing);
        Side {
            claim,
            failed: standing.filter(|of| of.state == TransportState::Fail),
            is_audited: standing.is_some(),
            margin: self.margin(experiment, policy, claim),
        }
    }

    /// How far calibration may be off by the audit that a policy's claim rests on, in label units; 0 where it rests on none.
    pub fn margin(&self, experiment: &ExperimentId, policy: usize, claim: Claim) -> f64 {
        if claim != Claim::BorrowedChecked {
            return 0.0;
        }
        let (audits, name) = (&self.gathered.audits, self.name(policy));
        let margin = audits.margin(&scope::subject(&self.terms, experiment, &name));
        margin.map_or(0.0, terms::unit)
    }

    /// How a difference is to be read.
    fn reading(&self, pair: &Difference, p_adjusted: f64, sides: [&Side; 2], form: Form) -> Said {
        let is_marked = sides.iter().any(|side| side.failed.is_some());
        let is_below = p_adjusted < self.analysis.alpha;
        let leaves_zero = |of: Option<Interval>| of.is_none_or(|of| !of.contains(0.0));
        let read = |told: bool| {
            if told {
                Reading::ToldApart
            } else {
                Reading::NotToldApart
            }
        };
        // An audit moves the question only where it marks the answer.
        let through = |moves: bool| {
            if moves {
                self.through()
            } else {
                self.gathered.newest
            }
        };
        if form == Form::Bare {
            return Said {
                conservative: pair.conservative,
                reading: read(is_below && leaves_zero(pair.conservative) && !is_marked),
                through: through(is_marked),
            };
        }
        // An audit that passed says that calibration is off by less than its margin, and no more.
        let margins: f64 = sides.iter().map(|side| side.margin).sum();
        let widest = pair.widest();
        let conservative = (widest.is_some() || margins > 0.0)
            .then(|| widest.unwrap_or(pair.interval).widened(margins));
        let reading = if sides.iter().all(|side| side.claim.is_checked()) {
            read(is_below && leaves_zero(conservative))
        } else {
            Reading::Unchecked
        };
        Said {
            conservative,
            reading,
            through: through(sides.iter().any(|side| side.is_audited)),
        }
    }
}

/// What one side of a difference rests on.
#[derive(Clone, Copy, Debug)]
struct Side {
    claim: Claim,
    failed: Option<TransportStanding>,
    is_audited: bool,
    /// How far calibration may be off by the audit that it rests on, in label units; 0 where it rests on none.
    margin: f64,
}

/// What is said of a difference.
struct Said {
    conservative: Option<Interval>,
    reading: Reading,
    through: u64,
}

/// How labels are used where nothing else is said. Those of a design that draws some rows more often are weighted; where it is
/// not known how, they are left to the fit.
pub fn label_use(gathered: &Gathered) -> LabelUse {
    if gathered.is_stratified && gathered.inclusion().is_ok() {
        LabelUse::Weighted
    } else if gathered.is_stratified {
        LabelUse::Targeted
    } else {
        LabelUse::Representative
    }
}
