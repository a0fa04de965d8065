//! The registry of rules: one line each, in the order in which one entry is judged. Order, names, hints and the table of
//! `schema/FINDINGS.md` come from here.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde::Serializer;

macro_rules! rules {
    ($($rule:ident $name:literal next $next:literal: $meaning:literal => $advice:literal;)*) => {
        /// A rule by name. Of two findings at one entry, the one of the smaller rule is the first.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum RuleName {
            $(#[doc = $meaning] $rule,)*
        }

        impl RuleName {
            /// Every rule, in the order in which one entry is judged.
            pub const ALL: &'static [Self] = &[$(Self::$rule),*];

            /// As findings, refusals and `schema/FINDINGS.md` write it.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$rule => $name,)*
                }
            }

            /// The command that shows what the rule looks at.
            pub const fn next(self) -> &'static str {
                match self {
                    $(Self::$rule => $next,)*
                }
            }

            /// What a finding of the rule means.
            pub const fn meaning(self) -> &'static str {
                match self {
                    $(Self::$rule => $meaning,)*
                }
            }

            /// What an auditor should do about a finding.
            pub const fn advice(self) -> &'static str {
                match self {
                    $(Self::$rule => $advice,)*
                }
            }
        }
    };
}

rules! {
    LineFormat "line_format" next "clover status":
        "the line is not a canonical entry line (`ENVELOPE.md`)"
        => "compare with another copy of the export; one changed byte is enough";
    Seq "seq" next "clover status":
        "the number in the line is not its position"
        => "look for a line dropped, doubled or moved at this place";
    RecordedAt "recorded_at" next "clover log":
        "earlier than in the line before"
        => "ask who wrote around the ledger, or whose clock was set back";
    BodyFormat "body_format" next "clover schema":
        "the body is not canonical, not the closed header, or over 32 KiB"
        => "as 1; if the signature covers it, the author's program is at fault";
    Ledger "ledger" next "clover status":
        "the body names another ledger"
        => "an event was carried over from elsewhere: find that ledger";
    Kind "kind" next "clover schema":
        "unknown kind or version, or a retired one"
        => "get a verifier for this format before judging further";
    Schema "schema" next "clover schema":
        "`data` breaks the closed schema of its kind"
        => "treat the event as void; ask its author";
    Keyid "keyid" next "clover status":
        "the envelope's keyid is not the author"
        => "the envelope was built by hand";
    Key "key" next "clover key list":
        "the author is unknown here, retired or compromised"
        => "ask the holder whether they signed; do not count the event";
    Signature "signature" next "clover status":
        "the strict predicate fails"
        => "the body or the signature was changed, or the key is not the author's";
    AuthorSeq "author_seq" next "clover log":
        "not the author's next number"
        => "ask the author for the missing event, or for which of two is theirs";
    Seen "seen" next "clover status":
        "null or a size where it must not be, a smaller size than before, or a root that is not this tree's"
        => "the author saw another history: get their checkpoint, it may prove a fork";
    Backdated "backdated" next "date -u":
        "`at` is more than 300 s after `recorded_at`, or before the `recorded_at` of what it saw"
        => "do not rely on `at`; compare with other evidence of time";
    Role "role" next "clover key list":
        "the author's roles do not allow the kind, or the account's spenders do not include one"
        => "do not count the event; ask the owner";
    Separation "separation" next "clover key list":
        "under `strict` a holder has conflicting roles, or had one of them on a key that ended (20); a new holder whose name holds what nobody sees, or is taken for another's (`KEYS.md`)"
        => "every later claim needs a second person's confirmation";
    Possession "possession" next "clover key list":
        "the proof in `key.added` fails, `public_key` is no usable point, or `key_id` is not that of `public_key`"
        => "ask the holder to prove the key; someone may have claimed another's";
    LastOwner "last_owner" next "clover key list":
        "ends the last live owner key"
        => "nobody can govern the ledger any more; freeze it";
    Experiment "experiment" next "clover experiment list":
        "names an experiment not registered or already closed, or none where one is needed"
        => "do not count it for any experiment";
    Account "account" next "clover budget list":
        "charges an account never opened"
        => "there was no budget: treat the spending as unapproved";
    Overdraft "overdraft" next "clover budget list":
        "charges more than is left in the period"
        => "the claims that rest on it spent more than they say";
    Refs "refs" next "clover log":
        "a reference, the charge of a reveal or an audit, or the score of a conflict is not the id of an earlier event"
        => "ask for the missing event";
    NaturalKey "natural_key" next "clover log":
        "an earlier event of the kind has the same natural key (`KEYS.md`)"
        => "count the first only, and ask why there is a second";
    Seal "seal" next "clover log --kind label.sealed":
        "a reveal without a seal of equal commitment, below its charge too (20), or without an earlier acceptance of that row, or an acceptance of another envelope"
        => "the label was changed after sealing: void the peek";
    Charge "charge" next "clover budget list":
        "a reveal whose charge is no `budget.charged` below its own `seen.size`, or one of an account whose unit is not `peek`, or that paid for other labels before (18)"
        => "the label was opened before it was paid for: void the peek";
    Design "design" next "clover label design list":
        "a label of no registered design where designs are registered, a design registered after its labels, or a sealed row that names no draw; a label off the declared scale, or a scale that was said too late (23) (`SPLITS.md`)"
        => "ask by which plan the row was drawn; without one its probability is unknown";
    Purpose "purpose" next "clover label design list":
        "a draw labelled for two purposes, sealed after it was open, open after it was sealed, or for another purpose than its design's; a prompt of a policy that is a probe of two designs (23)"
        => "void what was confirmed or audited on that label";
    Split "split" next "clover confirm status":
        "a confirm cluster with an open label, in confirm twice or in two parts; a confirm label before its split was formed or outside of it; roots, order or gap of a split are wrong; a cluster that the hash of its listing puts elsewhere"
        => "void the confirmation that rests on the split";
    ScoreOnce "score_once" next "clover log --kind score.conflict":
        "a conflict with a score that was never recorded, of equal values, or with another value than the event it names recorded"
        => "ask what the scorer saw";
    Manifest "manifest" next "clover log --kind manifest.registered":
        "a manifest whose digest, null hypothesis digest, sections, numbers, name or registrar are wrong, that registers a gate which could not end by its claim, or a deviation from an unknown one"
        => "do not count the manifest; ask the registrar";
    ManifestFirst "manifest_first" next "clover experiment register ID --title TITLE --purpose WHY":
        "a gate registered, countersigned, or amended in what it tests, after a score or readable label (open, or revealed) of its experiment, a manifest on a confirm set that was seen before, an exposure or outcome before its manifest"
        => "the plan was made knowing outcomes: treat the claim as exploratory";
    Amendment "amendment" next "clover log --kind manifest.registered":
        "a new version that does not follow the one in force, claims another class than its changes have, changes after the first look what may not change, or makes a gate that could not end by its claim"
        => "compare with the version in force at the first look; ask for the version that is missing";
    StaleVersion "stale_version" next "clover log --kind manifest.registered":
        "names a version that is not in force any more, or a manifest that another superseded"
        => "judge by the version in force at that place";
    Countersign "countersign" next "clover prereg sign FILE --countersign --custodian KEY":
        "units exposed under a version that the custodian did not agree to, or an agreement by the registrar's own key (under `strict`, holder)"
        => "the confirm data were bound by one hand: void the exposure";
    Family "family" next "clover log --kind family.opened":
        "a family that cannot be, or a member that takes more alpha than is left or than the family has (20), joins another method, or changes its family"
        => "count the family's error rate again, with every member";
    Exposure "exposure" next "clover log --kind exposure.opened":
        "another confirm set, units or number of exposures than the manifest has, another custodian, or outside its dates; an exposure that does not name its last unit, a unit of a gate that is scored before its exposure or off the scale (18)"
        => "units beyond the plan are exploratory; ask who read them";
    Plan "plan" next "clover log --kind manifest.registered":
        "a plan sealed after the first look or other than registered, or a revealed one that does not open its seal; units exposed on another plan than the version in force binds (18)"
        => "the plan was changed: what rests on it is void";
    Access "access" next "clover access list":
        "a read by a key that is unknown or ended, or in a role that it does not hold (`ASSUMPTIONS.md`)"
        => "ask the custodian who was given what";
    Sdp "sdp" next "clover assume list":
        "a bridge of another protocol than the newest, without an end, by a machine, or with a crossed interval; labels or a design by another protocol than the one in force; a protocol in force before it was recorded (20); a step of an iteration whose protocol was replaced, or an end of one that does not say so"
        => "do not count the assessment; labels by two protocols are two experiments";
    Waiver "waiver" next "clover assume list":
        "a waiver of what is never waived, by one key, by a machine, or one that had ended"
        => "treat the assumption as it stands without it";
    Blocked "blocked" next "clover assume show CLOVER.J2":
        "a governed step in an experiment whose judge contradicted itself, or a promotion that rests on one (`ASSUMPTIONS.md`)"
        => "void what rests on that step";
    Calibrator "calibrator" next "clover calibrate list":
        "an estimate, contrast, share, coverage or audit by a calibrator of that judge that nobody fitted before (`ESTIMATES.md`); a local calibrator on fewer than 200 labels, or of an iteration (`TRANSPORT.md`)"
        => "ask for the fit; without it the number cannot be computed again";
    Transport "transport" next "clover label design new DESIGN --purpose audit --probability P":
        "an audit of a policy run twice on one design, and from rulebook 23 on a probe of it after its audit, on a design that is none for audit, before all its sealed probes were open, or with or without a charge where it must not be; an estimate, a difference or an off-policy value that hides or invents the audit that stands, or claims a level, tells apart or is to be read after a failed one; from rulebook 18 on what is told apart or claimed without own labels or a passed audit, and an interval of width zero; labels that a design draws by stratum and that are counted without weights (21); an audit that hides probes which were scored late or never, or passes beside one, and a covariate or weights from what was said once labels could be read (22); a difference told apart that the worst scores of missing prompts could undo, a failed audit that fewer new labels answered than it had prompts, and an audit that hides what keeps it from passing: fewer or more probes than their design draws, a fit on labels or on terms from after them (23); a difference told apart without a common prompt, what is read through an older entry than the newest, claims on entries of a compromised key, and a failure that many draws of one prompt answered (24); claims after a pass by entries of a compromised key (25) (`ESTIMATES.md`); a regime without the failed test or the local calibrator that it needs, what an environment withholds and is claimed, and a family of environments that hides late probes or passes beside one (`TRANSPORT.md`)"
        => "count the first audit only; read the estimate as refused";
    Thresholds "thresholds" next "clover log --kind manifest.registered":
        "a diagnosis judged by other numbers than a manifest of the experiment registers, by numbers of nobody, or by a plan of audits that came after their probes were open (20); a comparison or an estimate by another correction or weight than the plan in force first names (22); an audit that nobody planned, by a margin above a twentieth of the scale of labels or in a part of its family (23), or by one that terms alone name (24) (`DRIFT.md`, `ESTIMATES.md`); environments that are tested without the plan, or not all of a family (`TRANSPORT.md`)"
        => "judge its figures by the registered numbers yourself";
    Drift "drift" next "clover prereg deviation MANIFEST --rule-path metric.judge_digest --what TEXT --why TEXT --impact TEXT":
        "a check of a judge's drift whose verdict does not follow from its figures, or of anchors that nobody registered; a step of a gate whose judge had failed a check, without a deviation that says how that is handled (`DRIFT.md`)"
        => "read the gate as it stood before the check";
    Iteration "iteration" next "clover iterate list":
        "an iteration opened otherwise than its manifest, rubric, anchors, quarter or account of peeks allow, or while another is open; parameters changed while it is open; a patch proposed or taken back in a closed one or after a label was unsealed; an end that does not fit"
        => "void what the iteration decided; compare with the manifest in force when it opened";
    Rubric "rubric" next "clover rubric list":
        "the document of a rubric is none, its leaves, hash or version are not the document's, or it comes after the first iteration (`RUBRIC.md`)"
        => "ask for the rubric that the judge really had";
    Patch "patch" next "clover patch list":
        "the document of a patch is none for the iteration's rubric, or diff, hash, family, id, code length or result are not the document's; an id or edit that was there before; a rejection without its candidate"
        => "do not count the patch";
    Order "order" next "clover gate list":
        "units listed out of order or twice, an order that its beacon does not give, that lacks units or has others, that was drawn twice or after an exposure, or that holds units of an earlier order; an entry after one that fixes an order which names an older checkpoint (18) (`GATES.md`)"
        => "somebody may have chosen which units came first: the gate's claim is void";
    Gate "gate" next "clover gate list":
        "a gate opened otherwise than registered, or with a test that could never decide, on a manifest without an order, or of a candidate that is tested by the same values, or from 18 on by the same metric, judge or confirm set, in another family; an act on no opened gate, by another arbiter, or in a closed family; evidence carried on from another gate than the manifest names"
        => "judge by the manifest: what was run is not what was registered";
    Observation "observation" next "clover gate list":
        "an observation out of order, of a unit that is not exposed, past the plan, past a registered look that nobody took, or after the end; a difference that its values do not have; values that are not recorded since the exposure, or a recorded one that is called missing"
        => "compute the difference from the recorded scores, and every later look again";
    Look "look" next "clover gate list":
        "a look where none was registered, or whose wealth, interval, p value, standing or state is not what the observations give (log wealth within 1e-9)"
        => "trust the values computed again; whoever signed the look said otherwise";
    Decision "decision" next "clover gate list":
        "a decision that its last look does not lead to, or says to be asymptotic; an estimate beside a decision that says to be exact, or is of another sample, grade or claim"
        => "the gate is undecided, the estimate none";
    Promotion "promotion" next "clover gate list":
        "a promotion on gates that decided nothing, by a family that was not closed, of another candidate, or with another grade than follows; on finite claims alone, or with another number of tests (18)"
        => "do not rely on it";
    Predicate "predicate" next "clover iterate list":
        "a step of an iteration out of order, after a pause or after unsealing; a classification under another hash; a card under another digest, or of another iteration, rubric or calibrator; a gate with evidence of another, or a gate, a calibrator or scores for no candidate; scores of fewer rows than were read, or after a calibrator was fitted on them; a gate on the wrong split, or held to other numbers than registered; an answer of the dev objective to another key, after sealing, or beyond its budget, from rulebook 26 on over every iteration of the plan (`PREDICATE.md`)"
        => "void the gate, and what rests on it";
    Sealing "sealing" next "clover iterate list":
        "candidates sealed in a tainted iteration, that did not pass on dev, twice, two of a family, with another divisor, or without a review where stakes are high; confirm unsealed without a sealing, a fresh charge, a fresh root, or before its window ended; a label shown before that, or of a sequential test out of order, beyond its look or after it stopped; a look that is not the one due; a label of an older block (18), or of a row that the judge had not scored; a score of a confirm row after the unsealing (22); a sealing beside an open run of an optimizer (26) (`PREDICATE.md`)"
        => "void the peek";
    Acceptance "acceptance" next "clover iterate list":
        "a patch accepted against a gate, out of order, without every gate of every sealed candidate, or with other numbers than its events have; an iteration ended otherwise than its decisions say (`PREDICATE.md`)"
        => "do not deploy the patch";
    Approval "approval" next "clover key new NAME --role approver":
        "a word about no acceptance or as an author; that word, or a review of a patch, by a machine, by the patch's author, or under `strict` by the author's holder; a holder's second key; a review of no patch, or of entries without it (`DEPLOYMENT.md`)"
        => "do not count the approval";
    Commit "commit" next "clover prompt log":
        "a prompt committed without acceptance, approvals or proof, against a refusal, twice, on another head, or with another version, rubric or text than follows (`DEPLOYMENT.md`)"
        => "do not run the prompt; check out the version before it";
    Deployment "deployment" next "clover deploy status":
        "something runs that is no head, was rolled back, lacks approvals, a waiver or a recalibration, or on another calibrator, protocol or text than it may (`DEPLOYMENT.md`)"
        => "stop it; what it scored is not what was accepted";
    Recalibration "recalibration" next "clover deploy recalibrate --help":
        "a recalibration on fewer than 100 fresh labels, without an audit that passed, or with anchors that moved (`DEPLOYMENT.md`)"
        => "recalibrate before you deploy";
    Guardrail "guardrail" next "clover deploy status":
        "a guardrail held to other numbers than the plan has, over other entries than since the activation, or said to hold where its numbers break it (`DEPLOYMENT.md`)"
        => "take the verdict that the numbers give";
    Rollback "rollback" next "clover deploy status":
        "a rollback to something else than what ran before, of something that does not run, or a breach that is not followed by one (`DEPLOYMENT.md`)"
        => "find out what ran meanwhile";
    Generator "generator" next "clover generator list":
        "a run that froze something else than what ran, asked more than it registered, was validated on labels that are not younger than it or says something else than its numbers give, or was followed by another before it was rolled back (`GENERATOR.md`)"
        => "let the old policy answer; validate again in a new run";
    Endpoint "endpoint" next "clover endpoint list":
        "an endpoint of models takes plain http to another machine unsaid, or rows without terms (`ENDPOINTS.md`)"
        => "see where texts would go, and ask whoever registered it; another name registers it anew";
    Run "run" next "clover judge list":
        "a run of a judge behind HTTP that is none: a second one of a judge, a call of an older epoch or of more asks than it has, or an end that says something else than its calls (`ENDPOINTS.md`)"
        => "count the calls of the run; do not rely on scores that it gave";
    Ask "ask" next "clover log --kind call.recorded":
        "an ask that was asked again after an answer, a score without one, or an answer of another model than is pinned; from rulebook 26 on the same texts under a second key, or a key with other texts (`ENDPOINTS.md`)"
        => "read every call of the ask: of several answers somebody chose one";
    Price "price" next "clover price list":
        "a run without prices or an account, or a call that costs something else than its tokens and the table give (`ENDPOINTS.md`)"
        => "compute the cost from the tokens and the table; compare with the provider's page";
    Hold "hold" next "clover budget list":
        "money that was spent without being held, held twice, settled below what its calls cost, or from rulebook 26 on held below the bounds of its calls (`ENDPOINTS.md`)"
        => "compare what was charged with the provider's page, and open a new account for what is missing";
    Source "source" next "clover log --kind call.recorded":
        "a score or a miss of a judge behind HTTP that no call on record gave about the same texts, or a judge without its endpoint; from rulebook 26 on a row that was missed, with another text (`ENDPOINTS.md`)"
        => "do not use the score: nobody knows who gave it";
    Noise "noise" next "clover log --kind noise.measured":
        "answers of a judge behind HTTP that were asked for again, and not those that were drawn, or figures of them that do not follow from the calls (`ENDPOINTS.md`)"
        => "do not rely on what is said of the judge's noise; compute it again from the calls";
    Synth "synth" next "clover log --kind synth.opened":
        "an optimizer in a run was shown what was not released to it, returned or was told more than its run has, is said to have returned what it did not, or scored or labelled; from rulebook 26 on a patch of a run by another author, or a program under the name of a built-in optimizer (`SYNTHESIS.md`)"
        => "take no patch from the run: what its optimizer knew, or how it searched, is not what the ledger says";
    Sgd "sgd" next "clover sgd status":
        "a run that lowers the loss of a prompt did another step than was due, on other rows, numbers or texts than its record gives; its agents scored or labelled, test was read twice, or a prompt of it was promoted without its gate (`SGD.md`)"
        => "do not use the prompt: how it came about is not what the ledger says";
    Repair "repair" next "clover repair status":
        "a run that repairs a workflow did another step than was due, with other edits, calls, scores or an order than its record gives, over its budget, or with what is right in reach; an update of the outer loop took effect unvalidated, or was validated on its own tasks (`REPAIR.md`)"
        => "do not use the workflow: how it came about is not what the ledger says";
    Verdict "verdict" next "clover iterate list":
        "a gate says something else than its own statistics and thresholds give (`PREDICATE.md`)"
        => "take the verdict that they give";
    Battery "battery" next "clover battery list":
        "a battery of no candidate or another rubric, run twice, with other numbers than its own lists give, or without a known exploit; an exploit that is none, or of another battery; a card or p7 that says something else than the battery measured; a battery of a program without its answers (23) (`BATTERY.md`)"
        => "run the battery again; do not rely on the gate";
    Report "report" next "clover report list":
        "a report of an iteration that is not decided, read before that or after itself, or with a part that is neither there nor named as missing (`REPORT.md`)"
        => "write it again from the log";
    Target "target" next "clover key list":
        "ends a key that is unknown or ended already (`KEYS.md`), or from a later seq than its own; rotates to a log key of another name or used before"
        => "ask the owner what was meant";
    Genesis "genesis" next "clover status":
        "seq 0 is not `ledger.created`, or a later one is, or its owner, log key name or format is wrong"
        => "do not trust anything that follows";
    Root "root" next "clover status":
        "the tree at a checkpoint's size has another root"
        => "two histories: keep both files, the checkpoint is the proof";
    Checkpoint "checkpoint" next "clover status":
        "form, origin, log key or signature of a checkpoint is wrong"
        => "get the checkpoint again from where it is published";
    Size "size" next "clover status":
        "the log is shorter than a checkpoint says"
        => "entries were cut off: ask for the rest";
    Blob "blob" next "clover blob put FILE":
        "a referenced blob is missing, or its length or digest differs"
        => "find the blob elsewhere; its digest tells the right one";
    Judge "judge" next "clover judge list":
        "evidence or a re-score of a judge that was not registered before, no record at all, fewer than 30 keys, or more mismatches than keys; a score off the declared scale of its judge, or a scale after its first score; a comparison against its own numbers or plan (23) or its doubts (24), or by entries of a compromised key (25) (`SCORING.md`)"
        => "do not rely on the scores of that judge";
    Rulebook "rulebook" next "clover rulebook show":
        "a rulebook that is not above the one in force, or that this verifier does not know"
        => "get a newer verifier; a rulebook never goes back";
    Recompute "recompute" next "clover replay --all":
        "a number, word or count of an arbiter is not what the entries before give (`ESTIMATES.md`, `PREDICATE.md`), or a call says otherwise than the answer in the vault (`ENDPOINTS.md`); only `clover verify --recompute` looks"
        => "do not use the number; `clover replay SEQ --explain` shows what it should be";
    Bundle "bundle" next "clover export bundle -o FILE":
        "a file of a bundle is missing, changed, unlisted, has no place there, or says what the log contradicts (`EXPORTS.md`)"
        => "the log in it is judged by itself; do not rely on that file";
    Column "column" next "clover status":
        "a column of an entry's row is not what its body says"
        => "restore the database from an export; the entries themselves are judged apart";
    ReadModel "read_model" next "clover status":
        "a row of a read model is not what the entries before give"
        => "as `column`; numbers read from that row are not to be used";
    Tile "tile" next "clover status":
        "a stored tile of the tree is not that of the entries"
        => "as `column`; proofs made from that tile fail";
    Index "index" next "clover status":
        "an index lacks an entry's digest or has another's"
        => "as `column`; until then an append may take what stands there already";
    Snapshot "snapshot" next "clover status":
        "a stored state of a fold is not what the entries before give"
        => "as `column`; the state is made anew from the entries";
    Sqlite "sqlite" next "clover status":
        "`SQLite`'s own check of the file fails"
        => "copy the file, then restore from an export or a backup";
    SchemaSql "schema_sql" next "clover status":
        "tables, triggers or indexes are not those of this program"
        => "as `sqlite`; ask who opened the file with another program";
    Authors "authors" next "clover status":
        "the table of authors is not the authors of the entries"
        => "as `column`";
}

impl RuleName {
    /// The last rule that an export shows too: those after it look at the database beside the entries.
    pub const LAST_OF_EXPORT: Self = Self::Bundle;

    /// The rule at a place of the order.
    pub(super) fn at(place: u8) -> Option<Self> {
        Self::ALL.get(usize::from(place)).copied()
    }
}

impl fmt::Display for RuleName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// No rule has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no rule is named {0}")]
pub struct NoRule(pub String);

impl FromStr for RuleName {
    type Err = NoRule;

    fn from_str(text: &str) -> Result<Self, NoRule> {
        let found = Self::ALL.iter().find(|rule| rule.as_str() == text);
        found.copied().ok_or_else(|| NoRule(text.to_owned()))
    }
}

impl Serialize for RuleName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for RuleName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    #![expect(
        clippy::disallowed_methods,
        reason = "a test reads and writes the page itself"
    )]
    use clover_ground::page;

    use super::*;

    const EXPORTED: &str = "| # | rule | meaning | what an auditor should do |";
    const OF_DATABASE: &str = "| rule | meaning | what to do |";

    fn tables() -> [(&'static str, String); 2] {
        let (mut exported, mut database) = (String::new(), String::new());
        for (place, rule) in RuleName::ALL.iter().enumerate() {
            let (meaning, advice) = (rule.meaning(), rule.advice());
            if *rule <= RuleName::LAST_OF_EXPORT {
                let number = place + 1;
                exported.push_str(&format!("| {number} | `{rule}` | {meaning} | {advice} |\n"));
            } else {
                database.push_str(&format!("| `{rule}` | {meaning} | {advice} |\n"));
            }
        }
        [(EXPORTED, exported), (OF_DATABASE, database)]
    }

    #[test]
    fn the_page_of_findings_is_the_registry() {
        page::hold("schema/FINDINGS.md", &tables());
    }

    /// The list of rules of the verifier in Python.
    const VERIFIER: &str = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../audits/verify/rules/registry.py"
    );

    #[test]
    fn the_independent_verifier_has_the_same_order() {
        let program = std::fs::read_to_string(VERIFIER).unwrap();
        let (_, rest) = program.split_once("\nRULES = (").unwrap();
        let (list, _) = rest.split_once("\n)\n").unwrap();
        let found: Vec<&str> = list.split('"').skip(1).step_by(2).collect();
        let rules = RuleName::ALL
            .iter()
            .take_while(|rule| **rule <= RuleName::LAST_OF_EXPORT);
        let own: Vec<&str> = rules.map(|rule| rule.as_str()).collect();
        assert_eq!(found, own);
    }

    #[test]
    fn every_name_is_read_back() {
        for rule in RuleName::ALL {
            assert_eq!(rule.as_str().parse(), Ok(*rule));
        }
        assert!("no_rule".parse::<RuleName>().is_err());
    }
}
