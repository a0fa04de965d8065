"""What the log says before one entry: all that a rule may look at beside the entry itself."""

from array import array
from collections import Counter

from formats.ed25519 import Ed25519
from formats.tree import Tree
from formats.characters import skeleton
from formats.fields import decode_base64
from events.shapes import OPTIMIZER_READS
from history.environments import inside, scope_key, withholding
from history.looks import Looks
from history.newest import Entries
from history.rulebooks import QUESTIONS, RULEBOOK_UNNAMED
from history.records import Deploys, Key


class State:
    """What the log says before one entry: all that the rules may look at beside the entry itself."""

    def __init__(self, blobs):
        self.begin_log(blobs)
        self.begin_keys()
        self.begin_labels()
        self.begin_claims()
        self.begin_gates()
        self.begin_iterations()

    def begin_log(self, blobs):
        self.ed25519, self.blobs, self.tree = Ed25519(), blobs, Tree()
        self.origin = self.format = None          # unknown until a readable ledger.created stands at seq 0
        self.rulebooks = []                       # (seq, version): each judges the entries after seq
        self.log_keys = []                        # (seq, parsed vkey), the first from ledger.created
        self.times = array("q")                   # recorded_at of each line; an unreadable line has its predecessor's
        self.last_recorded = None                 # (microseconds, text) of the last readable line
        self.ids, self.natural_keys = set(), set()
        self.values = {}                          # natural key -> (seq, value) where gates read it
        self.newer = []                           # entries with ids beyond Unicode 13.0 that no rule asked about
        self.unread = []                          # entries with documents beyond the YAML that is read here
        self.attestations = []                    # (seq, size, root)

    def begin_keys(self):
        """Keys, experiments and budgets."""
        self.strict, self.keys = False, {}
        self.was_strict = False                   # whether `strict` was ever in force
        self.signers, self.compromised = set(), {}      # ids of keys; -> seq since which
        self.next_number, self.last_seen, self.seqs_of = {}, {}, {}
        self.experiments = {}                     # -> seq of the end, or None
        self.accounts, self.charges = {}, {}      # by name; id of a charge -> seq
        self.peeks = {}                           # charges to accounts of peeks -> account
        self.patch_charges = {}                   # charges to accounts of patches -> (quarter, or once; account)
        self.paid_patches = {}                    # those that paid for a patch -> its seq
        self.paid_for = {}                        # charge -> (experiment, design)
        self.endpoints, self.prices, self.runs, self.asked_runs = {}, {}, {}, {}     # models behind HTTP, by name
        self.holds = {}                           # hold -> (account, period, amount)
        self.again = {}                           # asks that may be asked again -> number of the last call
        self.calls = {}                           # id of a call -> (experiment, judge, outcome, texts, score)
        self.noise = {}                           # (experiment, judge) -> JudgeNoise
        self.missed = {}                          # (experiment, judge, policy, item, draw) -> how often
        self.missed_with = {}                     # the same -> (x_hash, a_hash) of each miss
        self.asked = {}                           # (experiment, judge, x_hash, a_hash) -> keys of its asks
        self.synths = {}                          # runs of optimizers by name
        self.descents = {}                        # runs that lower the loss of a prompt, by name
        self.calibrating = {}                     # experiment -> seq of its newest label for calibration
        self.registrations = {}                   # experiment -> id of its registration
        self.repairs, self.library, self.triggers, self.updates = {}, {}, {}, {}     # repairs of workflows
        self.crossed_plans = {}                       # repairs in sixteen cells, by name
        self.truth_readers, self.opened_inputs = set(), set()      # keys that read a truth; inputs whose truth was
        self.told = {}                            # experiment -> judge that is told a prompt -> row -> [score, misses, reason]
        self.judged = set()                       # keys that signed a score or a label
        self.passing = {}                         # iteration -> candidates that the dev objective lets be proposed

    def begin_labels(self):
        """Designs and labels by (experiment, design); splits, and what was seen, by experiment."""
        self.designs, self.first_label = {}, {}   # purpose; seq of the first label
        self.stratified = set()   # experiments with a design for calibrate that has strata
        self.design_seqs, self.protocols = {}, {}
        self.first_open, self.probes = {}, {}     # seq of the first label that could be seen; those of unused probes
        self.probed = {}                          # (experiment, design) of audits -> policies that it has labels of
        self.probe_designs = {}                   # (experiment, row) -> designs under which it is an open probe, in order
        self.shared_open = {}                     # (experiment, design) -> first open probe of designs that share one
        self.said_of = {}                         # (experiment, row, rater) -> {design: value} of labels for calibration
        self.uneven = set()                       # (experiment, design) of audits that have strata
        self.open_probes = {}                     # experiment -> policy -> design -> rows with a label that can be read
        self.first_probe = {}                     # (experiment, policy, design) -> (seq, rows by judge, calibrated) then
        self.prompt_designs = {}                  # (experiment, policy, item) -> designs that it is a probe of
        self.families_probed = {}                 # (experiment, design) -> policies with scores at its first open probe
        self.scores_of = {}                       # experiment -> policy -> judge -> how many rows it scored
        self.calibrated_rows = {}                 # (experiment, policy) -> rows with a label for calibration
        self.inclusions = {}                      # (experiment, design) -> probability of a label, in millionths
        self.split_counts = {}                    # experiment -> split -> clusters of confirm, dev and fit
        self.late_scores = {}                     # (experiment, policy, design, judge) -> those scored only then
        self.first_readable, self.calibrated = {}, {}   # experiment -> seq of its first label; -> policy -> likewise
        self.late_fields, self.late_strata = {}, {}     # experiment -> field, or policy -> (label, import) that came after
        self.row_labels, self.judged_rows = {}, {}      # (experiment, policy) -> its prompts with a label that can be read;
                                                        # -> judge -> [rows that count, late ones -> (seq, of a new prompt)]
        self.late_unnamed = {}                    # experiment -> the same of an import that names no fields
        self.open_of, self.sealed_of, self.revealed_of = {}, {}, {}     # how many labels
        self.governed = set()                     # experiments with a registered design
        self.seals, self.accepted = {}, set()     # (experiment, design, row) -> seals; those that were accepted
        self.draws = {}                           # (experiment, row) -> what its labels serve
        self.splits, self.formed = {}, {}         # the Split being listed; split -> seq where formed
        self.open_clusters, self.confirm, self.placed = set(), set(), set()
        self.blocks = {}                          # [sealed, revealed, reveal_by] since its split
        self.split_since, self.windows = {}, {}   # seq of the newest split; [(t2, its text)]
        self.confirm_roots, self.first_outcome = set(), {}
        self.first_anchors = {}                   # experiment -> seq of its first anchor set
        self.scored = {}                          # id of a score.recorded -> its score
        self.label_scales, self.label_ranges = {}, {}   # experiment -> (low, high) as declared; least and greatest seen
        self.score_scales = {}                    # (experiment, judge) -> (low, high) as declared

    def begin_claims(self):
        """What claims rest on: protocols, waivers, conflicts, calibrators, audits, drift."""
        self.sdp, self.bridge = [], {}            # (version, effective_at, seq); kind -> (status, seq)
        self.waivers = {}                         # (experiment or None, code) -> (id, author, end)
        self.granted = {}                         # likewise -> (seq of the second key, end of the waiver)
        self.conflicts, self.taints = {}, {}      # experiment -> {what: seq}; -> (seq, class, role)
        self.held_back, self.known = set(), {}    # experiments; (holder, experiment) -> (seq, class, "optimizer")
        self.contradictions = {}                  # experiment -> (kind, seq) of the first; nothing takes it back
        self.looks = Looks()                      # looks at an order of policies
        self.fitted = set()                       # (experiment, judge, calibrator)
        self.labelled = {}                        # (experiment, judge, calibrator, policy, key) -> its labels in that fit
        self.newest_label = {}                    # (experiment, judge, key of the scope, calibrator) -> newest label
        self.on_terms = {}                        # (experiment, judge, key of the scope, terms) -> first fit
        self.audited = {}                         # (experiment, design, policy, key of the scope) -> seq of its audit
        self.failed = {}                          # (experiment, judge, policy, key) -> (seq, prompts, labels in the fit)
        self.newest = {}                          # (experiment, judge, policy, key) -> (calibrator, seq, state)
        self.environments = {}                    # (experiment, judge) -> key of the scope -> Environment
        self.families_tested = set()              # (experiment, design, family)
        self.newest_entries = {}                  # experiment -> Entries
        self.local = {}                           # (experiment, judge, key of the scope, calibrator) -> labels
        self.judges = {}                          # experiment -> judge -> (as registered, scores since)
        self.scored_at = {}                       # experiment -> judge -> row -> seq of its score
        self.prompts = {}                         # experiment -> judge -> policy -> draw -> items with a score
        self.compared = set()                     # (experiment, two judges) of comparisons that a plan named
        self.anew = {}                            # (iteration, candidate) -> judge that was asked anew
        self.drifts = {}                          # (experiment, judge) -> (newest failed check, if the newest failed)

    def begin_gates(self):
        """Manifests, families, units and gates."""
        self.manifests, self.families = {}, {}
        self.exposed = {}                         # confirm root -> seq of its first exposure
        self.fixed = None                         # newest entry that fixes what an order or a sample is drawn for
        self.beacons, self.waiting = {}, []       # seq -> first checkpoint named above it, and seqs without one
        self.label_beacons = {}                   # experiment -> [its newest label, first checkpoint named above it or None]
        self.units, self.unit_names = {}, set()   # (experiment, root) -> [tree, last unit]; (experiment, root, unit)
        self.strata, self.stratum_of = {}, {}     # (experiment, root) -> units by stratum; with a unit -> its stratum
        self.orders, self.placed_units = {}, set()      # digest -> [tree, last unit]; (digest, place, unit)
        self.ordered, self.drawn = {}, {}         # unit -> seq of its first order; digest -> (seq, order.drawn)
        self.gates_by_id, self.closed, self.promotions = {}, {}, {}

    def begin_iterations(self):
        """Rubrics, iterations and releases."""
        self.rubrics = {}                         # experiment -> {hash: (version, leaves)}, in order of registration
        self.rubric_ids = {}                      # (experiment, id) -> (hash, seq)
        self.heads = {}                           # experiment -> (id, hash)
        self.anchors, self.iterations, self.patch_ids = set(), {}, set()
        self.decisions, self.attacked = {}, {}    # by iteration
        self.exploits = Counter()                 # experiment -> how many
        self.peek_charges, self.spent_roots = {}, {}    # -> seq of the confirm.unsealed
        self.unsealings = Counter()               # by quarter
        self.acceptances, self.commits = {}, {}   # id -> Acceptance; id -> (iteration, id of the acceptance)
        self.parents, self.deploys = {}, {}       # id of a commit -> its parent; by experiment

    def rulebook(self):
        return self.rulebooks[-1][1] if self.rulebooks else RULEBOOK_UNNAMED

    def asks(self, question):
        """Whether the rulebook in force asks this question of the next entry."""
        return self.rulebook() >= QUESTIONS[question]

    def signer(self, entry):
        """The key that must have signed; ledger.created brings its own."""
        if entry.creates():
            owner = entry.data["owner"]
            return Key(decode_base64(owner["public_key"]), owner)
        return self.keys.get(entry.author)

    def person(self, holder):
        """The name under which the roles of a holder are counted: spellings that look alike are one person."""
        return skeleton(holder) if self.asks("one_spelling") else holder

    def live_roles(self, holder):
        return frozenset().union(*(k.roles for k in self.keys.values() if k.holder == holder and not k.ended))

    def roles_of(self, person, ever):
        """Roles of a person's live keys; with `ever`, of those that ended too."""
        keys = (k for k in self.keys.values() if ever or not k.ended)
        return frozenset().union(*(k.roles for k in keys if self.person(k.holder) == person))

    def live_owners(self):
        return [key_id for key_id, key in self.keys.items() if "owner" in key.roles and not key.ended]

    def entries(self, experiment):
        """The newest entries of an experiment."""
        return self.newest_entries.setdefault(experiment, Entries())

    def standing(self, e, policy=None):
        """The audit that stands for or against an estimate.

        That is a failure of its policy, the failed test of an environment that withholds its level, or the newest audit of
        this very calibrator."""
        scope = e.data["terms"].get("environment")
        key = (e.experiment, e.data["terms"]["judge"], policy or e.data["policy"], scope_key(scope))
        if key in self.failed:
            return {"seq": self.failed[key][0], "state": "fail"}
        calibrator, seq, state = self.newest.get(key, (None, 0, "fail"))
        same = calibrator is not None and calibrator == e.data.get("calibrator") and state != "fail"
        own = {"seq": seq, "state": state} if same else None
        found = self.environments.get(key[:2], {})
        if scope is None:
            return withholding(found) or own
        return withholding(found, scope) or inside(found.get(scope_key(scope)), e.data.get("calibrator"), own)

    def against(self, e, judge, policy):
        """The failed audit that stands against a policy, whatever the calibrator."""
        failed = self.failed.get((e.experiment, judge, policy, ()))
        if failed is None:
            return withholding(self.environments.get((e.experiment, judge), {}))
        return {"seq": failed[0], "state": "fail"}

    def opened(self, experiment, design):
        """The entry by which a probe of a design was open; from rulebook 22 on one of a design that shares a probe counts."""
        key = (experiment, design)
        found = [self.first_open.get(key)] + ([self.shared_open.get(key)] if self.asks("one_probe") else [])
        return min((seq for seq in found if seq is not None), default=None)

    def patch_account(self, it):
        """The account that pays for accepted patches: the plan's, else the first; never one that an optimizer charges."""
        named = (self.plan_of(it) or {}).get("design", {}).get("patch_account")
        mine = (name for name, of in self.accounts.items() if of.unit == "patch" and named in (None, name)
                and not of.spenders & {"optimizer", "meta_optimizer"})
        return named, next(mine, None)

    def in_block(self, experiment, design):
        """[sealed, revealed, reveal_by] of the confirm block that a design belongs to, or None."""
        return self.blocks.get(experiment) if self.designs.get((experiment, design)) == "confirm" else None

    def labels_of(self, experiment, design):
        """What a charge pays for: labels of a design, or those of an experiment's confirm block."""
        return experiment, None if self.in_block(experiment, design) else design

    def of_digest(self, digest):
        """The manifest that has a version with this digest, or None."""
        named = (self.manifests[name] for name in sorted(self.manifests))
        return next((record_ for record_ in named if digest and record_.version(digest)), None)

    def gates(self, experiment):
        """Gate manifests of an experiment, by name."""
        return [self.manifests[name] for name in sorted(self.manifests)
                if self.manifests[name].experiment == experiment and experiment is not None
                and self.manifests[name].versions[0].manifest["template"] == "gate"]

    def sdp_in_force(self, now):
        return next((sdp for sdp in reversed(self.sdp) if sdp[1] <= now), None)

    def contradicted(self, experiment):
        """(kind, seq) of the entry since which the judge of an experiment contradicts itself, or None. It lasts from rulebook
        20 on; before, the newest re-score counts."""
        if self.asks("lasting_contradiction"):
            return self.contradictions.get(experiment)
        kinds = {"conflict": "score.conflict", "replay": "score.replayed"}
        seqs = [(seq, kinds[what]) for what, seq in self.conflicts.get(experiment, {}).items()]
        return min(seqs)[::-1] if seqs else None

    def barred(self, data):
        """The first role in which the reader may not read this class, or None."""
        key = self.keys.get(data["reader"])
        if key is None:
            return None
        roles = {data["role"]} if "role" in data else set(key.roles)
        ever = self.asks("reads_ever_held") and any(
            "optimizer" in other.roles for other in self.keys.values() if other.holder == key.holder)
        if self.strict and (ever or "optimizer" in self.live_roles(key.holder)):
            roles.add("optimizer")
        label = data["class"] == "label" or data["class"].startswith("label.")
        bars = {"optimizer": data["class"] not in OPTIMIZER_READS, "adversary": label, "verifier": label}
        return next((role for role in sorted(roles) if bars.get(role)), None)

    def deploys_of(self, experiment):
        return self.deploys.setdefault(experiment, Deploys())

    def proposed_in(self, experiment, patch):
        """The first iteration of an experiment in which a patch was proposed."""
        known = (self.iterations[name] for name in sorted(self.iterations))
        return next((it for it in known if it.experiment == experiment and patch in it.candidates), None)

    def open_iteration(self, experiment):
        """The name of the open iteration of an experiment, or None."""
        return next((name for name in sorted(self.iterations) if self.iterations[name].experiment == experiment
                     and self.iterations[name].closed is None), None)

    def reads(self, it):
        """The judge whose scores an iteration reads: the one that its plan names, else the only one with scores that stands
        for itself; None where there is no such judge."""
        named = (self.plan_of(it) or {}).get("design", {}).get("judge")
        known = self.judges.get(it.experiment, {})
        own = [judge for judge in self.scored_at.get(it.experiment, {}) if "of" not in known.get(judge, ({}, 0))[0]]
        return named or (own[0] if len(own) == 1 else None)

    def dev_calls_made(self, name):
        """Dev calls in an iteration, and from rulebook 26 on in every other on a version of its manifest."""
        it = self.iterations[name]
        plan = self.of_digest(it.digest) if self.asks("dev_calls_of_plan") else None
        names = [other for other, of in self.iterations.items()
                 if other == name or plan and plan.version(of.digest)]
        return sum(len(self.decisions[other].receipts) for other in names if other in self.decisions)

    def plan_of(self, it):
        """What the manifest of an iteration says of iterations, or None."""
        record_ = self.of_digest(it.digest)
        return record_ and record_.version(it.digest).manifest.get("iteration")
