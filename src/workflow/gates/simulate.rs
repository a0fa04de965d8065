//! What a registered design does to streams of known effect: how often it says what, and after how many units.

use clover_stats::eprocess::Design;
use clover_stats::eprocess::Gate;
use clover_stats::eprocess::Looks;
use clover_stats::eprocess::Stratum;
use clover_stats::eprocess::Verdict;
use rand::Rng as _;
use rand::SeedableRng as _;
use rand::rngs::ChaCha20Rng;
use rayon::prelude::*;

/// How differences are made: about the effect, within the scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// None: both arms have the same scores.
    Same,
    /// None in nine of ten units about the effect, else all or nothing.
    Sparse,
    /// Uniform, within a twentieth of the scale of the effect: units of a stratum hardly differ.
    Steady,
    /// All or nothing.
    TwoPoint,
    /// Uniform, as wide as the scale allows about the effect, at most six tenths of it to each side.
    Uniform,
}

impl Shape {
    /// Every shape of units without strata; of those in some, also steady.
    pub const ALL: [Self; 3] = [Self::Sparse, Self::TwoPoint, Self::Uniform];

    /// The word on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Same => "none",
            Self::Sparse => "sparse",
            Self::Steady => "steady",
            Self::TwoPoint => "two-point",
            Self::Uniform => "uniform",
        }
    }

    /// A difference with mean `effect`, in millionths; `scale` bounds it.
    fn draw(self, rng: &mut ChaCha20Rng, effect: f64, scale: f64) -> f64 {
        let mut uniform = || (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        let two_point = |u: f64| {
            let up = f64::midpoint(1.0, effect / scale);
            if u < up { scale } else { -scale }
        };
        match self {
            Self::Same => effect,
            Self::TwoPoint => two_point(uniform()),
            Self::Sparse => {
                let rare = uniform() < 0.1;
                let all = two_point(uniform());
                if rare { all } else { effect }
            }
            Self::Steady => {
                let half = (0.05 * scale).min(scale - effect.abs());
                effect + half * (2.0 * uniform() - 1.0)
            }
            Self::Uniform => {
                let half = (0.6 * scale).min(scale - effect.abs());
                effect + half * (2.0 * uniform() - 1.0)
            }
        }
    }
}

/// What became of simulated gates.
#[derive(Clone, Debug, PartialEq)]
pub struct SimulationSummary {
    /// Share whose claim was shown.
    pub shown: f64,
    /// Share that ended by harm or futility.
    pub ended: f64,
    /// Nearest-rank median of the units after which the claim was shown; `None` where fewer than half showed it.
    pub median: Option<u64>,
    /// Nearest-rank ninth decile of the same.
    pub p90: Option<u64>,
    /// Mean number of units observed.
    pub mean_units: f64,
}

/// Streams whose paths are drawn.
const PATHS: usize = 64;
/// Fewest of them where each is dear: a first decile and a median need some.
const PATHS_LEAST: u64 = 5;
/// Places of a path.
const PLACES: u64 = 24;
/// Fewest of them where each is dear.
const PLACES_LEAST: u64 = 4;
/// Units that the intervals of a finite set's paths read at all places together: at each they replay the set so far.
const REPLAYED: u64 = 4_000_000;
/// Log wealth beyond which a path is drawn as flat.
const LN_MOST: f64 = 100.0;

/// Where a stream stands at one place; after its end, where it ended.
#[derive(Clone, Copy, Debug)]
struct StreamPoint {
    ln_wealth: f64,
    low: f64,
    high: f64,
}

/// Paths of simulated gates at some numbers of units, by nearest rank over the streams. A stream that ended stands where
/// it ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Paths {
    /// Streams that they are ranks of.
    pub streams: usize,
    /// Units observed.
    pub units: Vec<u64>,
    /// Log wealth of the claim: first decile, median and ninth decile.
    pub ln_wealth: [Vec<f64>; 3],
    /// Medians of the two ends of the confidence sequence of the mean effect, looked at at these places.
    pub interval: [Vec<f64>; 2],
}

/// How many paths are drawn, and at how many places at most. Of a finite set the interval of a place costs as much as
/// the place is far, so a long one has fewer paths, and a very long one fewer places.
pub fn paths_of(design: &Design) -> (usize, u64) {
    if design.units().is_none() {
        return (PATHS, PLACES);
    }
    let fit = REPLAYED / design.terms().max_n.max(1);
    let paths = (fit / PLACES).clamp(PATHS_LEAST, PATHS as u64);
    let places = (fit / paths).clamp(PLACES_LEAST, PLACES);
    (usize::try_from(paths).unwrap_or(PATHS), places)
}

/// Places for paths: registered looks, at most 24 of them, the last one among them.
pub fn places(design: &Design) -> Vec<u64> {
    let (most, (_, places)) = (design.terms().max_n, paths_of(design));
    let all: Vec<u64> = match &design.terms().looks {
        Looks::Every => {
            let step = most.div_ceil(places).max(1);
            (1..=most.div_ceil(step))
                .map(|at| (at * step).min(most))
                .collect()
        }
        Looks::At(at) => {
            let step = at
                .len()
                .div_ceil(usize::try_from(places).unwrap_or(1))
                .max(1);
            // The last look of each stretch.
            at.chunks(step)
                .filter_map(|part| part.last().copied())
                .collect()
        }
    };
    all.into_iter().filter(|n| *n > 0).collect()
}

/// Paths of gates of one design; `shown` is the same design with looks at [`places`] alone, where intervals are taken.
/// `told` is called after each path.
pub fn paths(
    design: &Design,
    shown: &Design,
    plan: SimulationPlan<'_>,
    told: &(dyn Fn() + Sync),
) -> Paths {
    let units = places(design);
    let streams: Vec<Vec<StreamPoint>> = (0..plan.streams.min(paths_of(design).0))
        .into_par_iter()
        .map(|stream| {
            let path = path(design, shown, plan, (stream, &units));
            told();
            path
        })
        .collect();
    let rank = |tenths: usize, of: fn(&StreamPoint) -> f64| -> Vec<f64> {
        let at = |place: usize| {
            let mut values: Vec<f64> = streams.iter().map(|path| of(&path[place])).collect();
            values.sort_by(f64::total_cmp);
            let rank = (tenths * values.len()).div_ceil(10).saturating_sub(1);
            values.get(rank).copied().unwrap_or(0.0)
        };
        (0..units.len()).map(at).collect()
    };
    Paths {
        streams: streams.len(),
        ln_wealth: [1, 5, 9].map(|tenths| rank(tenths, |place| place.ln_wealth)),
        interval: [rank(5, |place| place.low), rank(5, |place| place.high)],
        units,
    }
}

fn path(
    design: &Design,
    shown: &Design,
    plan: SimulationPlan<'_>,
    (stream, units): (usize, &[u64]),
) -> Vec<StreamPoint> {
    let mut source = DifferenceStream::new(design, plan, stream);
    let (mut gate, mut looking) = (
        Gate::verdicts_only(design.clone()),
        Gate::open(shown.clone()),
    );
    let mut found = Vec::with_capacity(units.len());
    for n in 1..=units.last().copied().unwrap_or(0) {
        if !gate.verdict().is_terminal() {
            // What the one takes the other takes: it looks at fewer places.
            let unit = source.next();
            if !unit.push(&mut gate) || !unit.push(&mut looking) {
                break;
            }
        }
        if units.get(found.len()) == Some(&n) {
            let claim = gate.look().claim;
            let bounds = looking.look().interval;
            let real = |micro: Option<i64>| micro.map_or(0.0, |micro| micro as f64 / 1e6);
            found.push(StreamPoint {
                // What a finite set makes impossible would leave the drawing.
                ln_wealth: claim.map_or(0.0, |claim| claim.ln_wealth.clamp(-LN_MOST, LN_MOST)),
                low: real(bounds.map(|of| of.low)),
                high: real(bounds.map(|of| of.high)),
            });
        }
    }
    if let Some(last) = found.last().copied() {
        found.resize(units.len(), last);
    }
    found
}

/// What an effect is the mean of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mean {
    /// Differences that scoring again and again would give.
    Expected,
    /// Differences that are recorded.
    Recorded,
}

/// What to simulate.
#[derive(Clone, Copy, Debug)]
pub struct SimulationPlan<'a> {
    /// Mean improvement of a unit, in millionths.
    pub effect: i64,
    /// Whether that is the mean of what is recorded of a finite set, or of what scoring it again and again would give: then
    /// noise moves what is recorded.
    pub mean: Mean,
    /// Seed; each stream has a generator of its own.
    pub seed: [u8; 32],
    /// How differences are made.
    pub shape: Shape,
    /// Strata of a finite set: their means differ as these predictions do, about the mean of all. The numbers of units
    /// are the design's, where that has strata; none for units without.
    pub strata: &'a [Stratum],
    /// How many gates.
    pub streams: usize,
}

/// Runs gates of one design, the same on any number of threads.
pub fn run(design: &Design, plan: SimulationPlan<'_>) -> SimulationSummary {
    run_told(design, plan, &|| {})
}

/// The same; `told` is called after each gate.
pub fn run_told(
    design: &Design,
    plan: SimulationPlan<'_>,
    told: &(dyn Fn() + Sync),
) -> SimulationSummary {
    let ends: Vec<(Verdict, u64)> = (0..plan.streams)
        .into_par_iter()
        .map(|stream| {
            let end = one(design, plan, stream);
            told();
            end
        })
        .collect();
    let claim = design.terms().claim;
    let mut shown: Vec<u64> = ends
        .iter()
        .filter(|(verdict, _)| Verdict::of(claim) == Some(*verdict))
        .map(|(_, n)| *n)
        .collect();
    shown.sort_unstable();
    let all = ends.len().max(1) as f64;
    let most = design.terms().max_n;
    let ended = ends
        .iter()
        .filter(|(verdict, n)| verdict.is_terminal() && *n < most)
        .count();
    let early = shown.iter().filter(|n| **n < most).count();
    let units: u64 = ends.iter().map(|(_, n)| *n).sum();
    // Nearest rank among all streams; those that never showed the claim stand last.
    let rank = |tenths: usize| {
        let place = (tenths * ends.len()).div_ceil(10);
        shown.get(place.saturating_sub(1)).copied()
    };
    SimulationSummary {
        shown: shown.len() as f64 / all,
        ended: (ended - early) as f64 / all,
        median: rank(5),
        p90: rank(9),
        mean_units: units as f64 / all,
    }
}

/// A unit as a gate takes it.
struct SimulatedUnit<'a> {
    delta: i64,
    guardrails: &'a [i64],
    stratum: Option<usize>,
}

impl SimulatedUnit<'_> {
    /// Whether it was taken.
    fn push(&self, gate: &mut Gate) -> bool {
        gate.push_in(self.stratum, self.delta, self.guardrails)
            .is_ok()
    }
}

/// The differences of one stream.
struct DifferenceStream<'a> {
    plan: SimulationPlan<'a>,
    rng: ChaCha20Rng,
    scale: f64,
    factor: i64,
    guardrails: Vec<i64>,
    /// Whether the design has strata.
    has_strata: bool,
    /// What is left of a finite set, each with its stratum.
    set: Option<Vec<(i64, usize)>>,
}

impl<'a> DifferenceStream<'a> {
    fn new(design: &Design, plan: SimulationPlan<'a>, stream: usize) -> Self {
        let mut rng = ChaCha20Rng::from_seed(plan.seed);
        rng.set_stream(stream as u64);
        let terms = design.terms();
        let sign = match terms.direction {
            clover_stats::eprocess::Direction::Increase => 1,
            clover_stats::eprocess::Direction::Decrease => -1,
        };
        let mut source = Self {
            plan,
            rng,
            scale: terms.scale as f64,
            // A unit's repeats agree: what is between units is what counts.
            factor: sign * i64::from(terms.repeats),
            guardrails: vec![0; terms.guardrails.len()],
            has_strata: !terms.strata.is_empty(),
            set: None,
        };
        source.set = design.units().map(|units| source.set_of(units));
        source
    }

    /// A finite set whose mean is exactly the effect.
    fn set_of(&mut self, units: u64) -> Vec<(i64, usize)> {
        let strata = self.plan.strata;
        let mut set: Vec<(i64, usize)> = Vec::new();
        let all: i128 = strata.iter().map(|one| i128::from(one.units)).sum();
        let predicted = strata
            .iter()
            .map(|one| i128::from(one.predicted) * i128::from(one.units));
        let mean = predicted.sum::<i128>().checked_div(all).unwrap_or(0);
        let mean = i64::try_from(mean).unwrap_or(0);
        for (at, one) in strata.iter().enumerate() {
            let about = self.plan.effect + (one.predicted - mean);
            set.extend((0..one.units).map(|_| (self.draw(about), at)));
        }
        // Those that are moved to make the mean exact are of all strata.
        for at in (1..set.len()).rev() {
            let other = self.rng.next_u64() % (at as u64 + 1);
            set.swap(at, usize::try_from(other).unwrap_or(at));
        }
        let others = units.saturating_sub(set.len() as u64);
        set.extend((0..others).map(|_| (self.draw(self.plan.effect), 0)));
        let scale = whole(self.scale);
        if self.plan.mean == Mean::Recorded {
            shift_to(&mut set, i128::from(self.plan.effect), scale);
        }
        set
    }

    /// A difference with this mean, as far as the scale allows.
    fn draw(&mut self, effect: i64) -> i64 {
        let scale = self.scale;
        let effect = (effect as f64).clamp(-scale, scale);
        let delta = self.plan.shape.draw(&mut self.rng, effect, scale);
        whole(delta.round().clamp(-scale, scale))
    }

    /// The next unit: its difference, and none of the guardrails.
    fn next(&mut self) -> SimulatedUnit<'_> {
        // Which unit of a finite set is next is drawn from those that are left.
        let left = self.set.as_ref().map(|set| set.len() as u64);
        let place = left.and_then(|left| self.rng.next_u64().checked_rem(left));
        let (delta, stratum) = match (&mut self.set, place) {
            (Some(set), Some(place)) => set.swap_remove(usize::try_from(place).unwrap_or(0)),
            _ => (self.draw(self.plan.effect), 0),
        };
        SimulatedUnit {
            delta: self.factor * delta,
            guardrails: &self.guardrails,
            stratum: self.has_strata.then_some(stratum),
        }
    }
}

/// Moves units within the scale, as few as need to be moved, until their mean is exactly that one: what a finite set's
/// hypothesis is about is the mean of its own units.
fn shift_to(set: &mut [(i64, usize)], mean: i128, scale: i64) {
    let sum: i128 = set.iter().map(|(delta, _)| i128::from(*delta)).sum();
    let mut left = mean * set.len() as i128 - sum;
    for (delta, _) in set {
        let (down, up) = (-scale - *delta, scale - *delta);
        let step = left.clamp(i128::from(down), i128::from(up));
        *delta += i64::try_from(step).unwrap_or(0);
        left -= step;
    }
}

fn one(design: &Design, plan: SimulationPlan<'_>, stream: usize) -> (Verdict, u64) {
    let mut source = DifferenceStream::new(design, plan, stream);
    let mut gate = Gate::verdicts_only(design.clone());
    for _ in 0..design.terms().max_n {
        if !source.next().push(&mut gate) || gate.verdict().is_terminal() {
            break;
        }
    }
    (gate.verdict(), gate.n())
}

/// A difference within the scale, at most 10^12 in magnitude, as the whole number that it is.
#[expect(clippy::cast_possible_truncation, reason = "a scale is at most 10^12")]
fn whole(value: f64) -> i64 {
    value as i64
}

#[cfg(test)]
mod tests {
    use clover_stats::eprocess::GateTerms;
    use clover_stats::eprocess::Population;

    use super::*;

    fn design(looks: Looks) -> Design {
        let mut terms = GateTerms::new(1_000_000, 200);
        terms.looks = looks;
        Design::new(terms).unwrap()
    }

    /// Each design is simulated under its own null: units without end, or exactly these.
    #[test]
    fn at_the_null_claims_are_false_at_most_as_often_as_registered() {
        for population in [
            Population::Superpopulation,
            Population::Finite { units: 200 },
        ] {
            let mut terms = GateTerms::new(1_000_000, 200);
            terms.population = population;
            let design = Design::new(terms).unwrap();
            for shape in Shape::ALL {
                let plan = |effect| SimulationPlan {
                    effect,
                    seed: [8; 32],
                    mean: Mean::Recorded,
                    shape,
                    strata: &[],
                    streams: 2_000,
                };
                let mut source = DifferenceStream::new(&design, plan(250_000), 7);
                let deltas: Vec<i64> = (0..200).map(|_| source.next().delta).collect();
                assert!(deltas.iter().all(|delta| delta.abs() <= 1_000_000));
                if population != Population::Superpopulation {
                    assert_eq!(deltas.iter().sum::<i64>(), 200 * 250_000);
                }
                let (null, better) = (run(&design, plan(0)), run(&design, plan(250_000)));
                // 2,000 streams at alpha 0.05 exactly would pass 0.065 about once in a thousand times.
                assert!(null.shown <= 0.065, "{population:?} {shape:?} {null:?}");
                assert!(better.shown >= 0.5, "{population:?} {shape:?} {better:?}");
            }
        }
    }

    /// Whatever is predicted of strata, and whether it comes true: claims are false at most as often as registered, and
    /// predictions that come true are worth units.
    #[test]
    fn strata_change_how_soon_and_not_how_often_falsely() {
        let strata = |predicted: [i64; 3]| {
            let units = [100, 60, 40];
            let one = |(predicted, units)| Stratum { predicted, units };
            predicted
                .into_iter()
                .zip(units)
                .map(one)
                .collect::<Vec<_>>()
        };
        let design = |strata: Vec<Stratum>| {
            let mut terms = GateTerms::new(1_000_000, 200);
            terms.population = Population::Finite { units: 200 };
            terms.strata = strata;
            Design::new(terms).unwrap()
        };
        let (good, none) = ([-250_000, 150_000, 400_000], [0; 3]);
        let turned = good.map(|predicted: i64| -predicted);
        let plain = design(Vec::new());
        for (predicted, true_of) in [(good, good), (good, none), (turned, good)] {
            let (design, made) = (design(strata(predicted)), strata(true_of));
            for shape in [Shape::TwoPoint, Shape::Uniform] {
                let plan = |effect| SimulationPlan {
                    effect,
                    seed: [9; 32],
                    mean: Mean::Recorded,
                    shape,
                    strata: &made,
                    streams: 700,
                };
                let mut source = DifferenceStream::new(&design, plan(50_000), 7);
                let mut unit = || {
                    let unit = source.next();
                    (unit.delta, unit.stratum.unwrap())
                };
                let units: Vec<_> = (0..200).map(|_| unit()).collect();
                assert_eq!(
                    units.iter().map(|(delta, _)| delta).sum::<i64>(),
                    200 * 50_000
                );
                let of = |at: usize| units.iter().filter(move |(_, stratum)| *stratum == at);
                assert_eq!([0, 1, 2].map(|at| of(at).count()), [100, 60, 40]);
                // 700 streams at alpha 0.05 exactly would pass 0.076 about once in a thousand times.
                let null = run(&design, plan(0));
                assert!(null.shown <= 0.076, "{predicted:?} {shape:?} {null:?}");
                if predicted != true_of || shape != Shape::Uniform {
                    continue;
                }
                let (with, without) = (run(&design, plan(60_000)), run(&plain, plan(60_000)));
                assert!(
                    with.mean_units < 0.95 * without.mean_units,
                    "{with:?} {without:?}"
                );
            }
        }
    }

    #[test]
    fn paths_lead_where_gates_end() {
        let registered = design(Looks::Every);
        let places = places(&registered);
        assert_eq!((places.len(), places.last()), (23, Some(&200)));
        let plan = SimulationPlan {
            effect: 300_000,
            seed: [4; 32],
            mean: Mean::Recorded,
            shape: Shape::TwoPoint,
            strata: &[],
            streams: 64,
        };
        let found = paths(
            &registered,
            &design(Looks::At(places.clone())),
            plan,
            &|| {},
        );
        assert_eq!(found.units, places);
        let done = run(&registered, plan);
        // Nearly every gate shows the claim, so the median path ends past ln 20, and at no less than the first decile.
        assert!(done.shown > 0.9, "{done:?}");
        let [low, middle, high] = &found.ln_wealth;
        let last = places.len() - 1;
        assert!(
            middle[last] >= clover_num::math::ln(20.0)
                && low[last] <= middle[last]
                && middle[last] <= high[last]
        );
        let [below, above] = &found.interval;
        // The sequence holds the effect, and is narrower than at first.
        assert!(below[last] < 0.3 && above[last] > 0.3);
        assert!(above[last] - below[last] < above[0] - below[0]);
        // The sequence only narrows.
        assert!(below.windows(2).all(|pair| pair[0] <= pair[1]));
        let null = paths(
            &registered,
            &design(Looks::At(places.clone())),
            SimulationPlan { effect: 0, ..plan },
            &|| {},
        );
        assert!(null.ln_wealth[1][last] < clover_num::math::ln(20.0));
        assert!(null.interval[0][last] < 0.0 && null.interval[1][last] > 0.0);
        let few = design(Looks::At((1..=100).map(|at| 2 * at).collect()));
        assert_eq!(super::places(&few).len(), 20);
    }

    /// Each place of a finite set's interval replays the set so far: paths x places x units are bounded.
    #[test]
    fn paths_of_a_long_finite_set_are_fewer() {
        let of = |units: u64, population| {
            let mut terms = GateTerms::new(1_000_000, units);
            terms.population = population;
            let design = Design::new(terms).unwrap();
            (paths_of(&design), places(&design).len() as u64)
        };
        assert_eq!(of(1_000_000, Population::Superpopulation), ((64, 24), 24));
        for units in [200, 2_000, 20_000, 200_000, 1_000_000] {
            let ((paths, most), places) = of(units, Population::Finite { units });
            assert!((5..=64).contains(&paths) && (4..=24).contains(&most));
            assert!(places <= most, "{units}: {places} of {most}");
            let replayed = paths as u64 * most * units;
            assert!(replayed <= 20_000_000, "{units}: {replayed}");
        }
        let ((paths, most), _) = of(200, Population::Finite { units: 200 });
        assert_eq!((paths, most), (64, 24));
    }
}
