//! Cells of a field of numbers: its rows of the fit window, cut where a share of them lies below.

use std::collections::BTreeSet;

use clover_event::id::FamilyId;
use clover_event::id::FieldId;
use clover_event::payload::manifest::Slice;
use clover_event::payload::manifest::SliceCondition;
use clover_event::payload::manifest::SliceFamily;
use clover_num::Micro;

use crate::iterate::compute::rows;

/// Most cells of a field of numbers.
const PARTS_MAX: usize = 4;

/// Numbers of a field by row; `None` where some word is no number.
fn numbers(words: &[Option<String>]) -> Option<Vec<Option<Micro>>> {
    let each = words.iter().map(|word| match word {
        None => Some(None),
        Some(word) => Micro::parse(word).ok().map(|(number, _)| Some(number)),
    });
    each.collect()
}

/// Where numbers are cut into parts of about as many rows each, ascending, each once: at the least number that has a share of
/// the rows below it.
fn cuts(numbers: &[Option<Micro>], parts: usize) -> Vec<Micro> {
    let mut sorted: Vec<Micro> = numbers.iter().copied().flatten().collect();
    sorted.sort_unstable();
    let least = sorted.first().copied();
    let at = (1..parts).map(|part| sorted.len() * part / parts);
    let all: BTreeSet<Micro> = at.filter_map(|at| sorted.get(at).copied()).collect();
    // Nothing lies below the least.
    all.into_iter().filter(|cut| Some(*cut) != least).collect()
}

/// The family of a field of numbers: cells of about as many rows of the fit window each. `None` where some word is no number,
/// or all are one.
pub(super) fn family(
    field: &FieldId,
    words: &[Option<String>],
    cells_max: usize,
    stakes: Micro,
) -> Option<(SliceFamily, rows::SliceFamily)> {
    let numbers = numbers(words)?;
    let cuts = cuts(&numbers, PARTS_MAX.min(cells_max));
    if cuts.is_empty() {
        return None;
    }
    let id: FamilyId = field.as_str().parse().ok()?;
    let parts = cuts.len() + 1;
    let cells = (0..parts).map(|part| {
        let condition = SliceCondition {
            any_of: None,
            at_least_micro: part.checked_sub(1).map(|at| cuts[at]),
            below_micro: cuts.get(part).copied(),
            field: field.clone(),
        };
        Some(Slice {
            conditions: vec![condition],
            must_not_regress: false,
            slice: format!("part-{}-of-{parts}", part + 1).parse().ok()?,
            stakes_micro: stakes,
        })
    });
    let cells: Vec<Slice> = cells.collect::<Option<_>>()?;
    let part_of = |number: &Option<Micro>| {
        let number = (*number)?;
        Some(cuts.iter().filter(|cut| **cut <= number).count())
    };
    let column = rows::SliceFamily {
        id: id.clone(),
        slices: cells.iter().map(|cell| cell.slice.clone()).collect(),
        stakes: vec![stakes.value() as f64 / 1e6; parts],
        must_not_regress: vec![false; parts],
        of_row: numbers.iter().map(part_of).collect(),
    };
    Some((SliceFamily { cells, family: id }, column))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(all: &[&str]) -> Vec<Option<String>> {
        let word = |of: &&str| (!of.is_empty()).then(|| (*of).to_owned());
        all.iter().map(word).collect()
    }

    fn of(all: &[&str], cells_max: usize) -> Option<(SliceFamily, rows::SliceFamily)> {
        let field = "length".parse().unwrap();
        family(&field, &words(all), cells_max, Micro::default())
    }

    #[test]
    fn numbers_are_cut_into_parts_of_as_many_rows() {
        // Of 1 to 8 a quarter lies below 3, a half below 5 and three quarters below 7.
        let (plan, column) = of(&["8", "1", "2", "7", "", "3", "6", "5", "4"], 12).unwrap();
        let ends: Vec<_> = plan
            .cells
            .iter()
            .map(|cell| {
                let of = &cell.conditions[0];
                (
                    of.at_least_micro.map(Micro::value),
                    of.below_micro.map(Micro::value),
                )
            })
            .collect();
        let micro = |value: i64| Some(value * 1_000_000);
        let expected = [
            (None, micro(3)),
            (micro(3), micro(5)),
            (micro(5), micro(7)),
            (micro(7), None),
        ];
        assert_eq!(ends, expected);
        let rows = [3, 0, 0, 3].map(Some);
        assert_eq!(column.of_row[..4], rows);
        assert_eq!(column.of_row[4], None);
    }

    #[test]
    fn equal_numbers_stay_together_and_other_words_are_no_numbers() {
        // A half of 0, 0, 0, 2, 2, 2 lies below 2, and so do the other shares: one cut.
        let (plan, column) = of(&["0", "2", "0", "2", "0", "2"], 12).unwrap();
        assert_eq!(plan.cells.len(), 2);
        assert_eq!(column.of_row, [0, 1, 0, 1, 0, 1].map(Some));
        assert!(of(&["1", "2", "x"], 12).is_none());
        assert!(of(&["1", "1"], 12).is_none());
    }
}
