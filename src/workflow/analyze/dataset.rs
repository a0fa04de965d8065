//! Judge-scored responses of several policies on shared prompts.

use std::collections::BTreeMap;

use clover_stats::inference::Interval;

/// All policies, in order of their names, on numbered prompts.
#[derive(Clone, Debug, Default)]
pub struct Dataset {
    /// Policies in order of their names.
    pub policies: Vec<Policy>,
    /// Names of the covariate columns.
    pub covariates: Vec<String>,
}

/// How the prompts of two policies differ that have some in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PromptGap {
    /// Prompts that the first lacks.
    pub first: usize,
    /// Prompts that the second lacks.
    pub second: usize,
    /// Prompts of either.
    pub all: usize,
    /// Prompts of both on which their draws do not stand in the ratio that they have over all of these.
    pub uneven: usize,
}

impl PromptGap {
    /// By how much a difference of means could move if every missing score were the worst for the claim, where scores span
    /// `span`.
    pub fn worst(&self, span: f64) -> f64 {
        span * (self.first + self.second) as f64 / self.all as f64
    }

    /// Whether the two have scores of the same prompts, evenly drawn.
    pub fn is_none(&self) -> bool {
        self.first + self.second + self.uneven == 0
    }

    /// Prompts of both.
    pub fn both(&self) -> usize {
        self.all - self.first - self.second
    }

    /// Whether an interval of a difference leaves zero out even then. Means over rows of uneven draws weigh prompts otherwise on
    /// one side than on the other, so that their difference says nothing of the two.
    pub fn leaves_apart(&self, interval: Interval, span: f64) -> bool {
        let worst = self.worst(span);
        self.uneven == 0 && (interval.low - worst > 0.0 || interval.high + worst < 0.0)
    }
}

/// The gaps between some policies.
#[derive(Clone, Debug, Default)]
pub struct PromptGaps {
    /// Every pair of them, by their positions, the smaller one first.
    of: BTreeMap<(usize, usize), PromptGap>,
}

impl PromptGaps {
    /// What one of two policies has and the other not; `None` where they have the same prompts, evenly drawn, or none in
    /// common.
    pub fn between(&self, first: usize, second: usize) -> Option<PromptGap> {
        let gap = self.pair(first, second)?;
        (gap.both() > 0 && !gap.is_none()).then_some(gap)
    }

    /// Pairs of policies whose draws are uneven, in order of positions, with the gap between them.
    pub fn uneven(&self) -> impl Iterator<Item = ((usize, usize), PromptGap)> {
        let all = self.of.iter().map(|(pair, gap)| (*pair, *gap));
        all.filter(|(_, gap)| gap.uneven > 0)
    }

    /// Pairs of policies that have scores of no prompt in common, in order of positions.
    pub fn disjoint(&self) -> impl Iterator<Item = (usize, usize)> {
        let none = self.of.iter().filter(|(_, gap)| gap.both() == 0);
        none.map(|(pair, _)| *pair)
    }

    /// Which prompts two policies have, whether some lack or not; `None` for policies that were not asked for.
    pub fn pair(&self, first: usize, second: usize) -> Option<PromptGap> {
        if first <= second {
            return self.of.get(&(first, second)).copied();
        }
        let gap = self.of.get(&(second, first))?;
        Some(PromptGap {
            first: gap.second,
            second: gap.first,
            all: gap.all,
            uneven: gap.uneven,
        })
    }

    /// Each policy that lacks prompts, with the largest gap that it has to another one; in order of positions.
    pub fn largest(&self) -> BTreeMap<usize, PromptGap> {
        let mut largest: BTreeMap<usize, PromptGap> = BTreeMap::new();
        for &(one, other) in self.of.keys() {
            for (policy, beside) in [(one, other), (other, one)] {
                let Some(gap) = self.between(policy, beside).filter(|gap| gap.first > 0) else {
                    continue;
                };
                let most = largest.entry(policy).or_insert(gap);
                if gap.first > most.first {
                    *most = gap;
                }
            }
        }
        largest
    }
}

/// The numbers of an ascending list, each with how often it stands there.
fn counted(numbers: &[u32]) -> Vec<(u32, u64)> {
    let runs = numbers.chunk_by(|one, next| one == next);
    runs.map(|run| (run[0], run.len() as u64)).collect()
}

/// How often each number that two counted lists have in common stands in either.
fn common(one: &[(u32, u64)], other: &[(u32, u64)]) -> Vec<(u64, u64)> {
    let (mut at, mut common) = (0, Vec::new());
    for (number, count) in one {
        while at < other.len() && other[at].0 < *number {
            at += 1;
        }
        let same = other.get(at).filter(|(found, _)| found == number);
        common.extend(same.map(|(_, found)| (*count, *found)));
    }
    common
}

/// How many of these do not stand in the ratio of their sums.
fn out_of_ratio(counts: &[(u64, u64)]) -> usize {
    let sums = counts
        .iter()
        .fold((0, 0), |sums, count| (sums.0 + count.0, sums.1 + count.1));
    // Products of counts of rows stay far below 2^128.
    let product = |a: u64, b: u64| u128::from(a) * u128::from(b);
    let differs = |count: &&(u64, u64)| product(count.0, sums.1) != product(count.1, sums.0);
    counts.iter().filter(differs).count()
}

impl Dataset {
    /// Prompts that some of these policies have scores of and others not.
    pub fn gaps(&self, among: &[usize]) -> PromptGaps {
        let prompts = |&policy: &usize| {
            let mut numbers = self.policies[policy].prompts.clone();
            numbers.sort_unstable();
            (policy, counted(&numbers))
        };
        let mut lists: Vec<(usize, Vec<(u32, u64)>)> = among.iter().map(prompts).collect();
        lists.sort();
        let mut gaps = PromptGaps::default();
        for (at, (first, one)) in lists.iter().enumerate() {
            for (second, other) in &lists[at + 1..] {
                let shared = common(one, other);
                let gap = PromptGap {
                    first: other.len() - shared.len(),
                    second: one.len() - shared.len(),
                    all: one.len() + other.len() - shared.len(),
                    uneven: out_of_ratio(&shared),
                };
                gaps.of.insert((*first, *second), gap);
            }
        }
        gaps
    }
}

/// Prompts of a probe that its policy has a score of, and how many of them have another score there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeMatch {
    /// Prompts of both.
    pub common: usize,
    /// Prompts with another score.
    pub other: usize,
}

impl Dataset {
    /// How the scores of a probe stand to those of the policy that it is said to be of; `None` where no prompt is in both.
    pub fn probe_match(&self, probe: &Policy) -> Option<ProbeMatch> {
        let of = self.policies.iter().find(|of| of.name == probe.name)?;
        let mut scores: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        for (prompt, score) in of.prompts.iter().zip(&of.scores) {
            scores.entry(*prompt).or_default().push(*score);
        }
        let pairs = probe.prompts.iter().zip(&probe.scores);
        let known: Vec<bool> = pairs
            .filter_map(|(prompt, score)| Some(scores.get(prompt)?.contains(score)))
            .collect();
        let other = known.iter().filter(|same| !**same).count();
        let common = known.len();
        (common > 0).then_some(ProbeMatch { common, other })
    }
}

/// The responses of one policy; every column has one entry per response.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// Its name.
    pub name: String,
    /// Prompt numbers.
    pub prompts: Vec<u32>,
    /// Judge scores as recorded, finite.
    pub scores: Vec<f64>,
    /// Labels as recorded, finite where they are.
    pub labels: Vec<Option<f64>>,
    /// Covariates, one column each.
    pub covariates: Vec<Vec<f64>>,
    /// Files that its responses were read from.
    pub files: Vec<String>,
    /// Index of the file, and line from 1, of each response; empty for responses that no file holds.
    pub lines: Vec<(u32, u32)>,
}

impl Policy {
    /// Responses.
    pub fn len(&self) -> usize {
        self.scores.len()
    }

    /// Where a response was read, for messages.
    pub fn place(&self, row: usize) -> String {
        let read = self.lines.get(row).and_then(|&(file, line)| {
            let file = self.files.get(file as usize)?;
            Some(format!("{file} line {line}"))
        });
        read.unwrap_or_else(|| format!("policy {}, response {}", self.name, row + 1))
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.scores.is_empty()
    }

    /// Responses with a label.
    pub fn labelled(&self) -> usize {
        self.labels.iter().flatten().count()
    }
}

/// Numbers prompt ids in order of first appearance.
#[derive(Debug, Default)]
pub struct Prompts {
    numbers: BTreeMap<String, u32>,
    ids: Vec<String>,
}

impl Prompts {
    /// The number of an id.
    pub fn number(&mut self, id: &str) -> u32 {
        if let Some(&number) = self.numbers.get(id) {
            return number;
        }
        let number = u32::try_from(self.ids.len()).unwrap_or(u32::MAX);
        self.numbers.insert(id.to_owned(), number);
        self.ids.push(id.to_owned());
        number
    }

    /// The number of an id that was seen before.
    pub fn known(&self, id: &str) -> Option<u32> {
        self.numbers.get(id).copied()
    }

    /// Ids by number.
    pub fn ids(&self) -> &[String] {
        &self.ids
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(name: &str, prompts: &[u32]) -> Policy {
        Policy {
            name: name.to_owned(),
            prompts: prompts.to_vec(),
            scores: prompts
                .iter()
                .map(|prompt| f64::from(*prompt) / 10.0)
                .collect(),
            labels: vec![None; prompts.len()],
            ..Policy::default()
        }
    }

    #[test]
    fn prompts_that_one_policy_lacks_are_counted() {
        let dataset = Dataset {
            policies: vec![
                policy("a", &[1, 2, 3, 4]),
                policy("b", &[3, 4, 4]),
                policy("c", &[7]),
            ],
            covariates: Vec::new(),
        };
        let gaps = dataset.gaps(&[0, 1, 2]);
        let gap = gaps.between(0, 1).unwrap();
        assert_eq!((gap.first, gap.second, gap.all), (0, 2, 4));
        // Two of four prompts may move a difference by half of the scale.
        assert!((gap.worst(2.0) - 1.0).abs() < 1e-12);
        assert_eq!(
            gaps.between(0, 2),
            None,
            "nothing in common: two independent samples"
        );
        assert_eq!(
            gaps.largest(),
            BTreeMap::from([(1, gaps.between(1, 0).unwrap())])
        );
    }

    #[test]
    fn a_probe_of_another_policy_has_other_scores() {
        let dataset = Dataset {
            policies: vec![policy("a", &[1, 2, 3])],
            covariates: Vec::new(),
        };
        let mut probe = policy("a", &[2, 3, 9]);
        let same = dataset.probe_match(&probe).unwrap();
        assert_eq!((same.common, same.other), (2, 0));
        probe.scores = vec![0.9; 3];
        let other = dataset.probe_match(&probe).unwrap();
        assert_eq!((other.common, other.other), (2, 2));
    }
}
