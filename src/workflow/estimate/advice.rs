//! What to label where a level is refused: how many responses of which scores.

use clover_stats::boundary;
use clover_stats::boundary::Support;
use clover_stats::boundary::TailCoverage;

/// Responses to label in one tail of a policy's scores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Advice {
    /// Whether it is the tail below the edge; else above.
    pub is_low: bool,
    /// Where the tail begins, on the unit scale.
    pub edge: f64,
    /// Share of the policy's scores beyond it.
    pub mass: f64,
    /// Labels beyond it now.
    pub labels: usize,
    /// Labels to add there, so that it is no longer starved.
    pub wanted: usize,
}

/// Labels that end the starvation of each tail, and reach into what no label covers.
///
/// k more labels in a tail end it when `(labels + k + 1) / (m + k + 2) >= mass / 3`, `m` being all labels now.
pub fn advice(support: &Support, m: usize) -> Vec<Advice> {
    let tail = |tail: &TailCoverage, is_low: bool| {
        let needed = tail.mass / 3.0;
        let now = tail.labels as f64 + 1.0;
        let wanted = ((needed * (m as f64 + 2.0) - now) / (1.0 - needed)).ceil();
        let beyond = support.out_of_range >= boundary::OUT_OF_RANGE_MAX && tail.mass > 0.0;
        // At least one in what no label covers, however well the tail as a whole is covered.
        let least = f64::from(u8::from(beyond));
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a count from 0 to a third of the labels"
        )]
        let wanted = wanted.max(least) as usize;
        (tail.starved || beyond).then_some(Advice {
            is_low,
            edge: tail.edge,
            mass: tail.mass,
            labels: tail.labels,
            wanted,
        })
    };
    let found = [tail(&support.low, true), tail(&support.high, false)];
    if support.refuse_level {
        found.into_iter().flatten().collect()
    } else {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use clover_stats::sample::Values;

    use super::*;

    #[test]
    fn what_is_advised_is_enough_and_no_more() {
        let labelled: Vec<f64> = (0..480).map(|i| if i < 9 { 0.1 } else { 0.85 }).collect();
        let target: Vec<f64> = (0..1000)
            .map(|i| if i < 767 { 0.1 } else { 0.85 })
            .collect();
        let support = |labelled: &[f64]| {
            boundary::support(
                Values::new("target", &target).unwrap(),
                Values::new("labelled", labelled).unwrap(),
            )
        };
        let found = support(&labelled);
        assert!(found.refuse_level);
        let [one] = advice(&found, labelled.len())[..] else {
            panic!("one tail");
        };
        assert!(one.is_low && one.labels == 9 && one.wanted > 0);
        // The rule itself, at the edge that the advice names.
        let starved = |more: f64| (9.0 + more + 1.0) / (480.0 + more + 2.0) < 0.767 / 3.0;
        assert!(!starved(one.wanted as f64) && starved(one.wanted as f64 - 1.0));
        assert!(advice(&support(&target), target.len()).is_empty());
    }
}
