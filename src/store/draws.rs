//! Questions to the table of scores: how many draws there are of each answer.

use crate::store::Reader;
use crate::store::ScoreRow;
use crate::store::StoreError;
use crate::store::entries::count;

const SELECT_DRAWS: &str = "SELECT experiment, judge, policy, count(*), sum(draws), sum(draws > 1), max(draws) FROM (SELECT experiment, judge, policy, item, count(*) AS draws FROM scores GROUP BY experiment, judge, policy, item) GROUP BY experiment, judge, policy ORDER BY experiment, judge, policy";
const SELECT_SCORES_OF_ITEM: &str = "SELECT seq, experiment, judge, policy, item, draw, score_micro FROM scores WHERE item = ?1 ORDER BY experiment, judge, policy, draw, seq";

/// Scores of one policy by one judge in one experiment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draws {
    /// The experiment.
    pub experiment: String,
    /// The judge.
    pub judge: String,
    /// The policy.
    pub policy: String,
    /// Items that were scored.
    pub items: u64,
    /// Scores of all draws.
    pub scores: u64,
    /// Items with more than one draw.
    pub redrawn: u64,
    /// Draws of the item with the most.
    pub most: u64,
}

impl Reader<'_> {
    /// Counts draws by experiment, judge and policy, in that order.
    ///
    /// # Errors
    /// [`StoreError`], or what `take` returns.
    pub fn draws<E: From<StoreError>>(
        self,
        mut take: impl FnMut(Draws) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut statement = self
            .conn
            .prepare_cached(SELECT_DRAWS)
            .map_err(StoreError::from)?;
        let mut rows = statement.query([]).map_err(StoreError::from)?;
        while let Some(row) = rows.next().map_err(StoreError::from)? {
            let read = || -> Result<Draws, StoreError> {
                let number = |at| count(row.get(at)?, "count of draws");
                Ok(Draws {
                    experiment: row.get(0)?,
                    judge: row.get(1)?,
                    policy: row.get(2)?,
                    items: number(3)?,
                    scores: number(4)?,
                    redrawn: number(5)?,
                    most: number(6)?,
                })
            };
            take(read()?)?;
        }
        Ok(())
    }

    /// Gives every score of an item, by experiment, judge, policy and draw.
    ///
    /// # Errors
    /// [`StoreError`], or what `take` returns.
    pub fn scores_of<E: From<StoreError>>(
        self,
        item: &str,
        mut take: impl FnMut(ScoreRow<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let statement = self.conn.prepare_cached(SELECT_SCORES_OF_ITEM);
        let mut statement = statement.map_err(StoreError::from)?;
        let mut rows = statement.query([item]).map_err(StoreError::from)?;
        while let Some(row) = rows.next().map_err(StoreError::from)? {
            let text = |at| row.get::<_, String>(at).map_err(StoreError::from);
            let number = |at| row.get::<_, i64>(at).map_err(StoreError::from);
            let (experiment, judge, policy, item) = (text(1)?, text(2)?, text(3)?, text(4)?);
            take(ScoreRow {
                seq: count(number(0)?, "seq of a score")?,
                experiment: &experiment,
                judge: &judge,
                policy: &policy,
                item: &item,
                draw: count(number(5)?, "draw of a score")?,
                score_micro: number(6)?,
            })?;
        }
        Ok(())
    }
}
