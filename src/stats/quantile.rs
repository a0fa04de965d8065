//! Sample quantiles by linear interpolation (type 7) and the bins they cut.

/// The `q` quantile of ascending `sorted`, q in [0, 1]; exact where neighbours are equal.
pub(super) fn type_7(sorted: &[f64], q: f64) -> f64 {
    let last = sorted.len() - 1;
    let place = q * last as f64;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a place lies between 0 and the last row"
    )]
    let below = (place.floor().max(0.0) as usize).min(last);
    let above = (below + 1).min(last);
    let (low, high, share) = (sorted[below], sorted[above], place - below as f64);
    if share >= 0.5 {
        high - (high - low) * (1.0 - share)
    } else {
        low + (high - low) * share
    }
}

/// Ascending copy.
pub(super) fn ascending(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// Distinct edges of `bins` equal-frequency bins, from the minimum to the maximum.
pub(super) fn edges(values: &[f64], bins: usize) -> Vec<f64> {
    let sorted = ascending(values);
    let step = 1.0 / bins as f64;
    let mut edges: Vec<f64> = (0..=bins)
        .map(|at| type_7(&sorted, if at == bins { 1.0 } else { at as f64 * step }))
        .collect();
    edges.dedup_by(|a, b| *a <= *b);
    edges
}

/// The bin of a value among `edges`: closed below, open above; the ends take what lies beyond them.
pub(super) fn bin(edges: &[f64], value: f64) -> usize {
    let inner = edges.get(1..edges.len() - 1).unwrap_or(&[]);
    inner.partition_point(|edge| *edge <= value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_interpolate_and_ties_stay_exact() {
        let sorted = [0.1, 0.1, 0.3, 0.7];
        assert!((type_7(&sorted, 0.5) - 0.2).abs() < 1e-15);
        assert!((type_7(&sorted, 0.1) - 0.1).abs() <= 0.0);
        assert!((type_7(&sorted, 1.0) - 0.7).abs() <= 0.0);
        assert!((type_7(&[0.4], 0.3) - 0.4).abs() <= 0.0);
    }

    #[test]
    fn bins_are_closed_below_and_the_last_above() {
        let edges = edges(&[0.0, 0.25, 0.5, 0.75, 1.0], 4);
        assert_eq!(edges.len(), 5);
        let bins: Vec<usize> = [-1.0, 0.0, 0.25, 0.3, 1.0, 2.0]
            .iter()
            .map(|value| bin(&edges, *value))
            .collect();
        assert_eq!(bins, [0, 0, 1, 1, 3, 3]);
        assert_eq!(super::edges(&[0.5; 9], 10).len(), 1);
        assert_eq!(bin(&[0.5], 0.7), 0);
    }
}
