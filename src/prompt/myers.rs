//! The length of the shortest edit script: characters to delete and to insert (Myers 1986, "An O(ND) difference
//! algorithm and its variations"), in space of the length that is looked for.

/// Insertions plus deletions that turn `a` into `b`; `None` where they are more than `most`.
pub fn distance<T: PartialEq>(a: &[T], b: &[T], most: usize) -> Option<usize> {
    let same = a.iter().zip(b).take_while(|(x, y)| x == y).count();
    let (a, b) = (&a[same..], &b[same..]);
    let tail = a.iter().rev().zip(b.iter().rev());
    let same = tail.take_while(|(x, y)| x == y).count();
    let (a, b) = (&a[..a.len() - same], &b[..b.len() - same]);
    if a.is_empty() || b.is_empty() {
        let length = a.len() + b.len();
        return (length <= most).then_some(length);
    }
    if a.len().abs_diff(b.len()) > most {
        return None;
    }
    let (n, m) = (a.len().cast_signed(), b.len().cast_signed());
    let most = most.min(a.len() + b.len());
    let middle = most.cast_signed() + 1;
    // The furthest place in `a` on each diagonal k = x - y.
    let mut furthest = vec![0_isize; 2 * most + 3];
    let place = |k: isize| usize::try_from(middle + k).unwrap_or(0);
    for d in 0..=most.cast_signed() {
        // Diagonals that leave the two texts cannot come back to the goal.
        let low = -(d - 2 * (d - m).max(0));
        let high = d - 2 * (d - n).max(0);
        for k in (low..=high).step_by(2) {
            let down = k == -d || k != d && furthest[place(k - 1)] < furthest[place(k + 1)];
            let mut x = if down {
                furthest[place(k + 1)]
            } else {
                furthest[place(k - 1)] + 1
            };
            let mut y = x - k;
            while x < n && y < m && a[x.cast_unsigned()] == b[y.cast_unsigned()] {
                x += 1;
                y += 1;
            }
            furthest[place(k)] = x;
            if x >= n && y >= m {
                return usize::try_from(d).ok();
            }
        }
    }
    None
}

/// [`distance`] of the Unicode scalars of two texts.
pub fn scalars(a: &str, b: &str, most: usize) -> Option<usize> {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    distance(&a, &b, most)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// n + m - 2 LCS, by the table.
    fn by_table(a: &[char], b: &[char]) -> usize {
        let mut above = vec![0; b.len() + 1];
        for x in a {
            let mut row = vec![0; b.len() + 1];
            for (j, y) in b.iter().enumerate() {
                row[j + 1] = if x == y {
                    above[j] + 1
                } else {
                    row[j].max(above[j + 1])
                };
            }
            above = row;
        }
        a.len() + b.len() - 2 * above[b.len()]
    }

    #[test]
    fn worked_lengths() {
        // source: Myers 1986, figure 1: ABCABBA to CBABAC is 5.
        assert_eq!(scalars("ABCABBA", "CBABAC", 99), Some(5));
        assert_eq!(scalars("", "漢字", 9), Some(2));
        assert_eq!(scalars("same", "same", 0), Some(0));
        assert_eq!(scalars("abc", "xyz", 5), None);
        assert_eq!(scalars("abc", "xyz", 6), Some(6));
    }

    proptest! {
        #[test]
        fn the_table_says_the_same(a in "[ab漢]{0,30}", b in "[ab漢]{0,30}", most in 0_usize..70) {
            let (x, y): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
            let whole = by_table(&x, &y);
            prop_assert_eq!(distance(&x, &y, most), (whole <= most).then_some(whole));
        }
    }
}
