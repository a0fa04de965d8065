//! Whether labels can bear the interval of their mean: their number, their spread and their skewness.

use clover_stats::inference::Interval;

/// Labels for each unit of squared skewness from which intervals of a mean are held to: the form of Cochran, Sampling
/// Techniques, 2.15, which has 25. With 10, intervals of 95 % cover shares of .01 to .1 in .915 to .945 of simulated worlds.
const LABELS_PER_SKEWNESS: f64 = 10.0;
/// Chance of as many or as few labels as nobody believes any more: both sides of five standard deviations.
const DRAW_CHANCE: f64 = 5.733e-7;
/// Part of the scale that labels must span at least, or what no label showed yet may move the mean.
const SPREAD_MIN: f64 = 0.01;

/// Whether more of `rows` are labelled than a design draws that takes each with probability `rate`, beyond chance and one row:
/// by the exact bounds of a binomial share (Clopper and Pearson).
pub fn is_above_draw(rows: usize, labels: usize, rate: f64) -> bool {
    let labels = labels.saturating_sub(1);
    let share = Interval::clopper_pearson(labels as u64, rows as u64, DRAW_CHANCE);
    labels > 0 && rate < share.low
}

/// Whether fewer are labelled, likewise.
pub fn is_below_draw(rows: usize, labels: usize, rate: f64) -> bool {
    let labels = labels + 1;
    let share = Interval::clopper_pearson(labels.min(rows) as u64, rows as u64, DRAW_CHANCE);
    labels < rows && rate > share.high
}

/// Whether labels differ, and by less than a hundredth of their scale. Labels that are all equal have an exact bound.
pub fn is_nearly_constant(labels: &[f64], span: f64) -> bool {
    let ends = (f64::INFINITY, f64::NEG_INFINITY);
    let fold = |(low, high): (f64, f64), &label: &f64| (low.min(label), high.max(label));
    let (low, high) = labels.iter().fold(ends, fold);
    high > low && high - low < SPREAD_MIN * span
}

/// How many labels as skewed as these would do, a whole number, where these are too few.
pub fn labels_wanted(labels: &[f64]) -> Option<f64> {
    let n = labels.len() as f64;
    let mean = labels.iter().sum::<f64>() / n;
    let deviations = || labels.iter().map(|label| label - mean);
    let second = deviations().map(|of| of * of).sum::<f64>() / n;
    let third = deviations().map(|of| of * of * of).sum::<f64>() / n;
    let wanted = LABELS_PER_SKEWNESS * third * third / (second * second * second);
    (second > 0.0 && n < wanted).then_some(wanted.ceil())
}

/// The same of labels that were drawn by stratum, each stratum with its share of the rows: of the mean of all of them, the
/// variance is the sum of `share^2 m2 / n`, and the third moment that of `share^3 m3 / n^2`.
pub fn labels_wanted_by_stratum(strata: &[(f64, Vec<f64>)]) -> Option<f64> {
    let (mut variance, mut third, mut count) = (0.0, 0.0, 0.0);
    for (share, labels) in strata.iter().filter(|(_, labels)| !labels.is_empty()) {
        let n = labels.len() as f64;
        let mean = labels.iter().sum::<f64>() / n;
        let deviations = || labels.iter().map(|label| label - mean);
        let squares = deviations().map(|of| of * of).sum::<f64>() / n;
        let cubes = deviations().map(|of| of * of * of).sum::<f64>() / n;
        variance += share * share * squares / n;
        third += share * share * share * cubes / (n * n);
        count += n;
    }
    let cubed = variance * variance * variance;
    let wanted = LABELS_PER_SKEWNESS * count * third * third / cubed;
    (variance > 0.0 && count < wanted).then_some(wanted.ceil())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of one stratum, what labels without strata want. Of two, by hand: 0 0 0 1 with half of the rows, m2 = 3/16 and
    /// m3 = 3/32, beside 0 1 with m3 = 0: variance 3/256 + 1/32 = 11/256, third moment 3/4096, wanted
    /// 10 x 6 (3/4096)^2 / (11/256)^3 = .406, which is fewer than 6; of the first alone, 10 (3/32)^2 / (3/16)^3 = 13.3.
    #[test]
    fn strata_count_by_their_share() {
        let mut rare = vec![0.0; 100];
        rare[3] = 1.0;
        let one = labels_wanted_by_stratum(&[(1.0, rare.clone())]);
        // The ceiling may fall on either side of a whole number.
        assert!(one.is_some_and(|wanted| (wanted - 971.0).abs() <= 1.0));
        let few = vec![0.0, 0.0, 0.0, 1.0];
        assert_eq!(labels_wanted_by_stratum(&[(1.0, few.clone())]), Some(14.0));
        let both = [(0.5, few), (0.5, vec![0.0, 1.0])];
        assert_eq!(labels_wanted_by_stratum(&both), None);
        // A hundredth of the rows cannot skew the mean of all of them.
        let even: Vec<f64> = (0..40).map(|n| f64::from(n % 2)).collect();
        assert_eq!(
            labels_wanted_by_stratum(&[(0.01, rare), (0.99, even)]),
            None
        );
    }

    /// One in a hundred: the squared skewness of such a share is (1 - 2p)^2 / (p (1 - p)) = 97.01.
    #[test]
    fn rare_labels_need_many() {
        let mut labels = vec![0.0; 100];
        labels[3] = 1.0;
        assert_eq!(labels_wanted(&labels), Some(971.0));
        let even: Vec<f64> = (0..20).map(|n| f64::from(n % 2)).collect();
        assert_eq!(labels_wanted(&even), None);
        assert_eq!(labels_wanted(&[0.5; 4]), None);
    }

    #[test]
    fn labels_within_a_hundredth_of_the_scale_are_nearly_constant() {
        assert!(is_nearly_constant(&[0.2, 0.2 + 1e-6], 1.0));
        assert!(!is_nearly_constant(&[0.2, 0.2], 1.0));
        assert!(!is_nearly_constant(&[0.2, 0.3], 1.0));
    }

    /// Tails of a binomial count, summed beside: of 1,200 rows at .1 more than 179 or so, or fewer than 65, come less often than
    /// once in 3.5 million; at most one of 100 at .14 comes with 5e-6. Of rows that are drawn for certain one may lack.
    #[test]
    fn more_or_fewer_than_a_design_draws_is_beyond_chance() {
        assert!(is_above_draw(1_200, 190, 0.1) && !is_above_draw(1_200, 165, 0.1));
        assert!(is_below_draw(1_200, 60, 0.1) && !is_below_draw(1_200, 80, 0.1));
        assert!(is_below_draw(157, 67, 0.9) && !is_below_draw(157, 130, 0.9));
        assert!(!is_below_draw(100, 0, 0.14) && is_below_draw(200, 0, 0.14));
        assert!(!is_below_draw(80, 79, 1.0) && is_below_draw(80, 78, 1.0));
        assert!(!is_above_draw(80, 80, 1.0) && !is_below_draw(80, 80, 1.0));
        assert!(!is_above_draw(80, 0, 0.0) && !is_above_draw(80, 1, 0.0));
        assert!(is_above_draw(80, 3, 0.0));
    }
}
