//! Things that may be said once: whether one was said before, at a cost that does not grow with what was said.

use std::collections::BTreeSet;

/// Up to so many are compared one by one, which is quicker than a tree.
const FEW: usize = 16;

/// What was said so far.
#[derive(Debug)]
pub struct Once<K> {
    few: Vec<K>,
    many: BTreeSet<K>,
}

impl<K> Default for Once<K> {
    fn default() -> Self {
        Self {
            few: Vec::new(),
            many: BTreeSet::new(),
        }
    }
}

impl<K: Ord> Once<K> {
    /// Whether `key` is said for the first time.
    pub fn insert(&mut self, key: K) -> bool {
        if !self.many.is_empty() {
            return self.many.insert(key);
        }
        if self.few.contains(&key) {
            return false;
        }
        self.few.push(key);
        if self.few.len() > FEW {
            self.many.extend(self.few.drain(..));
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::cmp::Ordering;

    use super::*;

    /// A number that counts how often it is compared.
    #[derive(Debug)]
    struct Counted<'a>(u32, &'a Cell<u64>);

    impl PartialEq for Counted<'_> {
        fn eq(&self, other: &Self) -> bool {
            self.cmp(other) == Ordering::Equal
        }
    }
    impl Eq for Counted<'_> {}
    impl PartialOrd for Counted<'_> {
        fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
            Some(self.cmp(other))
        }
    }
    impl Ord for Counted<'_> {
        fn cmp(&self, other: &Self) -> Ordering {
            self.1.set(self.1.get() + 1);
            self.0.cmp(&other.0)
        }
    }

    #[test]
    fn each_is_said_once_and_many_cost_little_more_than_few() {
        let count = Cell::new(0);
        let cost = |most: u32| {
            count.set(0);
            let mut once = Once::default();
            for key in 0..most {
                assert!(once.insert(Counted(key, &count)));
            }
            assert!(!once.insert(Counted(0, &count)));
            assert!(!once.insert(Counted(most - 1, &count)));
            count.get()
        };
        assert!(cost(3) < 10);
        assert!(cost(20_000) < 15 * cost(2_000));
    }
}
