//! Which candidates of several go on: the best of each family, or one that touches an obligation and is nearly as good.
//! Source: CLOVER v1.1, section 4.

use clover_ground::digest::Digest;

/// Share of the best risk improvement within which an obligation goes before a penalty.
const OBLIGATION_SHARE: f64 = 0.05;

/// A candidate among which is chosen.
#[derive(Clone, Copy, Debug)]
pub struct Rival<'a> {
    /// Its family.
    pub family: &'a str,
    /// Its hash, which decides between equals.
    pub hash: Digest,
    /// Risk improvement on dev, negative when better.
    pub improve: f64,
    /// Whether it touches an obligation.
    pub obliges: bool,
}

/// Places of those that are chosen, one a family, the best family first.
pub fn best_of_families(rivals: &[Rival<'_>]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..rivals.len()).collect();
    order.sort_by(|&a, &b| {
        let (a, b) = (&rivals[a], &rivals[b]);
        let improve = a.improve.total_cmp(&b.improve);
        improve.then(a.hash.cmp(&b.hash))
    });
    let mut chosen: Vec<usize> = Vec::new();
    for &place in &order {
        let best = &rivals[place];
        if chosen.iter().any(|of| rivals[*of].family == best.family) {
            continue;
        }
        let near = |improve: f64| improve <= best.improve + OBLIGATION_SHARE * best.improve.abs();
        let mut of_family = order.iter().filter(|of| rivals[**of].family == best.family);
        let obliging = of_family.find(|of| near(rivals[**of].improve) && rivals[**of].obliges);
        chosen.push(obliging.copied().unwrap_or(place));
    }
    chosen
}
