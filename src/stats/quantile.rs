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
