//! Rules of a rubric that hardly ever fire, counted over the rows that iterations read.
//!
//! A rule is rare where it fires on fewer than one row in a thousand, and dead where it is so in two iterations that
//! follow each other. Source: CLOVER v1.1, section 9.4.

use clover_event::id::ExperimentId;
use clover_event::id::IterationId;
use clover_ledger::History;
use clover_ledger::State;
use clover_projection::iterations::Iterations;
use clover_projection::iterations::record::Records;
use clover_rubric::Rubric;
use clover_rubric::prompt::Firing;

use crate::iterate::rows;
use crate::iterate::rows::IterationRowsError;
use crate::iterate::rows::RowsQuery;

/// Iterations in a row in which a dead rule is rare.
pub const TURNS: usize = 2;

/// What a rule does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleActivity {
    /// Rare in the two newest iterations.
    Dead,
    /// Rare in some.
    Rare,
    /// It fires.
    Live,
}

impl RuleActivity {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Dead => "dead",
            Self::Rare => "rare",
            Self::Live => "live",
        }
    }
}

/// How a rule stands by what was counted, oldest first.
pub fn standing(path: &str, firings: &[&Firing]) -> RuleActivity {
    let rare = |firing: &&Firing| firing.rare().contains(&path);
    let newest = firings.len().checked_sub(TURNS);
    if newest.is_some_and(|from| firings[from..].iter().all(rare)) {
        RuleActivity::Dead
    } else if firings.iter().any(rare) {
        RuleActivity::Rare
    } else {
        RuleActivity::Live
    }
}

/// How often the rules of a rubric fire over the rows of one iteration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The iteration.
    pub iteration: IterationId,
    /// The entry that fixed which rows it read.
    pub read_seq: u64,
    /// How often each rule fired over rows before the confirm window.
    pub firing: Firing,
    /// Rows that have no score under the rubric: their evidence is missing.
    pub without: u64,
}

/// Counts over the newest iterations of an experiment that read rows and were opened before `opened_before`, newest
/// first, at most `most`; the log is read below `below`.
///
/// # Errors
/// [`IterationRowsError`].
pub fn turns(
    history: &dyn History,
    (state, experiment): (&State, &ExperimentId),
    rubric: &Rubric,
    (opened_before, below): (u64, u64),
    most: usize,
) -> Result<Vec<Turn>, IterationRowsError> {
    let all = state.fold::<Iterations>().by_id.iter();
    let mine = all.filter(|(_, it)| it.experiment == *experiment && it.opened_seq < opened_before);
    let mut mine: Vec<_> = mine.collect();
    mine.sort_by_key(|(_, it)| std::cmp::Reverse(it.opened_seq));
    let mut found = Vec::new();
    for (iteration, _) in mine {
        if found.len() == most {
            break;
        }
        found.extend(turn(history, experiment, iteration, rubric, below)?);
    }
    Ok(found)
}

/// Counts over one iteration; `None` if it has read no rows.
fn turn(
    history: &dyn History,
    experiment: &ExperimentId,
    iteration: &IterationId,
    rubric: &Rubric,
    below: u64,
) -> Result<Option<Turn>, IterationRowsError> {
    let mut records = Records::default();
    let record = records.of(history, iteration, below)?;
    let Some((record, through)) = record.and_then(|of| {
        let through = of.through()?;
        Some((of, through))
    }) else {
        return Ok(None);
    };
    let which = RowsQuery {
        experiment,
        iteration,
        through,
        confirm: None,
    };
    let (firing, without) = rows::load(history, &which)?.firing(rubric);
    let read = record.label_process.as_ref();
    Ok(Some(Turn {
        iteration: iteration.clone(),
        read_seq: read.map_or(record.opened.seq, |of| of.seq),
        firing,
        without,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn firing(fired: u64, rows: u64) -> Firing {
        Firing {
            fired: [("guards.a".to_owned(), fired)].into(),
            rows,
        }
    }

    #[test]
    fn a_rule_is_dead_when_it_is_rare_in_two_iterations_in_a_row() {
        let stands = |counts: &[(u64, u64)]| {
            let all: Vec<Firing> = counts.iter().map(|of| firing(of.0, of.1)).collect();
            standing("guards.a", &all.iter().collect::<Vec<_>>())
        };
        // One in a thousand is enough to live.
        assert_eq!(stands(&[(1, 1000), (1, 1000)]), RuleActivity::Live);
        assert_eq!(stands(&[(0, 999), (1, 1001)]), RuleActivity::Dead);
        assert_eq!(stands(&[(0, 10), (5, 10)]), RuleActivity::Rare);
        // Older iterations bring nothing back and kill nothing.
        assert_eq!(stands(&[(5, 10), (0, 10), (0, 10)]), RuleActivity::Dead);
        assert_eq!(stands(&[(0, 10), (0, 10), (5, 10)]), RuleActivity::Rare);
        assert_eq!(stands(&[(0, 10)]), RuleActivity::Rare);
        assert_eq!(stands(&[]), RuleActivity::Live);
    }
}
