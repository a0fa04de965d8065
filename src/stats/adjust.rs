//! p-values adjusted for how many were looked at.

/// Which error a family of tests holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Adjustment {
    /// Benjamini and Hochberg 1995: the expected share of false rejections.
    #[default]
    BenjaminiHochberg,
    /// Holm 1979: the chance of any false rejection.
    Holm,
    /// Bonferroni: the chance of any false rejection.
    Bonferroni,
}

/// Adjusted p-values in the order given, clipped at 1.
pub(super) fn adjusted(p: &[f64], adjustment: Adjustment) -> Vec<f64> {
    let count = p.len() as f64;
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&a, &b| p[a].total_cmp(&p[b]));
    let mut result = vec![0.0; p.len()];
    match adjustment {
        Adjustment::Bonferroni => {
            for (slot, value) in result.iter_mut().zip(p) {
                *slot = (value * count).min(1.0);
            }
        }
        Adjustment::Holm => {
            let mut highest = 0.0_f64;
            for (rank, &at) in order.iter().enumerate() {
                highest = highest.max(p[at] * (count - rank as f64));
                result[at] = highest.min(1.0);
            }
        }
        Adjustment::BenjaminiHochberg => {
            let mut lowest = 1.0_f64;
            for (rank, &at) in order.iter().enumerate().rev() {
                // A rank of `count` divides by exactly 1: all are rejected exactly when the largest p is at most q.
                lowest = lowest.min(p[at] / ((rank as f64 + 1.0) / count));
                result[at] = lowest;
            }
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_statsmodels() {
        // source: statsmodels 0.15.0 multipletests, fdr_bh, holm, bonferroni.
        const WANT: [(Adjustment, [f64; 5]); 3] = [
            (
                Adjustment::BenjaminiHochberg,
                [0.025, 0.05, 0.05, 0.025, 0.7],
            ),
            (Adjustment::Holm, [0.04, 0.09, 0.09, 0.025, 0.7]),
            (Adjustment::Bonferroni, [0.05, 0.2, 0.15, 0.025, 1.0]),
        ];
        let p = [0.01, 0.04, 0.03, 0.005, 0.7];
        for (adjustment, want) in WANT {
            for (got, want) in adjusted(&p, adjustment).iter().zip(want) {
                assert!((got - want).abs() < 1e-15, "{got} is not {want}");
            }
        }
        assert!(adjusted(&[], Adjustment::Holm).is_empty());
    }
}
