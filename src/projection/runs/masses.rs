//! The score of an answer that weighs its levels: their mean, each by the probability that the model gave it.
//!
//! G-Eval (Liu and others, 2023) scores so: the mean is finer than the level that was said, and varies less from ask to ask.

use clover_event::calls::CallOutcome;
use clover_event::payload::model_runs::LevelMass;
use clover_num::Count;
use clover_num::Micro;
use clover_num::mass;
use clover_num::mass::MASS_WHOLE;

/// Least part of all probability that levels must have, in hundredths.
const COVERED_LEAST: u128 = 95;
/// Most that masses may add up to, in thousandths: log-probabilities are rounded.
const MASSES_MOST: u128 = 1_001;

/// Why masses give no score.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MassFault {
    /// A level that the scale has not, or a log-probability out of range.
    Level,
    /// They add up to more than one.
    Over,
    /// They add up to less than .95: the model was about to say something else.
    Uncovered,
}

impl MassFault {
    /// What a call with such masses came to.
    pub fn outcome(self) -> CallOutcome {
        match self {
            Self::Level | Self::Over => CallOutcome::Unparsed,
            Self::Uncovered => CallOutcome::Uncovered,
        }
    }
}

/// The mean level as a share from 0 to 1, in millionths, half to even. `levels` is how many the scale has, at least 2.
///
/// # Errors
/// [`MassFault`].
pub fn score(masses: &[LevelMass], levels: Count) -> Result<Micro, MassFault> {
    let steps = levels.value().checked_sub(1).filter(|steps| *steps > 0);
    let steps = u128::from(steps.ok_or(MassFault::Level)?);
    let (mut sum, mut weighed) = (0_u128, 0_u128);
    for of in masses {
        let level = u128::from(of.level.value());
        let mass = mass::mass(of.logprob_micro.value()).filter(|_| level <= steps);
        let mass = mass.ok_or(MassFault::Level)?;
        sum += mass;
        weighed += mass * level;
    }
    if sum * 1_000 > MASS_WHOLE * MASSES_MOST {
        return Err(MassFault::Over);
    }
    if sum * 100 < MASS_WHOLE * COVERED_LEAST {
        return Err(MassFault::Uncovered);
    }
    Micro::share(weighed, sum * steps).ok_or(MassFault::Level)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masses(of: &[(u64, i64)]) -> Vec<LevelMass> {
        let each = of.iter().map(|&(level, logprob)| LevelMass {
            level: Count::new(level).unwrap(),
            logprob_micro: Micro::new(logprob).unwrap(),
        });
        each.collect()
    }

    fn of(all: &[(u64, i64)]) -> Result<i64, MassFault> {
        score(&masses(all), Count::new(5).unwrap()).map(Micro::value)
    }

    /// source: the specification of endpoints, its vector: levels 1 to 5, `3`, `4`, ` 4`, `5` with masses .1, .7, .05, .15.
    #[test]
    fn a_score_is_the_mean_level_of_its_vector() {
        let vector = [
            (2, -2_302_585),
            (3, -356_675),
            (3, -2_995_732),
            (4, -1_897_120),
        ];
        assert_eq!(of(&vector), Ok(762_500));
    }

    #[test]
    fn masses_that_cover_too_little_give_no_score_and_never_that_of_the_top_token() {
        assert_eq!(of(&[(3, -51_293)]), Ok(750_000), "just above .95");
        assert_eq!(of(&[(3, -51_294)]), Err(MassFault::Uncovered));
        assert_eq!(of(&[]), Err(MassFault::Uncovered));
        assert_eq!(of(&[(0, 0), (4, -6_800_000)]), Err(MassFault::Over));
        assert_eq!(of(&[(5, 0)]), Err(MassFault::Level));
        assert_eq!(of(&[(0, 1)]), Err(MassFault::Level));
    }
}
