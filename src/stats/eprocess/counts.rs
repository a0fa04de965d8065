//! Observations by value: how often each came, bounded whatever comes.
//!
//! A judge has few score levels, so a stream of any length is a short table of counts, and what is computed from it
//! depends on the values alone. The first 4,096 distinct values keep their counts. Later new values fall into 4,096
//! equal cells of the range, which only the confidence sequence reads, each at the edge that weakens its evidence.

/// Distinct values with a count of their own.
pub const LEVELS_MAX: usize = 4096;
/// Cells for the values after them.
pub const CELLS: usize = 4096;

/// Where a value went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seat {
    /// To a known value, by its slot.
    Known(usize),
    /// To a new one, with the next slot.
    New,
    /// To a cell.
    Beyond,
}

/// Counts of integer values in [0, `span`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Levels {
    span: i64,
    /// Distinct values, ascending, each with its slot; slots number values in the order of their first appearance.
    values: Vec<(i64, usize)>,
    counts: Vec<u64>,
    /// Place in `values` of the last value, which often comes again.
    last: usize,
    /// Empty until the first value beyond the levels.
    cells: Vec<u64>,
}

impl Levels {
    pub(super) fn new(span: i64) -> Self {
        Self {
            span,
            values: Vec::new(),
            counts: Vec::new(),
            last: 0,
            cells: Vec::new(),
        }
    }

    /// Ticks of one cell.
    fn width(&self) -> i64 {
        self.span / i64::try_from(CELLS).expect("BUG: 4096 fits") + 1
    }

    pub(super) fn push(&mut self, tick: i64) -> Seat {
        if let Some((value, slot)) = self.values.get(self.last)
            && *value == tick
        {
            self.counts[*slot] += 1;
            return Seat::Known(*slot);
        }
        match self.values.binary_search_by_key(&tick, |(value, _)| *value) {
            Ok(place) => {
                self.last = place;
                let slot = self.values[place].1;
                self.counts[slot] += 1;
                Seat::Known(slot)
            }
            Err(place) if self.values.len() < LEVELS_MAX => {
                self.values.insert(place, (tick, self.counts.len()));
                self.counts.push(1);
                self.last = place;
                Seat::New
            }
            Err(_) => {
                self.cells.resize(CELLS, 0);
                let cell = usize::try_from(tick / self.width()).unwrap_or(0);
                self.cells[cell.min(CELLS - 1)] += 1;
                Seat::Beyond
            }
        }
    }

    /// Counts the last value as many times more and gives its slot; `None` where it has no count of its own.
    pub(super) fn again(&mut self, tick: i64, times: u64) -> Option<usize> {
        let (value, slot) = self.values.get(self.last)?;
        if *value != tick {
            return None;
        }
        self.counts[*slot] += times;
        Some(*slot)
    }

    /// Slots with their counts, by value ascending.
    pub(super) fn slots(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.values
            .iter()
            .map(|(_, slot)| (*slot, self.counts[*slot]))
    }

    /// Values with their counts, ascending.
    pub(super) fn counts(&self) -> impl Iterator<Item = (i64, u64)> + '_ {
        self.values
            .iter()
            .map(|(value, slot)| (*value, self.counts[*slot]))
    }

    /// Cells that hold something: least value, largest value, count.
    pub(super) fn cells(&self) -> impl Iterator<Item = (i64, i64, u64)> + '_ {
        let width = self.width();
        let filled = (0..).zip(&self.cells).filter(|(_, count)| **count > 0);
        filled.map(move |(at, count): (i64, &u64)| {
            let low = at * width;
            (low, (low + width - 1).min(self.span), *count)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_counts_until_there_are_too_many() {
        let mut levels = Levels::new(20_000);
        for tick in [7, 3, 7, 7, 0] {
            levels.push(tick);
        }
        let counts: Vec<_> = levels.counts().collect();
        assert_eq!(counts, [(0, 1), (3, 1), (7, 3)]);
        let slots: Vec<_> = levels.slots().collect();
        assert_eq!(slots, [(2, 1), (1, 1), (0, 3)]);
        for tick in 0..6000 {
            levels.push(tick);
        }
        assert_eq!(levels.counts().count(), LEVELS_MAX);
        let beyond: Vec<_> = levels.cells().collect();
        let total: u64 = beyond.iter().map(|(_, _, count)| count).sum();
        assert_eq!(total, 6000 - 4096);
        // 20,000 ticks in cells of 5: the first value that came too late is 4096.
        assert_eq!(beyond[0], (4095, 4099, 4));
        assert_eq!(levels.push(20_000), Seat::Beyond);
        assert_eq!(levels.cells().last(), Some((20_000, 20_000, 1)));
        // What has a count of its own is counted in one step, and nothing else is.
        assert_eq!(levels.again(20_000, 5), None);
        levels.push(7);
        assert_eq!(levels.again(7, 5), Some(0));
        assert_eq!(levels.again(3, 5), None);
        assert_eq!(levels.counts().find(|(tick, _)| *tick == 7), Some((7, 10)));
    }
}
