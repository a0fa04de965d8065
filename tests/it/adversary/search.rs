//! A search over short sequences of legal events by one role, or by two: prefixes are shared, events are taken back,
//! and at each node an honest continuation says what the evidence, the budget and the grade have become.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;

use clover::event::Event;
use clover::event::Header;
use clover::event::PAYLOAD_TYPE;
use clover::event::Payload;
use clover::event::SeenCheckpoint;
use clover::event::entry;
use clover::event::header::Draft;
use clover::event::id::EventId;
use clover::event::id::Root;
use clover::ground::digest::Digest;
use clover::ground::sign::KeyId;
use clover::ground::sign::Signed;
use clover::ground::time::Timestamp;
use clover::ledger::Trial;
use clover::ledger::rulebooks;
use clover::num::Count;
use clover::workflow::RULEBOOK;
use serde_json::json;

use crate::support::forger;
use crate::support::planned;
use crate::support::samples::ADA;
use crate::support::samples::AUTHORS;
use crate::support::samples::LOG;
use crate::support::samples::ORIGIN;
use crate::support::signer;
use crate::support::verifiers::Case;

/// Longest sequence.
pub const LENGTH: usize = 6;

/// A history right before the decisive step.
#[derive(Clone)]
pub struct Told {
    pub lines: Vec<Vec<u8>>,
    pub blobs: BTreeMap<String, Vec<u8>>,
}

/// What the search watches, by name.
pub type Observed = BTreeMap<&'static str, String>;

/// Makes the payload of a letter where it can be said now.
pub type Make = Box<dyn Fn(&Run) -> Option<Payload> + Send + Sync>;

/// One event that a role may say, as far as it can be said now.
pub struct Letter {
    pub role: &'static str,
    pub who: u8,
    pub name: String,
    pub experiment: Option<&'static str>,
    /// Names the checkpoint before the newest.
    pub is_stale: bool,
    pub make: Make,
}

/// A difference that is known, and why it may be.
pub struct Allowed {
    /// What differs.
    pub field: &'static str,
    /// A sequence with one of these, by the beginning of its name.
    pub letters: &'static [&'static str],
    /// By at least so many keys.
    pub keys: usize,
    pub why: &'static str,
}

pub struct World {
    pub name: &'static str,
    /// The rulebook that its owner adopts before anything else is said.
    pub rulebook: u32,
    /// Sequences of one role, or of one pair, in the short search and in the long one.
    pub most: [u64; 2],
    pub told: Told,
    pub letters: Vec<Letter>,
    /// The honest continuation, and what comes of it.
    pub observe: Box<dyn Fn(&mut Run) -> Observed + Send + Sync>,
    /// What is noted after each event.
    pub trace: fn(&Trial) -> Vec<Digest>,
    pub allowed: Vec<Allowed>,
}

/// One history that grows and shrinks.
pub struct Run {
    pub trial: Trial,
    /// What was said since the history, with who said it.
    pub trail: Vec<(u8, Event)>,
    pub traces: Vec<Vec<Digest>>,
    trace: fn(&Trial) -> Vec<Digest>,
    ids: BTreeMap<u8, KeyId>,
    now: Timestamp,
    roots: Vec<Digest>,
    /// Lines that are signed, where somebody shows them to verifiers.
    signed: Option<Vec<Vec<u8>>>,
}

impl Run {
    pub fn of(world: &World, is_signed: bool) -> Self {
        let mut trial = Trial::new(&RULEBOOK);
        let lines = world.told.lines.iter().map(Vec::as_slice);
        if let Err((seq, breaches)) = trial.follow(lines) {
            panic!("{}: seq {seq}: {breaches:?}", world.name);
        }
        let ids = AUTHORS.iter().map(|byte| (*byte, signer(*byte).id()));
        let mut run = Self {
            now: trial.state().keyring.recorded_at.unwrap(),
            traces: vec![(world.trace)(&trial)],
            trial,
            trail: Vec::new(),
            trace: world.trace,
            ids: ids.collect(),
            roots: vec![forger::Sealed::over(world.told.lines.clone()).root()],
            signed: is_signed.then(|| world.told.lines.clone()),
        };
        if world.rulebook > rulebooks::UNNAMED {
            let version = Count::new(world.rulebook.into()).unwrap();
            let adopted = json!({"version": version});
            let said = run.say(ADA, None, planned::payload("rulebook.adopted", &adopted));
            assert!(said.is_ok(), "{said:?}");
            run.trail.clear();
            run.traces.remove(0);
        }
        run
    }

    pub fn key(&self, who: u8) -> KeyId {
        self.ids[&who]
    }

    /// The newest checkpoint.
    pub fn seen(&self) -> SeenCheckpoint {
        self.checkpoint(0)
    }

    fn checkpoint(&self, back: usize) -> SeenCheckpoint {
        let back = back.min(self.roots.len() - 1);
        SeenCheckpoint {
            root: Root(self.roots[self.roots.len() - 1 - back]),
            size: Count::new(self.trial.state().size - back as u64).unwrap(),
        }
    }

    pub fn now(&self) -> Timestamp {
        self.now.plus_seconds(1)
    }

    /// Says an event, or gives the rule that refuses it.
    pub fn say(
        &mut self,
        who: u8,
        experiment: Option<&str>,
        payload: Payload,
    ) -> Result<EventId, &'static str> {
        self.say_seeing(who, experiment, payload, 0)
    }

    fn say_seeing(
        &mut self,
        who: u8,
        experiment: Option<&str>,
        payload: Payload,
        back: usize,
    ) -> Result<EventId, &'static str> {
        let author = self.key(who);
        let record = self.trial.state().keyring.keys.get(&author);
        let (at, seq) = (self.now(), self.trial.state().size);
        let header = Header {
            at,
            author,
            author_seq: record.map_or(0, |record| record.next_author_seq),
            experiment: experiment.map(|id| id.parse().unwrap()),
            ledger: ORIGIN.into(),
            refs: Vec::new(),
            seen: Some(self.checkpoint(back)),
        };
        let draft = Draft { header, payload };
        let body = draft.to_body().unwrap();
        let Draft { header, payload } = draft;
        let id = EventId(Digest::sha256(&body));
        let v = payload.kind().version();
        let event = Event {
            id,
            header,
            payload,
            v,
        };
        if let Some(first) = self.trial.say(at, &event).first() {
            return Err(first.rule.as_str());
        }
        let root = if let Some(lines) = &mut self.signed {
            let signed = Signed::sign(PAYLOAD_TYPE, body, &signer(who));
            let mut line = Vec::new();
            let (body, by) = (signed.body(), signed.signer());
            entry::write_line(&mut line, seq, at, body, &by, signed.signature());
            lines.push(line);
            forger::Sealed::over(lines.clone()).root()
        } else {
            let last = self.roots.last().unwrap();
            Digest::sha256(&[last.0, id.0.0].concat())
        };
        self.roots.push(root);
        self.now = at;
        self.trail.push((who, event));
        self.traces.push((self.trace)(&self.trial));
        Ok(id)
    }

    pub fn back(&mut self) {
        assert!(self.trial.take_back());
        self.trail.pop();
        self.traces.pop();
        self.roots.pop();
        self.now = self.now.plus_seconds(-1);
        if let Some(lines) = &mut self.signed {
            lines.pop();
        }
    }

    pub fn back_to(&mut self, length: usize) {
        while self.trail.len() > length {
            self.back();
        }
    }

    /// Says a letter, or tells that it cannot be said now.
    pub fn spell(&mut self, letter: &Letter) -> Option<Result<EventId, &'static str>> {
        let payload = (letter.make)(self)?;
        let back = usize::from(letter.is_stale);
        Some(self.say_seeing(letter.who, letter.experiment, payload, back))
    }

    /// What auditors are given: the lines with a checkpoint of the log key.
    pub fn case(&self, world: &World) -> Case {
        let lines = self.signed.clone().unwrap();
        let sealed = forger::Sealed::over(lines);
        Case {
            checkpoint: Some(sealed.checkpoint(&[LOG])),
            ledger: forger::file(&sealed.lines),
            blobs: Some(world.told.blobs.clone()),
            ..Case::default()
        }
    }
}

/// What a search found.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Sequences after which the honest continuation was compared.
    pub sequences: u64,
    /// Events that a rule refused, by rule.
    pub refused: BTreeMap<&'static str, u64>,
    /// Sequences after which a rule refused the honest continuation, by rule.
    pub stopped: BTreeMap<String, u64>,
    /// Sequences that changed something.
    pub changed: u64,
    /// What changed into what, with the sets of letters that do it and have no smaller one among them.
    pub minimal: BTreeMap<(&'static str, String), Vec<Vec<usize>>>,
    /// A sample of sequences, for verifiers.
    pub sample: Vec<Vec<usize>>,
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.sequences += other.sequences;
        self.changed += other.changed;
        for (rule, times) in other.refused {
            *self.refused.entry(rule).or_default() += times;
        }
        for (rule, times) in other.stopped {
            *self.stopped.entry(rule).or_default() += times;
        }
        for (what, all) in other.minimal {
            for sequence in all {
                self.note(what.clone(), sequence);
            }
        }
        self.sample.extend(other.sample);
    }

    fn note(&mut self, what: (&'static str, String), sequence: Vec<usize>) {
        let set = |of: &[usize]| of.iter().copied().collect::<BTreeSet<_>>();
        let known = self.minimal.entry(what).or_default();
        let new = set(&sequence);
        if known.iter().any(|old| set(old).is_subset(&new)) {
            return;
        }
        known.retain(|old| !new.is_subset(&set(old)));
        known.push(sequence);
    }
}

/// The sequences of one role, or those of two roles in which both speak.
struct Walk<'a> {
    world: &'a World,
    run: Run,
    before: Observed,
    roles: &'a [&'static str],
    letters: Vec<usize>,
    /// Most children of a node at each depth.
    widths: [usize; LENGTH],
    most: u64,
    spelt: Vec<usize>,
    seed: u64,
    tally: Tally,
}

/// The next number of a generator that is the same everywhere.
fn next(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *seed;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Walk<'_> {
    fn go(&mut self) {
        let depth = self.spelt.len();
        if depth == LENGTH {
            return;
        }
        let mut order = self.letters.clone();
        for at in (1..order.len()).rev() {
            let other = next(&mut self.seed) % (at as u64 + 1);
            order.swap(at, usize::try_from(other).unwrap());
        }
        let mut children = 0;
        for at in order {
            if children == self.widths[depth] || self.tally.sequences >= self.most {
                return;
            }
            let letter = &self.world.letters[at];
            match self.run.spell(letter) {
                None => continue,
                Some(Err(rule)) => {
                    *self.tally.refused.entry(rule).or_default() += 1;
                    continue;
                }
                Some(Ok(_)) => {}
            }
            children += 1;
            self.spelt.push(at);
            self.compare();
            self.go();
            self.spelt.pop();
            self.run.back();
        }
    }

    fn compare(&mut self) {
        let spoke = |role: &&'static str| {
            let mut all = self.spelt.iter();
            all.any(|at| self.world.letters[*at].role == *role)
        };
        if !self.roles.iter().all(spoke) {
            return;
        }
        let length = self.run.trail.len();
        let after = (self.world.observe)(&mut self.run);
        self.run.back_to(length);
        self.tally.sequences += 1;
        if next(&mut self.seed).is_multiple_of(61) {
            self.tally.sample.push(self.spelt.clone());
        }
        if let Some(rule) = after.get("stopped") {
            *self.tally.stopped.entry(rule.clone()).or_default() += 1;
        }
        let mut is_changed = false;
        for (field, found) in &after {
            if *field != "stopped" && self.before.get(field) != Some(found) {
                is_changed = true;
                self.tally.note((*field, found.clone()), self.spelt.clone());
            }
        }
        self.tally.changed += u64::from(is_changed);
    }
}

/// How far a search goes.
#[derive(Clone, Copy)]
pub struct Plan {
    pub seed: u64,
    pub widths: [usize; LENGTH],
    /// Most sequences of one role, or of one pair of roles.
    pub most: u64,
}

/// Searches all sequences of each role and each pair of roles, on two threads.
pub fn search(world: &World, plan: Plan) -> Tally {
    let roles: BTreeSet<_> = world.letters.iter().map(|letter| letter.role).collect();
    let roles: Vec<_> = roles.into_iter().collect();
    let mut tasks: Vec<Vec<&'static str>> = roles.iter().map(|role| vec![*role]).collect();
    for (at, one) in roles.iter().enumerate() {
        tasks.extend(roles[at + 1..].iter().map(|other| vec![*one, *other]));
    }
    let turn = AtomicUsize::new(0);
    let work = || {
        let mut found = Vec::new();
        loop {
            let at = turn.fetch_add(1, Ordering::Relaxed);
            let Some(roles) = tasks.get(at) else {
                return found;
            };
            found.push((at, walked(world, plan, roles, at as u64)));
        }
    };
    let mut all = std::thread::scope(|scope| {
        let other = scope.spawn(work);
        let mut all = work();
        all.extend(other.join().unwrap());
        all
    });
    all.sort_by_key(|(at, _)| *at);
    let mut tally = Tally::default();
    for (_, one) in all {
        tally.add(one);
    }
    tally
}

fn walked(world: &World, plan: Plan, roles: &[&'static str], task: u64) -> Tally {
    let mut run = Run::of(world, false);
    let before = (world.observe)(&mut run);
    run.back_to(0);
    let letters = world.letters.iter().enumerate();
    let own = letters.filter(|(_, letter)| roles.contains(&letter.role));
    let mut walk = Walk {
        world,
        run,
        before,
        roles,
        letters: own.map(|(at, _)| at).collect(),
        widths: plan.widths,
        most: plan.most,
        spelt: Vec::new(),
        seed: plan.seed ^ (task << 32),
        tally: Tally::default(),
    };
    walk.go();
    walk.tally
}

impl World {
    /// Names of a sequence's letters, each after its role.
    pub fn words(&self, sequence: &[usize]) -> String {
        let word = |at: &usize| format!("{}: {}", self.letters[*at].role, self.letters[*at].name);
        sequence.iter().map(word).collect::<Vec<_>>().join("; ")
    }

    /// What a search found that no line allows: field, what it became, a sequence.
    pub fn holes(&self, tally: &Tally) -> Vec<(&'static str, String, String)> {
        let mut holes = Vec::new();
        for ((field, to), all) in &tally.minimal {
            for sequence in all {
                let is_allowed = self.allowed.iter().any(|one| {
                    let said = |at: &usize| {
                        let name = &self.letters[*at].name;
                        one.letters.iter().any(|word| name.starts_with(word))
                    };
                    let keys = sequence.iter().map(|at| self.letters[*at].who);
                    let keys = keys.collect::<BTreeSet<_>>().len();
                    one.field == *field && keys >= one.keys && sequence.iter().any(said)
                });
                if !is_allowed {
                    holes.push((*field, to.clone(), self.words(sequence)));
                }
            }
        }
        holes
    }
}
