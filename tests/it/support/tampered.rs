//! The samples for auditors: the good ledger, and what can be done to it. What must be found is declared
//! here by whoever did the damage; no verifier is asked.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use base64ct::Base64;
use base64ct::Encoding;
use clover::event::Payload;
use clover::event::payload::Role;
use clover::ground::canon;
use clover::ground::digest::Digest;
use clover::ground::keyfile;
use clover::ledger::rules;
use serde_json::Value;
use serde_json::json;

use super::forger;
use super::forger::Sealed;
use super::forger::World;

use super::planned;
use super::samples::*;
use super::signer;
use super::valued;
use super::verifiers::Case;

/// One folder under `audits/`.
#[derive(Clone, Debug)]
pub struct Sample {
    pub name: &'static str,
    /// What was done.
    pub done: &'static str,
    pub case: Case,
    /// What must be found first: seq and rule.
    pub first: Option<(usize, &'static str)>,
}

impl Sample {
    /// A history written by someone with every key, under the first log key.
    pub fn forged(name: &'static str, done: &'static str, world: &World, first: First) -> Self {
        let sealed = world.seal();
        let case = Case {
            ledger: forger::file(&sealed.lines),
            checkpoint: Some(sealed.checkpoint(&[LOG])),
            log_key: Some(log_vkey(LOG).to_string()),
            ..Case::default()
        };
        Self {
            name,
            done,
            case,
            first,
        }
    }
}

/// The group order of Ed25519, little-endian.
const ORDER: [u8; 32] = [
    0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
];

/// Every sample; made once, for it takes a while.
pub fn all() -> &'static [Sample] {
    static ALL: OnceLock<Vec<Sample>> = OnceLock::new();
    ALL.get_or_init(|| {
        let mut rows = written().to_vec();
        super::computed::mend(&mut rows);
        rows
    })
}

/// Every sample as it is written first: short, some with numbers of nobody's.
pub fn written() -> &'static [Sample] {
    static WRITTEN: OnceLock<Vec<Sample>> = OnceLock::new();
    WRITTEN.get_or_init(|| {
        let (first, second) = MAKERS.split_at(MAKERS.len() / 2);
        let made = |makers: &[fn() -> Vec<Sample>]| {
            let rows = makers.iter().flat_map(|make| make());
            rows.collect::<Vec<_>>()
        };
        std::thread::scope(|scope| {
            let second = scope.spawn(|| made(second));
            let mut rows = made(first);
            rows.extend(second.join().unwrap());
            rows
        })
    })
}

/// Who makes samples, in the order in which they are listed.
const MAKERS: [fn() -> Vec<Sample>; 40] = [
    of_lines,
    super::tampered_iterations::all,
    super::tampered_gates::all,
    super::tampered_labelled::all,
    super::tampered_drifts::all,
    super::tampered_decisions::all,
    super::tampered_sequences::all,
    super::calibrated::samples,
    super::tampered_releases::all,
    super::tampered_deployments::all,
    super::tampered_generators::all,
    super::tampered_invariants::all,
    super::tampered_chosen::all,
    super::tampered_gated::all,
    super::tampered_names::all,
    super::tampered_claims::all,
    super::tampered_prompts::all,
    super::tampered_stopped::all,
    super::tampered_retold::all,
    super::tampered_picked::all,
    super::tampered_before::all,
    super::tampered_environments::all,
    super::tampered_undone::all,
    super::tampered_answered::all,
    super::tampered_probed::all,
    super::tampered_seen::all,
    super::tampered_rows::all,
    super::tampered_looks::all,
    super::tampered_endpoints::all,
    super::tampered_runs::all,
    super::tampered_synths::all,
    super::tampered_asked::all,
    super::tampered_scales::all,
    super::tampered_tainted::all,
    super::tampered_held::all,
    super::tampered_noise::all,
    super::tampered_descents::all,
    super::tampered_scored::all,
    super::tampered_promotions::all,
    super::tampered_repairs::all,
];

/// Samples around single lines, and around a pre-registered gate.
fn of_lines() -> Vec<Sample> {
    let good = good();
    let mut table = Table {
        good: &good,
        rows: Vec::new(),
    };
    table.good_ones();
    table.damaged_lines();
    table.damaged_frames();
    table.written_around();
    table.keys_and_roles();
    table.money_and_seals();
    table.intake();
    table.estimates();
    table.forms();
    table.checkpoints();
    let mut rows = table.rows;
    let story = planned::story();
    let mut table = Plans {
        story: &story,
        rows: Vec::new(),
    };
    table.good_one();
    table.looked_first();
    table.written_otherwise();
    rows.extend(table.rows);
    rows
}

/// Samples around a pre-registered gate.
struct Plans<'a> {
    story: &'a Story,
    rows: Vec<Sample>,
}

impl Plans<'_> {
    fn push(&mut self, name: &'static str, done: &'static str, sealed: &Sealed, first: First) {
        let case = Case {
            ledger: forger::file(&sealed.lines),
            checkpoint: Some(sealed.checkpoint(&[LOG])),
            log_key: Some(log_vkey(LOG).to_string()),
            ..Case::default()
        };
        self.rows.push(Sample {
            name,
            done,
            case,
            first,
        });
    }

    fn good_one(&mut self) {
        let sealed = World::of(&self.story.lines).seal();
        self.push(
            "good-plan",
            "Nothing. A gate registered in a family, countersigned, amended three times, exposed twice, with a \
             deviation and a sealed plan that was revealed.",
            &sealed,
            None,
        );
    }

    /// Events said at the end; the last of them breaks `rule`.
    fn said(
        &mut self,
        name: &'static str,
        done: &'static str,
        rule: &'static str,
        said: &[(u8, Payload, Value)],
    ) {
        let mut world = World::of(&self.story.lines);
        for (who, payload, experiment) in said {
            let (kind, v) = (payload.kind().as_str(), payload.kind().version());
            let data = serde_json::to_value(payload).unwrap();
            world.say(*who, kind, u64::from(v), experiment.clone(), data);
        }
        let last = world.items.len() - 1;
        self.push(name, done, &world.seal(), Some((last, rule)));
    }

    fn edited(
        &mut self,
        name: &'static str,
        done: &'static str,
        at: &str,
        edit: impl FnOnce(&mut Value),
        rule: &'static str,
    ) {
        let mut world = World::of(&self.story.lines);
        let at = self.story.at(at);
        edit(&mut world.items[at].body["data"]);
        self.push(name, done, &world.seal(), Some((at, rule)));
    }

    fn removed(
        &mut self,
        name: &'static str,
        done: &'static str,
        gone: &str,
        (found, rule): (&str, &'static str),
    ) {
        let mut world = World::of(&self.story.lines);
        world.remove(self.story.at(gone));
        let first = Some((self.story.at(found) - 1, rule));
        self.push(name, done, &world.seal(), first);
    }

    fn looked_first(&mut self) {
        let exp: Value = EXPERIMENT.into();
        let [.., third, fourth] = planned::versions();
        let mut late = planned::gate(EXPERIMENT, "m-2");
        late["data"]["confirm_root"] = Digest::sha256(b"other units").to_base64().into();
        self.said(
            "score-before-manifest",
            "A gate was registered in an experiment that had scores already.",
            "manifest_first",
            &[(ADA, planned::registered(&late), exp.clone())],
        );
        let mut again = planned::audits(EXPERIMENT, "m-3");
        again["data"] = third["data"].clone();
        self.said(
            "confirm-set-used-again",
            "A manifest binds a confirm set whose units had been exposed under another.",
            "manifest_first",
            &[(ADA, planned::registered(&again), exp.clone())],
        );
        let mut alpha = planned::next(&fourth, &fourth);
        alpha["test"]["alpha_micro"] = 50_000.into();
        self.said(
            "changed-alpha",
            "Alpha was raised after the first look.",
            "amendment",
            &[(ADA, planned::amended(&alpha, &fourth, 1), exp.clone())],
        );
        let mut scale = planned::next(&fourth, &fourth);
        scale["metric"]["direction"] = "decrease".into();
        self.said(
            "changed-hypothesis",
            "The direction of the metric was turned after the first look.",
            "amendment",
            &[(ADA, planned::amended(&scale, &fourth, 3), exp.clone())],
        );
        self.said(
            "understated-class",
            "The same, called an amendment of words.",
            "amendment",
            &[(ADA, planned::amended(&scale, &fourth, 0), exp.clone())],
        );
        self.said(
            "third-exposure",
            "Units were exposed a third time under a manifest that allows two.",
            "exposure",
            &[(CLEO, planned::exposed(&fourth, 3, 100, 100), exp.clone())],
        );
        self.said(
            "stale-manifest",
            "A deviation was declared from a version that was not in force any more.",
            "stale_version",
            &[(RUNNER, planned::deviated(&third), exp)],
        );
    }

    fn written_otherwise(&mut self) {
        self.edited(
            "extra-unit",
            "One unit more was exposed than the manifest has.",
            "exposed-2",
            |data| data["last_unit"] = 100.into(),
            "exposure",
        );
        self.edited(
            "other-confirm-set",
            "Units of another set were exposed than the manifest binds.",
            "exposed-1",
            |data| data["confirm_root"] = Digest::sha256(b"other").to_base64().into(),
            "exposure",
        );
        self.edited(
            "forged-manifest-digest",
            "The digest beside a manifest is another's.",
            "m-audits",
            |data| data["digest"] = Digest::sha256(b"other").to_hex().into(),
            "manifest",
        );
        self.edited(
            "other-plan",
            "Another plan was revealed than was sealed.",
            "plan-revealed",
            |data| data["plan"]["blake3"] = Digest::blake3(b"other").to_hex().into(),
            "plan",
        );
        self.removed(
            "deleted-amendment",
            "An amendment of words was taken out of the history.",
            "amended-2",
            ("amended-3", "amendment"),
        );
        self.removed(
            "deleted-countersignature",
            "The custodian's agreement to the version in force was taken out.",
            "countersigned-3",
            ("exposed-1", "stale_version"),
        );
        let exp: Value = "exp-2".into();
        let begun = planned::experiment_registered();
        let other = |alpha: u64| {
            let mut other = planned::gate("exp-2", "m-4");
            other["data"]["confirm_root"] = Digest::sha256(b"other units").to_base64().into();
            other["test"]["alpha_micro"] = alpha.into();
            other
        };
        let gate = other(25_000);
        let said = |payload: Payload, who| (who, payload, exp.clone());
        self.said(
            "missing-countersignature",
            "Units were exposed under a manifest that the custodian had not countersigned.",
            "countersign",
            &[
                said(begun.clone(), ADA),
                said(planned::registered(&gate), ADA),
                said(planned::exposed(&gate, 1, 0, 9), CLEO),
            ],
        );
        let ada = super::samples::key_added(&signer(STRANGER), "Ada", true, &[Role::Custodian]);
        self.said(
            "countersigned-by-the-registrar",
            "The registrar countersigned with a second key, under strict separation.",
            "countersign",
            &[
                (ADA, ada.into(), Value::Null),
                said(begun.clone(), ADA),
                said(planned::registered(&gate), ADA),
                said(planned::countersigned(&gate), STRANGER),
            ],
        );
        self.said(
            "family-overspent",
            "A second gate took more alpha than its family had left.",
            "family",
            &[
                said(begun, ADA),
                said(planned::registered(&other(25_001)), ADA),
            ],
        );
    }
}

struct Table<'a> {
    good: &'a Story,
    rows: Vec<Sample>,
}

pub type First = Option<(usize, &'static str)>;

impl Table<'_> {
    /// Size of the good ledger: the position of what is appended to it.
    fn size(&self) -> usize {
        self.good.lines.len()
    }

    fn at(&self, name: &str) -> usize {
        self.good.at(name)
    }

    fn world(&self) -> World {
        World::of(&self.good.lines)
    }

    fn case(lines: &[Vec<u8>], checkpoint: Vec<u8>) -> Case {
        Case {
            ledger: forger::file(lines),
            checkpoint: Some(checkpoint),
            log_key: Some(log_vkey(NEXT_LOG).to_string()),
            ..Case::default()
        }
    }

    fn push(&mut self, name: &'static str, done: &'static str, case: Case, first: First) {
        self.rows.push(Sample {
            name,
            done,
            case,
            first,
        });
    }

    /// Lines were changed by someone without keys: the checkpoint is the old one.
    fn lines(
        &mut self,
        name: &'static str,
        done: &'static str,
        edit: impl FnOnce(&mut Vec<Vec<u8>>),
        first: First,
    ) {
        let mut lines = self.good.lines.clone();
        edit(&mut lines);
        let case = Self::case(&lines, self.good.head());
        self.push(name, done, case, first);
    }

    /// A history was written by someone with every key, the log's too.
    fn forged(&mut self, name: &'static str, done: &'static str, world: &World, first: First) {
        let sealed = world.seal();
        let checkpoint = sealed.checkpoint(&[NEXT_LOG]);
        let case = Self::case(&sealed.lines, checkpoint);
        self.push(name, done, case, first);
    }

    /// One event was added at the end by someone with every key.
    fn said(
        &mut self,
        name: &'static str,
        done: &'static str,
        (who, kind, experiment, data): (u8, &str, Value, Value),
        rule: &'static str,
    ) {
        let mut world = self.world();
        world.say(who, kind, 1, experiment, data);
        self.forged(name, done, &world, Some((self.size(), rule)));
    }

    /// One event was added and then changed.
    fn said_but(
        &mut self,
        name: &'static str,
        done: &'static str,
        edit: impl FnOnce(&mut forger::Item),
        rule: &'static str,
    ) {
        let mut world = self.world();
        let new = world.say(
            LENA,
            "note.recorded",
            1,
            Value::Null,
            json!({"text": "one more"}),
        );
        edit(&mut world.items[new]);
        self.forged(name, done, &world, Some((new, rule)));
    }
}

impl Table<'_> {
    fn good_ones(&mut self) {
        let mut case = Self::case(&self.good.lines, self.good.head());
        case.blobs = Some(self.good.blobs.clone());
        self.push(
            "good",
            "Nothing. Every kind of event, several holders under strict separation, a retired key and a \
             compromised one, sealed labels and their opening, budgets, a new log key, an erased subject.",
            case,
            None,
        );
        let mut case = Self::case(&self.good.lines, self.good.head());
        let size = self.at("accepted-1") as u64;
        case.pin = Some(self.good.checkpoints[&size].clone());
        self.push(
            "good-with-old-pin",
            "Nothing. The pin is an older checkpoint, from before the log key changed.",
            case,
            None,
        );
        let world = format_1();
        let sealed = world.seal();
        let mut case = Self::case(&sealed.lines, sealed.checkpoint(&[LOG]));
        case.log_key = Some(log_vkey(LOG).to_string());
        self.push(
            "good-format-1",
            "Nothing. A ledger of format 1: keys without proof of possession, experiments that nobody registered.",
            case,
            None,
        );
    }

    fn damaged_lines(&mut self) {
        let (score, label) = (self.at("score-3"), self.at("label-0"));
        self.lines(
            "changed-byte",
            "One bit of one byte in the frame of a line was turned.",
            |lines| {
                let at = find(&lines[score], b"\"payloadType\"");
                lines[score][at + 3] ^= 1;
            },
            Some((score, "line_format")),
        );
        self.lines(
            "changed-score",
            "A score was raised inside its signed body; line and body are well formed.",
            |lines| {
                lines[score] = with_body(&lines[score], |body| {
                    body["data"]["score_micro"] = 999_999.into();
                });
            },
            Some((score, "signature")),
        );
        self.lines(
            "changed-time",
            "The time at which the ledger took an event in was moved by a microsecond. Nobody signs that time: \
             the next author's view of the tree gives it away.",
            |lines| {
                let digit = find(&lines[label], b"Z\",\"seq\"") - 1;
                lines[label][digit] ^= 1;
            },
            Some((label + 1, "seen")),
        );
        self.lines(
            "dropped",
            "One line was taken out.",
            |lines| drop(lines.remove(label)),
            Some((label, "seq")),
        );
        self.lines(
            "swapped",
            "Two neighbours changed places.",
            |lines| lines.swap(score - 1, score),
            Some((score - 1, "seq")),
        );
        self.lines(
            "duplicated",
            "One line stands there twice.",
            |lines| lines.insert(label, lines[label].clone()),
            Some((label + 1, "seq")),
        );
        let kept = self.at("charge-1");
        let mut case = Self::case(
            &self.good.lines[..kept],
            self.good.checkpoints[&(kept as u64)].clone(),
        );
        case.pin = Some(self.good.head());
        self.push(
            "truncated",
            "The newest events were cut off, and an older genuine checkpoint lies beside: a valid ledger. Only the pin \
             remembers more.",
            case,
            Some((kept, "size")),
        );
        let case = Self::case(&self.good.lines[..kept], self.good.head());
        self.push(
            "truncated-under-its-checkpoint",
            "The newest events were cut off under a checkpoint that covers them.",
            case,
            Some((kept, "size")),
        );
        let rotated = self.at("rotated");
        let mut case = Self::case(
            &self.good.lines[..rotated],
            self.good.checkpoints[&(rotated as u64)].clone(),
        );
        case.pin = Some(self.good.head());
        case.log_key = None;
        self.push(
            "truncated-before-rotation",
            "As truncated, and the log key that signed the pin was named in what was cut off.",
            case,
            Some((rotated, "size")),
        );
    }

    fn damaged_frames(&mut self) {
        let label = self.at("label-0");
        let good = self.good;
        self.lines(
            "spaced-line",
            "A space was put into a line: the same JSON, other bytes.",
            |lines| lines[label].insert(1, b' '),
            Some((label, "line_format")),
        );
        self.lines(
            "malleable-signature",
            "S of a signature was replaced by S + L: equal for a lax verifier, another leaf in the tree.",
            |lines| lines[label] = malleable(&lines[label]),
            Some((label, "signature")),
        );
        let rubric = self.at("rubric");
        let mut edited = good.blobs.clone();
        let name = edited
            .iter()
            .find(|(_, bytes)| bytes.starts_with(b"Rate"))
            .unwrap()
            .0
            .clone();
        edited.get_mut(&name).unwrap()[26] = b'2';
        let mut missing = good.blobs.clone();
        missing.remove(&name);
        for (title, done, blobs) in [
            (
                "edited-blob",
                "One byte of a blob was changed; its length stayed.",
                edited,
            ),
            ("missing-blob", "A blob is not there.", missing),
        ] {
            let mut case = Self::case(&good.lines, good.head());
            case.blobs = Some(blobs);
            self.push(title, done, case, Some((rubric, "blob")));
        }
    }

    fn written_around(&mut self) {
        let good = self.good;
        let mut world = self.world();
        let (from, to) = (self.at("label-0"), self.at("label-1"));
        world.remove(from);
        let sealed = world.seal();
        let mut case = Self::case(&sealed.lines, sealed.checkpoint(&[NEXT_LOG]));
        case.pin = Some(good.head());
        self.push(
            "rewritten-history",
            "One label was taken out and everything after it numbered, bound and signed again, with every key. The \
             result is a valid ledger, and shorter than the pin.",
            case,
            Some((self.size() - 1, "size")),
        );
        let mut world = self.world();
        world.items[from].body["data"]["value_micro"] = 1.into();
        let sealed = world.seal();
        let mut case = Self::case(&sealed.lines, sealed.checkpoint(&[NEXT_LOG]));
        case.pin = Some(good.head());
        self.push(
            "forked-history",
            "One label was changed and everything after it signed again, with every key. The pin shows another root.",
            case,
            Some((self.size() - 1, "root")),
        );
        let mut world = self.world();
        world.items[to].recorded_at = world.items[to].recorded_at.plus_seconds(-600);
        world.items[to].body["at"] = world.items[to].recorded_at.to_string().into();
        world.items[to].body["seen"]["size"] = (from - 3).into();
        self.forged(
            "clock-set-back",
            "A ledger whose clock ran backwards by ten minutes, written around the program.",
            &world,
            Some((to, "recorded_at")),
        );
        self.said_but(
            "backdated",
            "An author claims to have signed a day before the checkpoint that the event names.",
            |item| item.body["at"] = item.recorded_at.plus_seconds(-86_400).to_string().into(),
            "backdated",
        );
        self.said_but(
            "postdated",
            "An author claims to sign 301 seconds after the ledger took the event in.",
            |item| item.body["at"] = item.recorded_at.plus_seconds(301).to_string().into(),
            "backdated",
        );
        self.said_but(
            "from-another-ledger",
            "An event that was signed for another ledger was carried over.",
            |item| item.body["ledger"] = "ledger.example/other".into(),
            "ledger",
        );
        self.said_but(
            "seen-another-root",
            "An event that was signed on another history of the same name was carried over.",
            |item| {
                item.bound = true;
                item.body["seen"]["root"] = Digest::sha256(b"another tree").to_base64().into();
            },
            "seen",
        );
        self.said_but(
            "seen-less-than-before",
            "An author names an older checkpoint than in their last event.",
            |item| {
                let at = from - 2;
                item.body["seen"]["size"] = at.into();
            },
            "seen",
        );
        self.said_but(
            "withheld",
            "A number of an author is missing: an event was withheld.",
            |item| {
                item.numbered = true;
                item.body["author_seq"] = 99.into();
            },
            "author_seq",
        );
        self.said_but(
            "dangling-reference",
            "An event stands on one that is not in the log.",
            |item| item.body["refs"] = json!([Digest::sha256(b"nothing").to_hex()]),
            "refs",
        );
    }

    fn keys_and_roles(&mut self) {
        let score = self.score("item-9");
        self.said(
            "retired-key",
            "A score was signed by a key that was retired before.",
            (RUNNER, "score.recorded", EXPERIMENT.into(), score.clone()),
            "key",
        );
        self.said(
            "compromised-key",
            "A score was signed by a key that was declared compromised before.",
            (RUNNER_2, "score.recorded", EXPERIMENT.into(), score.clone()),
            "key",
        );
        self.said(
            "unknown-key",
            "A score was signed by a key that nobody added.",
            (STRANGER, "score.recorded", EXPERIMENT.into(), score.clone()),
            "key",
        );
        self.said(
            "role-breach",
            "A labeler signed a score.",
            (LENA, "score.recorded", EXPERIMENT.into(), score),
            "role",
        );
        let mut world = self.world();
        let at = self.at("score-6");
        world.items[at].signer = Some(STRANGER);
        self.forged(
            "signed-by-another-key",
            "A score was signed by a stranger in the name of its author.",
            &world,
            Some((at, "signature")),
        );
        self.said_but(
            "other-keyid",
            "The envelope names another key than the body.",
            |item| item.keyid = Some(signer(BEN).id()),
            "keyid",
        );
        let mut world = self.world();
        let stolen = key_added(STRANGER, "Eve", &["scorer"], RUNNER_3);
        world.say(ADA, "key.added", 2, Value::Null, stolen);
        self.forged(
            "forged-possession",
            "A key was added with a proof of possession that another key signed.",
            &world,
            Some((self.size(), "possession")),
        );
        let mut world = self.world();
        let both = key_added(STRANGER, "Cleo", &["optimizer"], STRANGER);
        world.say(ADA, "key.added", 2, Value::Null, both);
        self.forged(
            "roles-not-separated",
            "Under strict separation the custodian got a second key, as optimizer.",
            &world,
            Some((self.size(), "separation")),
        );
        let mut world = self.world();
        let roles = json!(["labeler", "optimizer", "owner", "registrar"]);
        world.items[0].body["data"]["owner"]["roles"] = roles;
        world.items[0].body["data"]["policy"]["separation"] = "strict".into();
        self.forged(
            "strict-from-the-start",
            "A ledger was created under strict separation by an owner with conflicting roles.",
            &world,
            Some((0, "separation")),
        );
        let mut world = self.world();
        let retire = |who: u8| json!({"key_id": signer(who).id().to_string(), "reason": "gone"});
        world.say(ADA, "key.retired", 1, Value::Null, retire(BEN));
        world.say(ADA, "key.retired", 1, Value::Null, retire(ADA));
        self.forged(
            "last-owner-gone",
            "Both owners' keys were retired, one after the other.",
            &world,
            Some((self.size() + 1, "last_owner")),
        );
        self.said(
            "ended-twice",
            "A compromised key was retired.",
            (ADA, "key.retired", Value::Null, retire(RUNNER_2)),
            "target",
        );
        let back = json!({"reason": "back again", "vkey": log_vkey(LOG).to_string()});
        self.said(
            "log-key-used-again",
            "The log returned to a key that it had used before.",
            (ADA, "log_key.rotated", Value::Null, back),
            "target",
        );
        let mut world = self.world();
        weaken(&mut world);
        self.forged(
            "weak-owner-key",
            "The first key is a point of small order, for which anyone can sign.",
            &world,
            Some((0, "signature")),
        );
    }

    fn money_and_seals(&mut self) {
        let charge = |account: &str, amount: u64| json!({"account": account, "amount": amount, "for": "one more"});
        self.said(
            "overdraft",
            "A second peek was charged in a quarter that allows one.",
            (CLEO, "budget.charged", Value::Null, charge("peeks", 1)),
            "overdraft",
        );
        self.said(
            "no-such-account",
            "A charge names an account that was never opened.",
            (CLEO, "budget.charged", Value::Null, charge("pocket", 1)),
            "account",
        );
        self.said(
            "not-a-spender",
            "A custodian charged an account that only scorers may spend.",
            (
                CLEO,
                "budget.charged",
                Value::Null,
                charge("judge-spend", 1),
            ),
            "role",
        );
        let mut world = self.world();
        let revealed = self.at("revealed-1");
        world.items[revealed].body["data"]["value_micro"] = 0.into();
        self.forged(
            "forged-reveal",
            "A sealed label was revealed with another value than was sealed.",
            &world,
            Some((revealed, "seal")),
        );
        let mut world = self.world();
        let accepted = self.at("accepted-2");
        world.items[accepted].body["data"]["envelope_sha256"] = Digest::sha256(b"").to_hex().into();
        self.forged(
            "other-envelope",
            "The custodian accepted another envelope than was sealed.",
            &world,
            Some((accepted, "seal")),
        );
        let mut world = self.world();
        let charge_at = self.at("charge-1");
        world.items[revealed].body["seen"]["size"] = charge_at.into();
        self.forged(
            "unpaid-reveal",
            "A label was revealed before a checkpoint covered its charge: both were made in one go.",
            &world,
            Some((revealed, "charge")),
        );
        let mut world = self.world();
        let at = world.repeat(self.at("score-6"));
        world.items[at].body["data"]["score_micro"] = 1.into();
        let closed = self.at("closed");
        world.remove(closed);
        self.forged(
            "scored-twice",
            "The same draw was scored a second time, with another result.",
            &world,
            Some((at - 1, "natural_key")),
        );
        let score = self.score("item-9");
        self.said(
            "unregistered-experiment",
            "A score belongs to an experiment that nobody registered.",
            (RUNNER_3, "score.recorded", "exp-2".into(), score.clone()),
            "experiment",
        );
        self.said(
            "closed-experiment",
            "A score belongs to an experiment that was closed before.",
            (RUNNER_3, "score.recorded", EXPERIMENT.into(), score),
            "experiment",
        );
    }

    /// Data, designs, splits and peeks.
    fn estimates(&mut self) {
        let arena = || Value::from(ARENA);
        self.said(
            "audit-run-again",
            "A policy that had failed its audit of transport was audited by the same probes again, and passed.",
            (
                ARBITER,
                "transport.tested",
                arena(),
                valued::tested(5, "probe", "pass"),
            ),
            "transport",
        );
        let mut hidden = valued::estimate(5, None);
        hidden["through_seq"] = 7.into();
        self.said(
            "estimate-hides-its-audit",
            "A policy that had failed its audit of transport was estimated as if nobody had audited it.",
            (ARBITER, "estimate.recorded", arena(), hidden),
            "transport",
        );
        // The failed audit of the good ledger, which stands against `base` from then on.
        let world = self.world();
        let mut items = world.items.iter();
        let audit = items.position(|item| item.body["kind"] == "transport.tested");
        let audit = audit.unwrap();
        let failed = json!({"seq": audit, "state": "fail"});
        let contrast = |transport: Option<&Value>, told_apart: bool| {
            let mut data = valued::contrast(5);
            data["through_seq"] = 7.into();
            data["told_apart"] = told_apart.into();
            if let Some(of) = transport {
                data["first_transport"] = of.clone();
            }
            data
        };
        self.said(
            "contrast-hides-its-audit",
            "A difference with a policy that had failed its audit of transport was computed as if nobody had audited it.",
            (ARBITER, "contrast.recorded", arena(), contrast(None, false)),
            "transport",
        );
        self.said(
            "contrast-told-apart",
            "A policy that had failed its audit of transport was told apart from another one.",
            (
                ARBITER,
                "contrast.recorded",
                arena(),
                contrast(Some(&failed), true),
            ),
            "transport",
        );
        let weighted = |transport: Option<&Value>| {
            let mut data = valued::weighted(5);
            data["policy"] = "base".into();
            data["through_seq"] = 7.into();
            if let Some(of) = transport {
                data["transport"] = of.clone();
            }
            data
        };
        self.said(
            "weighted-hides-its-audit",
            "A policy that had failed its audit of transport was estimated from logged responses as if nobody had audited it.",
            (ARBITER, "ope.estimated", arena(), weighted(None)),
            "transport",
        );
        self.said(
            "weighted-and-read",
            "Logged responses of a policy that had failed its audit of transport are said to be readable with a warning.",
            (ARBITER, "ope.estimated", arena(), weighted(Some(&failed))),
            "transport",
        );
        let mut unfitted = valued::contrast(6);
        unfitted["through_seq"] = 7.into();
        self.said(
            "estimate-by-no-calibrator",
            "A difference was computed by a calibrator that nobody fitted.",
            (ARBITER, "contrast.recorded", arena(), unfitted),
            "calibrator",
        );
    }

    fn intake(&mut self) {
        let label = |item: &str, design: &str, purpose: &str| {
            json!({
                "design": design, "draw": 0, "item": item, "policy": "base", "purpose": purpose, "rater": "Lena",
                "value_micro": 5,
            })
        };
        let arena = || Value::from(ARENA);
        self.said(
            "confirm-row-in-fit",
            "A label of a confirm cluster was given in the open, to fit on.",
            (
                LENA,
                "label.recorded",
                arena(),
                label("item-e", "calib", "calibrate"),
            ),
            "split",
        );
        self.said(
            "label-for-two-purposes",
            "A draw that was labelled to calibrate was labelled again, to audit.",
            (
                LENA,
                "label.recorded",
                arena(),
                label("item-a", "probe", "audit"),
            ),
            "purpose",
        );
        self.said(
            "unregistered-design",
            "A label belongs to a design that nobody registered, where others were.",
            (
                LENA,
                "label.recorded",
                arena(),
                label("item-b", "pocket", "calibrate"),
            ),
            "design",
        );
        let sealed = |row: &str, design: &str| {
            let good = self.world();
            let mut data = good.items[self.at("held")].body["data"].clone();
            data["row"] = row.into();
            data["design"] = design.into();
            data
        };
        let (opened, fit) = (
            sealed("base/item-a/0", "probe"),
            sealed("base/item-b/0", "hold"),
        );
        self.said(
            "sealed-after-open",
            "A label that was open before was sealed, as if nobody had seen it.",
            (CLEO, "label.sealed", arena(), opened),
            "purpose",
        );
        self.said(
            "confirm-outside-of-split",
            "A label of a fit cluster was sealed to confirm.",
            (CLEO, "label.sealed", arena(), fit),
            "split",
        );
        let listed =
            json!({"clusters": ["item-f"], "first": 0, "part": "confirm", "split": "split-2"});
        self.said(
            "spent-confirm",
            "A cluster that was in confirm once was put into the confirm block of another split.",
            (ARBITER, "splits.listed", arena(), listed),
            "split",
        );
        let mut world = self.world();
        let formed = self.at("formed");
        world.items[formed].body["data"]["confirm"]["count"] = 3.into();
        self.forged(
            "other-confirm-block",
            "A split was closed over more confirm clusters than were listed.",
            &world,
            Some((formed, "split")),
        );
        let mut world = self.world();
        let scored = world.items[self.at("scored-a")].was.clone();
        let conflict = json!({
            "draw": 1, "item": "item-a", "judge": "judge-1", "policy": "base", "recorded": scored,
            "recorded_micro": 500_000, "score_micro": 1,
        });
        world.say(RUNNER_3, "score.conflict", 1, arena(), conflict);
        self.forged(
            "conflict-without-score",
            "A conflict was claimed with a score that nobody recorded.",
            &world,
            Some((self.size(), "score_once")),
        );
        let mut world = self.world();
        let replayed = world.items[self.at("replayed-1")].body["data"].clone();
        let mut stranger = replayed;
        stranger["judge"] = "judge-2".into();
        world.say(RUNNER_3, "score.replayed", 1, arena(), stranger);
        self.forged(
            "unregistered-judge",
            "A re-score was claimed of a judge that nobody registered.",
            &world,
            Some((self.size(), "judge")),
        );
        self.peeks();
        self.trust();
    }

    /// Protocols, waivers, reads, and a judge who contradicted itself.
    fn trust(&mut self) {
        let mut world = self.world();
        let conflict = self.at("conflict");
        world.items[conflict].body["data"]["recorded_micro"] = 499_999.into();
        self.forged(
            "conflict-with-other-value",
            "A conflict says that another score had been recorded than was.",
            &world,
            Some((conflict, "score_once")),
        );
        let mut world = self.world();
        let replayed = self.at("replayed-1");
        world.items[replayed].body["data"]["mismatches"] = 1.into();
        self.forged(
            "step-after-mismatch",
            "Clusters were split after a re-score had come out otherwise.",
            &world,
            Some((replayed + 1, "blocked")),
        );
        let mut world = self.world();
        let fit = self.at("listed-fit");
        world.items[fit].body["data"]["clusters"][0] = "item-1".into();
        self.forged(
            "misplaced-cluster",
            "A cluster was listed to fit on that the hash puts elsewhere.",
            &world,
            Some((fit, "split")),
        );
        let listed = json!({"clusters": ["item-a"], "first": 0, "part": "fit", "split": "split-1"});
        self.said(
            "step-after-conflict",
            "Clusters were split in an experiment whose judge had contradicted itself.",
            (ARBITER, "splits.listed", DOUBT.into(), listed),
            "blocked",
        );
        let design = json!({
            "design": "late", "inclusion_micro": 1, "protocol": "sdp-0", "purpose": "audit",
        });
        self.said(
            "other-protocol",
            "Labels were planned by another protocol than the one in force.",
            (LENA, "label.design_registered", ARENA.into(), design),
            "sdp",
        );
        let waived = |code: &str| json!({"code": code, "expires_at": "2026-12-31T00:00:00.000000Z", "reason": "it is late"});
        self.said(
            "waived-confirm",
            "An approver waived that confirm is untouched.",
            (PETRA, "assumption.waived", ARENA.into(), waived("H1")),
            "waiver",
        );
        self.said(
            "waived-conflict",
            "An approver waived that scoring is deterministic, after the judge had contradicted itself.",
            (PETRA, "assumption.waived", DOUBT.into(), waived("CLOVER.J2")),
            "waiver",
        );
        let mut world = self.world();
        let agreed = self.at("waived-by-two");
        world.items[agreed].body["author"] = world.items[self.at("waived")].body["author"].clone();
        self.forged(
            "waived-by-one",
            "The approver who proposed a waiver agreed to it too.",
            &world,
            Some((agreed, "waiver")),
        );
        let read = json!({
            "class": "label", "outcome": "allowed", "purpose": "curiosity", "reader": signer(STRANGER).id().to_string(),
        });
        self.said(
            "read-by-stranger",
            "Labels were released to a key that is none of this ledger.",
            (CLEO, "data.read", ARENA.into(), read),
            "access",
        );
    }

    fn peeks(&mut self) {
        let opening = held();
        let reveal = |world: &World, charge: usize| {
            json!({
                "charge": world.items[charge].was, "design": "hold", "row": "base/item-f/0",
                "salt": Base64::encode_string(&opening.salt), "value_micro": opening.value_micro,
            })
        };
        let mut world = self.world();
        let data = reveal(&world, self.at("last"));
        world.say(CLEO, "label.revealed", 1, ARENA.into(), data);
        self.forged(
            "peek-without-charge",
            "A confirm label was revealed, and what it names as its charge is a note.",
            &world,
            Some((self.size(), "charge")),
        );
        let mut world = self.world();
        let data = reveal(&world, self.at("spent"));
        world.say(CLEO, "label.revealed", 1, ARENA.into(), data);
        self.forged(
            "peek-paid-by-judges",
            "A confirm label was revealed by a charge to the account of what judges cost.",
            &world,
            Some((self.size(), "charge")),
        );
        let mut world = self.world();
        let data = reveal(&world, self.at("charge-2"));
        world.say(LENA, "label.revealed", 1, ARENA.into(), data);
        self.forged(
            "unsealed-by-labeler",
            "A labeler revealed a confirm label in the custodian's place.",
            &world,
            Some((self.size(), "role")),
        );
        let mut world = self.world();
        let opened = json!({
            "account": "confirm-peeks", "amount": 3, "period": "quarter", "purpose": "confirm peeks",
            "spenders": ["custodian"], "unit": "peek",
        });
        world.say(ADA, "budget.opened", 1, Value::Null, opened);
        for _ in 0..4 {
            let charge = json!({"account": "confirm-peeks", "amount": 1, "for": "one more look"});
            world.say(CLEO, "budget.charged", 1, Value::Null, charge);
        }
        self.forged(
            "fourth-peek",
            "A fourth peek was charged in a quarter that allows three.",
            &world,
            Some((self.size() + 4, "overdraft")),
        );
    }

    fn forms(&mut self) {
        self.said_but(
            "not-canonical",
            "An author signed a body with a space in it.",
            |item| {
                let mut body = canon::to_bytes(&item.body).unwrap();
                body.insert(1, b' ');
                item.raw = Some(body);
            },
            "body_format",
        );
        self.said_but(
            "unknown-field",
            "An event carries a field that its kind does not have.",
            |item| item.body["data"]["mood"] = "good".into(),
            "schema",
        );
        self.said_but(
            "null-for-absent",
            "An optional field is null where it should be absent.",
            |item| item.body["data"]["blob"] = Value::Null,
            "schema",
        );
        self.said(
            "unknown-kind",
            "An event is of a kind that does not exist.",
            (LENA, "note.shouted", Value::Null, json!({"text": "!"})),
            "kind",
        );
        let mut old = key_added(STRANGER, "Eve", &["scorer"], STRANGER);
        old.as_object_mut().unwrap().remove("proof");
        self.said(
            "retired-version",
            "A key was added without a proof of possession, in a version that ended with format 1.",
            (ADA, "key.added", Value::Null, old),
            "kind",
        );
        let mut world = self.world();
        world.items[0].body["data"]["format"] = 3.into();
        self.forged(
            "unknown-format",
            "The ledger says that it is of format 3.",
            &world,
            Some((0, "genesis")),
        );
        let mut world = self.world();
        world.repeat(0);
        self.forged(
            "created-twice",
            "A second ledger.created stands in the log.",
            &world,
            Some((self.size(), "natural_key")),
        );
    }

    fn checkpoints(&mut self) {
        let (good, size) = (self.good, self.size());
        let last = size - 1;
        let other = Digest::sha256(b"another tree");
        let lines = Sealed::over(good.lines.clone());
        let rows = [
            (
                "rewritten-checkpoint",
                "The log signed a checkpoint with another root.",
                forger::checkpoint(size as u64, other, &[NEXT_LOG]),
                "root",
            ),
            (
                "edited-checkpoint",
                "The root in the checkpoint was changed; its signature was not.",
                edited(&good.head(), &lines.root().to_base64(), &other.to_base64()),
                "root",
            ),
            (
                "unknown-log-key",
                "The checkpoint is signed by a key that was never the log's.",
                lines.checkpoint(&[STRANGER]),
                "checkpoint",
            ),
            (
                "old-log-key",
                "The checkpoint is signed by the log key that was replaced.",
                lines.checkpoint(&[LOG]),
                "checkpoint",
            ),
            (
                "broken-checkpoint",
                "One bit of the checkpoint's signature was turned.",
                broken(&good.head()),
                "checkpoint",
            ),
        ];
        for (name, done, checkpoint, rule) in rows {
            let case = Self::case(&good.lines, checkpoint);
            self.push(name, done, case, Some((last, rule)));
        }
        let rotated = self.at("rotated");
        let covered = Sealed::over(good.lines[..=rotated].to_vec());
        let mut case = Self::case(&covered.lines, covered.checkpoint(&[NEXT_LOG]));
        case.log_key = None;
        self.push(
            "rotation-signed-by-one",
            "The checkpoint that covers the change of the log key lacks the old key's signature.",
            case,
            Some((rotated, "checkpoint")),
        );
        let mut case = Self::case(&good.lines, good.head());
        let at = self.at("spent");
        case.pin = Some(forger::checkpoint(at as u64, other, &[LOG]));
        self.push(
            "forked-pin",
            "The log once signed another root at an older size: the pin proves a fork.",
            case,
            Some((at - 1, "root")),
        );
        let mut case = Self::case(&good.lines, good.head());
        let at = self.at("last");
        case.pin = Some(forger::checkpoint(at as u64, lines.roots[at], &[LOG]));
        self.push(
            "pin-by-old-log-key",
            "The pin was signed by a log key that had been replaced by then.",
            case,
            Some((at - 1, "checkpoint")),
        );
        let mut case = Self::case(&good.lines, good.head());
        case.log_key = Some(log_vkey(STRANGER).to_string());
        self.push(
            "other-log-key",
            "The auditor knows another log key than the ledger's: the ledger was made up.",
            case,
            Some((0, "checkpoint")),
        );
    }

    fn score(&self, item: &str) -> Value {
        let mut data = self.world().items[self.at("score-6")].body["data"].clone();
        data["item"] = item.into();
        data
    }
}

/// A ledger of format 1.
fn format_1() -> World {
    let mut world = World::of(&good().lines[..1]);
    world.items[0].body["data"]["format"] = 1.into();
    let mut key = key_added(RUNNER, "runner", &["scorer"], RUNNER);
    key.as_object_mut().unwrap().remove("proof");
    world.say(ADA, "key.added", 1, Value::Null, key);
    let score = json!({"draw": 0, "item": "item-0", "judge": "judge-1", "policy": "base", "score_micro": 5});
    world.say(
        RUNNER,
        "score.recorded",
        1,
        "never registered".into(),
        score,
    );
    world.say(
        ADA,
        "note.recorded",
        1,
        Value::Null,
        json!({"text": "the end"}),
    );
    world
}

/// Data of `key.added` v2 whose proof `prover` signed.
pub fn key_added(who: u8, holder: &str, roles: &[&str], prover: u8) -> Value {
    let key = signer(who);
    let proof = signer(prover).sign(&rules::possession_message(ORIGIN, key.id()));
    json!({
        "holder": holder, "human": false, "key_id": key.id().to_string(),
        "proof": Base64::encode_string(&proof), "public_key": Base64::encode_string(&key.public_bytes()),
        "roles": roles,
    })
}

/// Lets the ledger begin with a key of small order.
fn weaken(world: &mut World) {
    let weak = [0; 32];
    let id = keyfile::key_id(&weak).to_hex();
    let ada = signer(ADA).id().to_string();
    world.items[0].body["data"]["owner"]["public_key"] = Base64::encode_string(&weak).into();
    // R = (0, 1), S = 0: holds for every message where [k]A is the neutral element.
    let mut forged = [0; 64];
    forged[0] = 1;
    for item in &mut world.items {
        if item.body["author"] == ada.as_str() {
            item.body["author"] = id.as_str().into();
            item.signature = Some(forged);
        }
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> usize {
    haystack
        .windows(needle.len())
        .position(|window| window == needle)
        .unwrap()
}

/// The line with an edited body under the old signature.
fn with_body(line: &[u8], edit: impl FnOnce(&mut Value)) -> Vec<u8> {
    let mut value: Value = serde_json::from_slice(line).unwrap();
    let payload = Base64::decode_vec(value["envelope"]["payload"].as_str().unwrap()).unwrap();
    let mut body: Value = serde_json::from_slice(&payload).unwrap();
    edit(&mut body);
    let payload = canon::to_bytes(&body).unwrap();
    value["envelope"]["payload"] = Base64::encode_string(&payload).into();
    canon::to_bytes(&value).unwrap()
}

/// The line with S + L in place of S.
pub fn malleable(line: &[u8]) -> Vec<u8> {
    let mut value: Value = serde_json::from_slice(line).unwrap();
    let text = value["envelope"]["signatures"][0]["sig"].as_str().unwrap();
    let mut signature = Base64::decode_vec(text).unwrap();
    let mut carry = 0;
    for (byte, order) in signature[32..].iter_mut().zip(ORDER) {
        let sum = u16::from(*byte) + u16::from(order) + carry;
        *byte = sum.to_le_bytes()[0];
        carry = sum >> 8;
    }
    value["envelope"]["signatures"][0]["sig"] = Base64::encode_string(&signature).into();
    canon::to_bytes(&value).unwrap()
}

fn edited(note: &[u8], old: &str, new: &str) -> Vec<u8> {
    let text = std::str::from_utf8(note).unwrap();
    assert!(text.contains(old));
    text.replace(old, new).into_bytes()
}

/// The note with one bit of its first signature turned.
fn broken(note: &[u8]) -> Vec<u8> {
    let text = std::str::from_utf8(note).unwrap();
    let (head, signature) = text.trim_end().rsplit_once(' ').unwrap();
    let mut bytes = Base64::decode_vec(signature).unwrap();
    bytes[20] ^= 1;
    format!("{head} {}\n", Base64::encode_string(&bytes)).into_bytes()
}

/// Files of a sample beside those of its case: what it is for people, and what must be found for programs.
pub fn documents(sample: &Sample) -> BTreeMap<&'static str, String> {
    let (verdict, found) = match sample.first {
        None => (
            "pass",
            match super::computed::found_again(sample.name) {
                None if sample.name == super::computed::HIDES => {
                    let path = super::computed::DIFFERING;
                    format!(
                        "**Must be found:** nothing by a verifier, for neither writes reports. `clover replay`, on a ledger that \
                         holds these entries, says that `report.published` differs: `{path}`."
                    )
                }
                None => "**Must be found:** nothing. The verdict is `VERIFIED`.".to_owned(),
                Some(rule) => format!(
                    "**Must be found:** nothing. The verdict is `VERIFIED`. Whoever computes again finds it all the same: \
                     `clover verify --recompute` says `FAILED` (`{rule}`)."
                ),
            },
        ),
        Some((seq, rule)) => (
            "fail",
            format!("**Must be found:** the verdict is `FAILED`, first at seq {seq} (`{rule}`)."),
        ),
    };
    let first = sample.first.map_or("null".to_owned(), |(seq, rule)| {
        format!("{{\"seq\": {seq}, \"rule\": \"{rule}\"}}")
    });
    let mut command = format!("python3 audits/verify audits/{}/ledger.jsonl", sample.name);
    let mut give = |there: bool, text: String| command += if there { &text } else { "" };
    let folder = format!("audits/{}", sample.name);
    give(
        true,
        format!(" \\\n        --checkpoint {folder}/checkpoint"),
    );
    give(
        sample.case.pin.is_some(),
        format!(" \\\n        --against {folder}/pin"),
    );
    give(
        sample.case.blobs.is_some(),
        format!(" \\\n        --blobs {folder}/blobs"),
    );
    give(
        sample.case.log_key.is_some(),
        format!(" \\\n        --log-key \"$(cat {folder}/log_key)\""),
    );
    let (name, done) = (sample.name, sample.done);
    let readme = format!("# {name}\n\n**Done to it:** {done}\n\n{found}\n\n    {command}\n");
    BTreeMap::from([
        ("README.md", readme),
        (
            "expected.json",
            format!("{{\"verdict\": \"{verdict}\", \"first\": {first}}}\n"),
        ),
    ])
}
