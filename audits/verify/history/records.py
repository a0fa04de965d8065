"""What is kept of keys, accounts, labels, manifests, iterations, deployments and gates while a ledger is read."""

import re

from formats.limits import SAFE_INTEGER
from formats.tree import Tree, sha256
from formats.fields import decode_base64, micros
from events.shapes import OUTCOMES, PARTS
from events.commitments import labelled, length_prefixed


class Key:
    """A key of the ledger."""

    def __init__(self, public, data):
        self.public, self.holder, self.roles = public, data["holder"], frozenset(data["roles"])
        self.human = data["human"]
        self.ended = None                         # None while live, else ("retired" | "compromised", seq)


def quarter_of(recorded_text):
    """The UTC quarter, such as 2026Q4."""
    return "%sQ%d" % (recorded_text[:4], (int(recorded_text[5:7]) + 2) // 3)


class Account:
    """A budget, and what was spent of it."""

    def __init__(self, data):
        self.amount, self.period, self.spenders = data["amount"], data["period"], frozenset(data["spenders"])
        self.unit = data["unit"]
        self.spent = {}                           # period -> units
        self.held = {}                            # period -> units

    def period_of(self, recorded_text):
        """`once`, or the UTC quarter of recorded_at."""
        if self.period == "once":
            return "once"
        return quarter_of(recorded_text)


    def left(self, period):
        """What may still be charged or held."""
        return self.amount - self.spent.get(period, 0) - self.held.get(period, 0)


class ModelRun:
    """A run of a judge behind HTTP."""

    def __init__(self, experiment, data):
        self.experiment, self.data = experiment, data
        self.epoch = self.holds = self.ended = self.cost = self.settled = 0
        self.epoch_cost = self.epoch_settled = 0
        self.by_outcome, self.end, self.hold = {}, None, None      # hold: [name, amount, calls left]
        self.is_losing, self.uncalled, self.unnamed = False, 0, set()
        self.opened, self.rescored = None, RescoredCalls() if "rescore" in data else None

    def left(self):
        return self.data["asks"] - self.ended

    def unpaid(self):
        return max(0, self.epoch_cost - self.epoch_settled)

    def next_hold(self):
        return "%s/%d/%d" % (self.data["run"], self.epoch, self.holds)


class RescoredCalls:
    """What came of asking for answers again: both scores of each, by its first call."""

    def __init__(self):
        self.done, self.missed, self.pairs = set(), 0, []

    def take(self, data):
        first = data["first"]
        self.done.add(first["seq"])
        if "score_micro" in data:
            self.pairs.append(data["score_micro"] - first["score_micro"])
        else:
            self.missed += 1


class JudgeNoise:
    """Answers of a judge that gave a score, and what came of asking for them again in runs that were measured."""

    def __init__(self):
        self.scored, self.runs, self.unmeasured = {}, 0, None      # scored: seq -> id of the call
        self.asked, self.missed, self.pairs = 0, 0, []

    def add(self, run):
        self.asked, self.missed = self.asked + run.data["asks"], self.missed + run.rescored.missed
        self.pairs, self.unmeasured = self.pairs + run.rescored.pairs, None


class AskedRun:
    """A run that asks a model for something else than scores; `data` is what it says of the model."""

    def __init__(self, experiment, opened, purpose):
        self.experiment, self.data, self.key, self.purpose = experiment, opened["asked"], opened["key"], purpose
        self.holds = self.settled = self.cost_since = self.settled_since = 0
        self.is_over, self.hold, self.last = False, None, None     # hold: [name, amount, calls left]

    def next_hold(self, name):
        return "%s/%d" % (name, self.holds)

    def last_of(self, place):
        return self.last if self.last and self.last["place"] == place else None

    def unpaid(self):
        return max(0, self.cost_since - self.settled_since)


class SynthRun:
    """A run of an optimizer that sees only cards."""

    def __init__(self, entry, data):
        self.experiment, self.seq, self.data = entry.experiment, entry.position, data
        self.asked = self.returned = self.dev_calls = 0
        self.end, self.inputs, self.view = None, [], None
        self.released, self.valid, self.views, self.proposed = set(), set(), set(), {}    # family -> patch


class Seal:
    """One sealed label."""

    def __init__(self, seq, data):
        self.seq, self.commitment, self.reveal_by = seq, data["commitment"], micros(data["reveal_by"])
        self.envelope = sha256(decode_base64(data["envelope"])).hex()
        self.revealed = False


class Split:
    """A split that is being listed: per part the right edge of its tree, its count and its last cluster."""

    def __init__(self, name, by):
        self.name, self.by, self.parts = name, by, {part: Tree() for part in PARTS}
        self.last = dict.fromkeys(PARTS)

    def push(self, part, cluster):
        self.parts[part].append(sha256(b"\0", length_prefixed(cluster)))
        self.last[part] = cluster


def row_of_draw(policy, item, draw):
    """The name of a draw as a row of a design."""
    return "%s/%s/%d" % (policy.replace("%", "%25").replace("/", "%2F"), item, draw)


def draw_of_row(row):
    """(policy, item, draw) of a row `policy/item/draw`, or None for a row of another form."""
    match = re.fullmatch("([^/]+)/(.+)/(0|[1-9][0-9]{0,15})", row, re.ASCII)
    if not match or int(match[3]) > SAFE_INTEGER:
        return None
    policy = match[1].replace("%2F", "/").replace("%25", "%")
    draw = (policy, match[2], int(match[3]))
    return draw if row_of_draw(*draw) == row else None


class Family:
    """A family of gates that share an error rate."""

    def __init__(self, data):
        self.method, self.alpha, self.most = data["method"], data["alpha_micro"], data["members_max"]
        self.members, self.gamma, self.joined = data.get("members"), data.get("gamma_micro", []), {}
        self.held = []                            # members whose claim was decided to hold


class Version:
    """One version of a manifest; it binds once its custodian has countersigned, where that is needed."""

    def __init__(self, entry, data, amendment):
        self.author, self.digest, self.manifest = entry.author, data["digest"], data["manifest"]
        self.h0, self.amendment, self.seq, self.since = data["h0_digest"], amendment, entry.position, entry.position
        self.needs = "data" in self.manifest and (amendment is None or amendment == 1 or amendment >= 3)
        self.countersigned, self.countersigned_by = False, None


class Block:
    """A confirm block whose labels are shown in order: how many clusters, which was last, and the last look."""

    def __init__(self, every):
        self.every, self.units, self.last, self.looked, self.root = every, 0, None, None, None

    def stops(self):
        return [one["test"]["stop"] for one in self.looked[1]["hypotheses"]] if self.looked else ["continue"]

    def settled(self):
        return "continue" not in self.stops()

    def saves(self):
        return self.settled() and "crossed" not in self.stops()

    def seen(self):
        return self.looked[1]["units"] if self.looked else 0

    def whole(self):
        """Every label is shown, and no test waits for a further look."""
        done = self.looked and (self.seen() == self.looked[1]["of_units"] or self.settled() and not self.saves())
        return bool(done) and self.units == self.looked[1]["of_units"]


class Iteration:
    """One iteration: what it was opened on, its patches as [hash, whether it stands], whether a label was seen."""

    def __init__(self, entry, data):
        self.experiment, self.opened = entry.experiment, entry.position
        self.digest, self.rubric_hash = data["digest"], data["rubric_hash"]
        self.candidates, self.closed, self.unsealed = {}, None, None
        self.patches, self.params_hash = {}, data["params_hash"]
        self.authors = {}                         # patch -> who proposed it
        self.places, self.reviews = {}, {}        # patch -> where it was; patch -> {key: (outcome, seq)}
        plan = data["params"].get("sequential") if data["params"]["confirm_test"] == "sequential" else None
        self.block = Block(plan["look_every"]) if plan else None


class Attacked:
    """The batteries of an iteration, whether or not its opening could be read."""

    def __init__(self):
        self.batteries, self.in_force, self.stress = {}, None, {}   # candidate -> (seq, id, data); of the rubric


# What every optimizer may know, by the SHA-256 of its name.
GRAMMARS = [sha256(name).hex() for name in (b"clover-patch/1", b"clover-rubric/1", b"evidence/1")]


class Decisions:
    """What was decided in one iteration: (seq, id, …) of what happens once, and gates by (candidate, split, gate)."""

    def __init__(self):
        self.audited = self.classified = self.paused = self.sealed = self.unsealed = None
        self.accepted, self.gates = [], {}
        self.calibrators = {}                     # by candidate, None for the rubric in force
        self.recomputed = {}                      # candidate -> where its scores were recorded
        self.published, self.receipts, self.tainted = set(GRAMMARS), [], None


class Acceptance:
    """One accepted patch, and the newest word of each key about it as (granted, meaning, id, seq)."""

    def __init__(self, entry, data, patch):
        self.experiment, self.seq, self.gates = entry.experiment, entry.position, data["gates"]
        self.iteration, self.patch, self.diff = data["iteration"], data["patch"], patch["diff"] if patch else []
        self.words = {}

    def approvals(self):
        granted = [word for word in self.words.values() if word[0] and word[1] == "approve"]
        return [word[2] for word in sorted(granted, key=lambda word: word[3])]


class Run:
    """A run of a generator: what it said when it was opened, questions asked, its validation, its rollback."""

    def __init__(self, entry, data):
        self.data, self.seq, self.used, self.validated, self.rolled_back = data, entry.position, 0, None, False

    def state(self):
        if self.rolled_back:
            return "rolled back"
        if self.validated is None:
            return "open"
        return "validated" if self.validated[1] == "pass" else "rollback due"


class Deploys:
    """What runs in one experiment, and what it may stand on.

    A deployment is [id, data, previous, where it was rolled back, seq].
    """

    def __init__(self):
        self.active = self.checked = None         # id; (id, breach, seq) of the newest check
        self.all, self.calibrators, self.models = [], {}, {}
        self.fits = {}                            # judge, calibrator -> seq and rubrics of its fits
        self.recalibrations, self.transports = {}, {}
        self.runs = {}                            # run -> Run of a generator

    def get(self, id_):
        return next((one for one in self.all if one[0] == id_), None)

    def before(self):
        running = self.get(self.active)
        return self.get(running[2]) if running else None


class Record:
    """One manifest with its versions, oldest first."""

    def __init__(self, experiment, version):
        self.experiment, self.versions = experiment, [version]
        self.first_look = self.plan = self.superseded_by = self.through = None
        self.first_probe = None                   # of a plan of audits: the first open probe that no audit had used
        self.exposures = self.units = 0
        self.exposed, self.deviations = [], []    # (units by then, seq), and (whether an outcome had been seen, seq)
        self.reveal_by = self.revealed_at = None
        self.handled = []                         # deviations on the judge: (seq, last entry that they knew of)

    def version(self, digest):
        return next((version for version in self.versions if version.digest == digest), None)

    def in_force(self):
        return next((v for v in reversed(self.versions) if v.countersigned or not v.needs), None)

    def bound(self):
        """The version that last set what is tested, on what and with whom."""
        standing = [v for v in self.versions if v.countersigned or not v.needs]
        return next((v for v in reversed(standing) if v.amendment is None or v.amendment >= 3), None)

    def look(self, position):
        if self.first_look is None:
            self.first_look = position


def alpha_of(manifest):
    """The error rate that a manifest takes from its family."""
    for section in ("test", "transport", "iteration"):
        if section in manifest:
            return manifest[section]["alpha_micro"]
    return 0


class Gate:
    """One gate: what was observed, the last look, and how it ended."""

    def __init__(self, entry, data):
        self.experiment, self.sources, self.test = entry.experiment, data["sources"], data["test"]
        self.opened = entry.position
        self.n, self.streams, self.strata = 0, [[] for _ in data["sources"]], []
        self.rests = {}                           # keys that signed what it rests on -> their last entry
        self.absent = []                          # missing draws of the main metric of each unit
        self.state = labelled(b"clover/gate-state/v1", [entry.experiment, data["gate"]])
        self.last = self.decided = self.carried = self.parent = self.child = self.first_look = None

    def reads(self, entry):
        """Whether its values may come from this entry."""
        field = {"score.recorded": "judge", "label.revealed": "design"}.get(entry.kind)
        return (field is not None and self.decided is None and self.experiment == entry.experiment
                and any(source.get(field) == entry.data[field] for source in self.sources))

    def unlooked(self):
        """Whether units were observed after its last look."""
        return self.n > (self.last["n"] if self.last else 0)

    def evidence(self, n_min):
        """Log e as its family counts it: more than 0 only from n_min units on, with no unit after the look."""
        trivial = self.log_e() > 0 and (n_min is None or self.n < n_min or self.unlooked())
        return 0 if trivial else self.log_e()

    def terminal(self):
        return self.decided is not None or self.last is not None and self.last["standing"] in OUTCOMES

    def log_e(self):
        return self.last["log_e"] if self.last else 0
