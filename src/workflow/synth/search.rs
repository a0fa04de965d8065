//! The search of one path of a rubric over a grid of values: from the middle, halving toward improvement, at most four tries.

/// Shares that are tried.
pub const SHARES_MICRO: [i64; 9] = [
    50_000, 100_000, 150_000, 200_000, 250_000, 300_000, 350_000, 400_000, 500_000,
];
/// Counts that are tried.
pub const COUNTS: [u64; 7] = [200, 300, 400, 500, 600, 800, 1_000];

/// What is known of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnownWorth {
    /// It was never tried.
    Untried,
    /// It was tried, and nobody could say what it is worth.
    Worthless,
    /// What the dev objective said, negative when better.
    Worth(i64),
}

impl KnownWorth {
    fn worth(self) -> i64 {
        match self {
            Self::Worth(worth) => worth,
            Self::Untried | Self::Worthless => i64::MAX,
        }
    }
}

/// The places of a grid of `n` values in the order of the search, as far as what is known says; each has an answer but the
/// last, where that is untried.
fn walk(n: usize, known: &dyn Fn(usize) -> KnownWorth) -> Vec<usize> {
    let (middle, step) = (n / 2, (n / 4).max(1));
    let mut path = vec![middle];
    let goes_on = |path: &[usize]| {
        path.last()
            .is_some_and(|at| known(*at) != KnownWorth::Untried)
    };
    let visit = |path: &mut Vec<usize>, at: Option<usize>| match at {
        Some(at) if at < n && !path.contains(&at) => path.push(at),
        _ => {}
    };
    if n < 2 || !goes_on(&path) {
        return path;
    }
    let upper = (middle + step).min(n - 1);
    visit(&mut path, Some(upper));
    if !goes_on(&path) {
        return path;
    }
    let worth = |at: usize| known(at).worth();
    if worth(upper) < worth(middle) {
        for at in [upper.checked_add(1), upper.checked_sub(1)] {
            visit(&mut path, at);
            if !goes_on(&path) {
                return path;
            }
        }
        return path;
    }
    let lower = middle.checked_sub(step);
    visit(&mut path, lower);
    if !goes_on(&path) {
        return path;
    }
    let below = lower.map_or(i64::MAX, worth);
    let next = if below < worth(middle) {
        lower.and_then(|at| at.checked_sub(1))
    } else if worth(upper) <= below {
        middle.checked_add(1)
    } else {
        middle.checked_sub(1)
    };
    visit(&mut path, next);
    path
}

/// The next place to try; `None` once the search is over.
pub fn next(n: usize, known: &dyn Fn(usize) -> KnownWorth) -> Option<usize> {
    let last = walk(n, known).last().copied()?;
    (known(last) == KnownWorth::Untried).then_some(last)
}

/// The best place that was tried, where one made something better.
pub fn best(n: usize, known: &dyn Fn(usize) -> KnownWorth) -> Option<(usize, i64)> {
    let tried = (0..n).filter_map(|at| match known(at) {
        KnownWorth::Worth(worth) if worth < 0 => Some((at, worth)),
        _ => None,
    });
    tried.min_by_key(|(at, worth)| (*worth, *at))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Places that a search tries where value `at` is worth `worth(at)`.
    fn tried(n: usize, worth: impl Fn(usize) -> i64) -> Vec<usize> {
        let mut seen: Vec<usize> = Vec::new();
        loop {
            let known = |at: usize| match seen.contains(&at) {
                true => KnownWorth::Worth(worth(at)),
                false => KnownWorth::Untried,
            };
            match next(n, &known) {
                Some(at) => seen.push(at),
                None => return seen,
            }
        }
    }

    #[test]
    fn a_valley_is_found_within_four_tries() {
        for n in 1..=9 {
            for lowest in 0..n {
                let worth = |at: usize| at.abs_diff(lowest) as i64 - 100;
                let seen = tried(n, worth);
                assert!(
                    seen.len() <= 4 && seen.first() == Some(&(n / 2)),
                    "{n} {seen:?}"
                );
                let nearest = seen.iter().map(|at| at.abs_diff(lowest)).min();
                let reach = n / 4;
                assert!(nearest <= Some(reach.max(1)), "{n} {lowest} {seen:?}");
            }
        }
    }

    #[test]
    fn every_place_is_tried_once_and_the_search_ends() {
        for n in 1..=9 {
            for worth in [|_| 0, |at: usize| at as i64, |at: usize| -(at as i64)] {
                let mut seen = tried(n, worth);
                seen.sort_unstable();
                let before = seen.len();
                seen.dedup();
                assert_eq!(seen.len(), before, "{n}");
            }
        }
    }

    #[test]
    fn what_makes_nothing_better_is_never_the_best() {
        let known = |at: usize| match at {
            0 => KnownWorth::Worth(5),
            1 => KnownWorth::Worth(-3),
            2 => KnownWorth::Worthless,
            3 => KnownWorth::Worth(-3),
            _ => KnownWorth::Untried,
        };
        assert_eq!(best(5, &known), Some((1, -3)));
        assert_eq!(best(1, &known), None);
    }
}
