//! The statistics: a pure island that names only [`num`](clover_num).
//!
//! Nothing here knows an event, a file, a clock or a log line; randomness enters as a seed and leaves as
//! numbers. Inputs are checked once, as types of [`sample`] that cannot hold NaN, nothing, or misaligned
//! columns. Data too thin for a statistic is a named outcome ([`InsufficientData`](sample::InsufficientData)), never a number.
//!
//! What is shared: [`inference`] (intervals, welch, jackknife, deviation), [`crv1`] (cluster-robust means),
//! [`quantile`] (type 7, equal-frequency edges), [`multiplicity`] (corrections), [`distribution`], `draws` (seeded
//! streams), `spd` (Cholesky).
//!
//! | source | modules |
//! | --- | --- |
//! | CJE paper, calibration and Direct estimation; `cje-eval` 0.9.3 ("peer-1") | [`calibrator`], [`direct`], [`folds`], [`isotonic`], [`spline`], `ridge` |
//! | CJE paper, calibration and uncertainty | [`agreement`] |
//! | CJE paper, appendix A.7; CLOVER v1.1, section 8 | [`oua`] |
//! | CJE paper, appendix D.2, D.5, D.7 | [`anchors`], [`boundary`] |
//! | CJE paper, appendix D.6 | [`transport`] |
//! | CJE paper, algorithms 2 to 5 and appendix D.1; `cje-eval` 0.3.0 | [`weights`], [`overlap`], [`offpolicy`] |
//! | CJE paper, appendix F; CLOVER v1.1, section 8 | [`planner`] |
//! | CLOVER v1.1, section 3 | [`pooling`], [`residuals`] |
//! | CLOVER v1.1, sections 4 to 6 | [`distance`], [`predicate`], [`reliability`] |
//! | CLOVER v1.1, section 7 | [`environment`] |
//! | CLOVER v1.1, section 10.3 | [`gain`] |
//! | Waudby-Smith and Ramdas 2024; `agent-eval` 0.170.0 | [`eprocess`] |
//! | CLOVER v1.1, appendix A | [`prentice`] |
//! | CLOVER, workflow repair: theory | [`concordance`] |
//! | `numpy` 2.4, for replicates to the digit | [`peer_draws`] |
//! | SGD of judge prompts (`schema/SGD.md`) | [`descent`] |
//! | what each function names | [`kolmogorov`], [`monitor`], [`rank`], [`ranking`], [`student`] |

pub mod agreement;
pub mod anchors;
pub mod boundary;
pub mod calibrator;
pub mod concordance;
pub mod crv1;
pub mod descent;
pub mod direct;
pub mod distance;
pub mod distribution;
mod draws;
pub mod environment;
pub mod eprocess;
pub mod folds;
pub mod gain;
pub mod inference;
pub mod isotonic;
pub mod kolmogorov;
pub mod monitor;
pub mod multiplicity;
pub mod offpolicy;
pub mod oua;
pub mod overlap;
pub mod peer_draws;
pub mod planner;
pub mod pooling;
pub mod predicate;
pub mod prentice;
pub mod quantile;
pub mod rank;
pub mod ranking;
pub mod reliability;
pub mod residuals;
mod ridge;
pub mod sample;
mod spd;
pub mod spline;
pub mod student;
pub mod transport;
pub mod weights;
