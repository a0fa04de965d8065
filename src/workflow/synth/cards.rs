//! `cards/1`, the optimizer of this program: a search over the paths that cards name, from the view alone. Deterministic,
//! without network or entropy: the same view has the same answer.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use clover_event::payload::card::Direction;
use clover_event::payload::card::PublicCard;
use clover_event::payload::card::SliceClass;
use clover_ground::canon;
use clover_ground::digest::Digest;
use clover_num::Micro;
use clover_rubric::CheckedPatch;
use clover_rubric::Family;
use clover_rubric::Rubric;
use clover_rubric::Value;
use clover_rubric::leaf;
use clover_rubric::leaf::Kind;
use serde::Serialize;

use crate::patches::Bench;
use crate::synth::Optimizer;
use crate::synth::answer;
use crate::synth::search;
use crate::synth::search::KnownWorth;
use crate::synth::view::OptimizerView;

/// Its name.
pub const NAME: &str = "cards/1";
/// Label of names of patches.
const ID_LABEL: &str = "clover/cards/v1";
/// The two leaves of the length cap, of which a rubric has both or none.
const CAP: [&str; 2] = [
    "guards.length_bias_cap.if_tokens_gt",
    "guards.length_bias_cap.max_raw_score",
];
/// The other leaf of a cap that is new: what the engine holds a capped score to.
const CAP_MICRO: i64 = 500_000;
/// Cards that a candidate names at most.
const CARDS: usize = 4;

/// `cards/1` as an optimizer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cards;

impl Optimizer for Cards {
    fn answer(&mut self, view: &OptimizerView) -> Result<Vec<u8>, String> {
        Ok(answer(view))
    }
}

#[derive(Serialize)]
struct CardsAnswer {
    candidates: Vec<CardsCandidate>,
}

#[derive(Clone, Serialize)]
struct CardsCandidate {
    cards: Vec<Digest>,
    why: String,
    yaml: String,
}

/// One move: leaves with their new values, and whether a list gets more elements.
#[derive(Clone, Debug, PartialEq)]
struct Move {
    changes: BTreeMap<String, Value>,
    appends: bool,
}

/// A path that cards name, with its values in the order of the grid.
struct SearchPath {
    name: String,
    family: Family,
    cards: Vec<Digest>,
    moves: Vec<Move>,
}

/// What is known of a view.
struct Search<'a> {
    view: &'a OptimizerView,
    bench: Bench,
    worth: BTreeMap<Digest, i64>,
    worthless: BTreeSet<Digest>,
}

/// Cards by class, Risk first, then by exposure, stakes and mean squared residual together, then by digest.
fn ranked(view: &OptimizerView) -> Vec<(&Digest, &PublicCard)> {
    let weight = |card: &PublicCard| {
        let parts = [card.exposure_micro, card.stakes_micro, card.mse_micro];
        parts
            .iter()
            .map(|of| i128::from(of.value()))
            .product::<i128>()
    };
    let mut all: Vec<_> = view.cards.iter().map(|of| (&of.digest, &of.card)).collect();
    all.sort_by_key(|(digest, card)| {
        let is_risk = card.class == SliceClass::Risk;
        (!is_risk, -weight(card), **digest)
    });
    all
}

/// Obligations go before guards, and guards before abstention.
fn rank_of(path: &str) -> usize {
    let tops = ["obligations.", "guards.", "abstention."];
    let found = tops.iter().position(|top| path.starts_with(top));
    found.unwrap_or(tops.len())
}

fn share(micro: i64) -> Option<Value> {
    Micro::new(micro).map(Value::Share)
}

/// Values of a path, in the order of the grid.
fn moves(rubric: &Rubric, path: &str, topics: &BTreeSet<String>) -> Vec<Move> {
    let now = rubric.at(path);
    let set = |value: Value| Move {
        changes: BTreeMap::from([(path.to_owned(), value)]),
        appends: false,
    };
    let with_cap = |mut of: Move| {
        let other = match path {
            _ if path == CAP[0] => CAP[1],
            _ => return of,
        };
        if rubric.at(other).is_none() {
            of.changes
                .extend(share(CAP_MICRO).map(|value| (other.to_owned(), value)));
        }
        of
    };
    match leaf::kind_of(path) {
        Some(Kind::Flag) if now == Some(&Value::Flag(true)) => Vec::new(),
        Some(Kind::Flag) => vec![set(Value::Flag(true))],
        Some(Kind::Share) => {
            let values = search::SHARES_MICRO.into_iter().filter_map(share);
            values.map(set).collect()
        }
        Some(Kind::Count) => {
            let values = search::COUNTS.into_iter().map(Value::Count);
            values.map(set).map(with_cap).collect()
        }
        Some(Kind::Tags) => {
            let has = |topic: &&String| match now {
                Some(Value::List(old)) => !old.contains(*topic),
                _ => true,
            };
            let new = topics.iter().filter(has);
            new.map(|topic| Move {
                appends: true,
                ..set(Value::List(BTreeSet::from([topic.clone()])))
            })
            .collect()
        }
        _ => Vec::new(),
    }
}

impl Search<'_> {
    /// What a move is worth by what the view says; `None` for one that is no patch.
    fn known(&self, family: Family, of: &Move) -> Option<(Digest, KnownWorth)> {
        let yaml = self.document(family, of, "x-1");
        let (_, checked) = answer::checked(&self.bench, &yaml).ok()?;
        let CheckedPatch { hash, .. } = checked;
        let known = match self.worth.get(&hash) {
            Some(worth) => KnownWorth::Worth(*worth),
            None if self.worthless.contains(&hash) => KnownWorth::Worthless,
            None => KnownWorth::Untried,
        };
        Some((hash, known))
    }

    fn document(&self, family: Family, of: &Move, id: &str) -> String {
        let mut changes = String::new();
        for (path, value) in &of.changes {
            changes += &match path.rsplit_once('.').filter(|_| of.appends) {
                Some((above, leaf)) => format!("    {above}:\n      {leaf}+: {value}\n"),
                None => format!("    {path}: {value}\n"),
            };
        }
        let family = family.as_str();
        format!(
            "patch:\n  family: {family}\n  id: {id}\n  rationale: a search over the paths that residual cards name\n  \
             changes:\n{changes}  constraints:\n    max_tokens_added: 150\n    affects_rescore: false\n"
        )
    }

    /// A move as a candidate.
    fn candidate(&self, path: &SearchPath, (hash, of): (Digest, &Move)) -> CardsCandidate {
        let name = canon::digest(ID_LABEL, &(self.view.iteration.as_str(), hash)).to_hex();
        let yaml = self.document(path.family, of, &format!("cards-{}", &name[..12]));
        let leaves = of.changes.keys().map(|path| {
            let leaf = path.rsplit('.').next();
            leaf.unwrap_or(path)
        });
        let leaves: Vec<&str> = leaves.collect();
        CardsCandidate {
            cards: path.cards.clone(),
            why: format!("{}: cards name what it reads", leaves.join(" and ")),
            yaml,
        }
    }

    /// Paths that cards name, in the order of the cards.
    fn paths(&self) -> Vec<SearchPath> {
        let mut found: Vec<SearchPath> = Vec::new();
        for (digest, card) in ranked(self.view) {
            let mut named: Vec<&str> = card.candidate_paths.iter().map(|of| of.as_str()).collect();
            named.sort_by_key(|path| rank_of(path));
            for name in named {
                if let Some(known) = found.iter_mut().find(|of| of.name == name) {
                    if known.cards.len() < CARDS {
                        known.cards.push(*digest);
                    }
                    continue;
                }
                found.extend(self.path(name, card, *digest));
            }
        }
        found
    }

    fn path(&self, name: &str, card: &PublicCard, digest: Digest) -> Option<SearchPath> {
        let families = leaf::families_of(name).iter();
        let mut families = families.filter(|of| self.bench.families.contains(of));
        let family = *families.next()?;
        let mut moves = moves(&self.bench.rubric, name, &self.bench.vocabulary);
        moves.retain(|of| self.known(family, of).is_some());
        if card.direction == Direction::UnderScored && is_penalty(name) {
            // Less is taken away where scores are too low.
            moves.reverse();
        }
        Some(SearchPath {
            name: name.to_owned(),
            family,
            cards: vec![digest],
            moves,
        })
    }

    /// The next move of a path.
    fn next(&self, path: &SearchPath) -> Option<(Digest, Move)> {
        let known = |at: usize| self.known(path.family, &path.moves[at]);
        let worth = |at: usize| known(at).map_or(KnownWorth::Worthless, |(_, known)| known);
        let at = if path.moves.iter().any(|of| of.appends) {
            (0..path.moves.len()).find(|at| worth(*at) == KnownWorth::Untried)
        } else if path.moves.is_empty() {
            None
        } else {
            search::next(path.moves.len(), &worth)
        }?;
        known(at).map(|(hash, _)| (hash, path.moves[at].clone()))
    }

    /// The best moves of two paths of one family together, once the search of both is over.
    fn pairs(&self, paths: &[SearchPath]) -> Vec<CardsCandidate> {
        let mut found = Vec::new();
        for family in Family::ALL {
            let of_family = paths.iter().filter(|path| path.family == family);
            let mut best: Vec<(i64, &SearchPath, &Move)> = Vec::new();
            let mut is_over = true;
            for path in of_family {
                is_over &= self.next(path).is_none();
                let worth = |at: usize| {
                    let known = self.known(family, &path.moves[at]);
                    known.map_or(KnownWorth::Worthless, |(_, known)| known)
                };
                if let Some((at, worth)) = search::best(path.moves.len(), &worth) {
                    best.push((worth, path, &path.moves[at]));
                }
            }
            best.sort_by(|a, b| (a.0, &a.1.name).cmp(&(b.0, &b.1.name)));
            if let (true, [(_, path, one), (_, _, two), ..]) = (is_over, &best[..])
                && !one.appends
                && !two.appends
            {
                let mut both = (*one).clone();
                both.changes.extend(two.changes.clone());
                if let Some((hash, KnownWorth::Untried)) = self.known(family, &both) {
                    found.push(self.candidate(path, (hash, &both)));
                }
            }
        }
        found
    }
}

/// Whether more of a leaf takes more away.
fn is_penalty(path: &str) -> bool {
    path.ends_with("penalty")
}

/// Its answer to a view, as the bytes that are recorded.
#[expect(clippy::missing_panics_doc, reason = "a `BUG:` states what cannot be")]
pub fn answer(view: &OptimizerView) -> Vec<u8> {
    let mut candidates = Vec::new();
    if let Ok(rubric) = Rubric::parse(view.rubric.yaml.as_bytes()) {
        let families = view.families.iter();
        let words = |of: &[clover_event::id::Text]| -> BTreeSet<String> {
            of.iter().map(|text| text.as_str().to_owned()).collect()
        };
        let search = Search {
            view,
            bench: Bench {
                families: families
                    .filter_map(|of| Family::named(of.as_str()))
                    .collect(),
                frozen: words(&view.frozen_paths),
                vocabulary: words(&view.topics),
                ..Bench::loose(rubric)
            },
            worth: view
                .receipts
                .iter()
                .map(|of| (of.patch_hash, of.risk_improve_micro.value()))
                .collect(),
            worthless: view.unscored.iter().copied().collect(),
        };
        let paths = search.paths();
        for path in &paths {
            if let Some((hash, of)) = search.next(path) {
                candidates.push(search.candidate(path, (hash, &of)));
            }
        }
        candidates.extend(search.pairs(&paths));
    }
    let most = usize::try_from(view.k.value()).unwrap_or(usize::MAX);
    candidates.truncate(most);
    canon::to_bytes(&CardsAnswer { candidates }).expect("BUG: texts have a canonical form")
}
