//! Judge-scored responses of several policies on shared prompts.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

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
}

impl PromptGap {
    /// By how much a difference of means could move if every missing score were the worst for the claim, where scores span
    /// `span`.
    pub fn worst(&self, span: f64) -> f64 {
        span * (self.first + self.second) as f64 / self.all as f64
    }
}

impl Dataset {
    /// Prompts that one policy has scores of and the other not; `None` where they have all or none in common.
    pub fn gap(&self, first: usize, second: usize) -> Option<PromptGap> {
        let prompts = |policy: usize| -> BTreeSet<u32> {
            self.policies[policy].prompts.iter().copied().collect()
        };
        let (one, other) = (prompts(first), prompts(second));
        let common = one.intersection(&other).count();
        let gap = PromptGap {
            first: other.len() - common,
            second: one.len() - common,
            all: one.len() + other.len() - common,
        };
        (common > 0 && gap.first + gap.second > 0).then_some(gap)
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

    /// Each policy with the largest gap that it has to another one, where it lacks prompts.
    pub fn gaps(&self) -> Vec<(usize, PromptGap)> {
        let all = 0..self.policies.len();
        let largest = |policy: usize| {
            let others = all.clone().filter(|other| *other != policy);
            let gaps = others.filter_map(|other| self.gap(policy, other));
            let gap = gaps.max_by_key(|gap| gap.first)?;
            (gap.first > 0).then_some((policy, gap))
        };
        all.clone().filter_map(largest).collect()
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
        let gap = dataset.gap(0, 1).unwrap();
        assert_eq!((gap.first, gap.second, gap.all), (0, 2, 4));
        // Two of four prompts may move a difference by half of the scale.
        assert!((gap.worst(2.0) - 1.0).abs() < 1e-12);
        assert_eq!(
            dataset.gap(0, 2),
            None,
            "nothing in common: two independent samples"
        );
        assert_eq!(dataset.gaps(), [(1, dataset.gap(1, 0).unwrap())]);
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
