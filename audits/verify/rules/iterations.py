"""Rules of iterations, and of the steps on fit and dev before candidates are sealed (`schema/PREDICATE.md`)."""

from events.commitments import composite_of, labelled
from history.records import Decisions, quarter_of
from rules.manifests import signer_problem, supersession


def rule_iteration(state, e):
    if e.kind == "anchor_set.registered":
        high, low = e.data["high"], e.data["low"]
        if high["policy"] == low["policy"]:
            return "two policies", "%s twice" % high["policy"]
        few = min(high["count"], low["count"])
        return None if few >= 200 else ("at least 200 rows of each policy", str(few))
    if e.kind == "iteration.opened":
        return iteration_opened_problem(state, e)
    if e.kind == "manifest.amended":
        record_, name = state.manifests.get(e.data["manifest"]["manifest"]), None
        if record_ and record_.experiment is not None:
            name = state.open_iteration(record_.experiment)
        version = name and record_.version(state.iterations[name].digest)
        if version and version.manifest.get("iteration") != e.data["manifest"].get("iteration"):
            return "the parameters of %s, which is open" % name, "others (E_UNREGISTERED_RULE)"
        return None
    if e.kind not in ("iteration.closed", "patch.proposed", "patch.rejected", "patch.withdrawn"):
        return None
    name = (e.data["terms"]["iteration"] if "terms" in e.data else e.data)["iteration"]
    it = state.iterations.get(name)
    if it is None or it.experiment != e.experiment:
        return "an open iteration of %s" % e.experiment, "%s, never opened" % name
    if it.closed is not None:
        return "an open iteration of %s" % e.experiment, "%s, closed at seq %d" % (name, it.closed)
    if e.kind == "iteration.closed":
        outcome = e.data["outcome"]
        if outcome == "no_candidate" and it.unsealed is not None:
            return "no peek spent on an iteration without candidate", "a label unsealed at seq %d" % it.unsealed
        if outcome == "none_accepted" and it.unsealed is None:
            return "labels unsealed before every patch is refused on them", "none"
        return None
    if e.kind != "patch.rejected" and it.unsealed is not None:
        return "%s before any label was unsealed" % e.kind, "one unsealed at seq %d" % it.unsealed
    if e.kind != "patch.proposed" and "patch" in e.data and not it.candidates.get(e.data["patch"], [None, False])[1]:
        return "a candidate of %s that stands" % name, e.data["patch"]


def iteration_opened_problem(state, e):
    record_ = state.of_digest(e.data["digest"])
    if not record_ or record_.experiment != e.experiment:
        return "the digest of a manifest of this experiment", e.data["digest"]
    if record_.superseded_by:
        return supersession(record_)
    current = record_.in_force()
    if not current or current.digest != e.data["digest"]:
        return "the version in force", "%s (E_STALE_VERSION)" % e.data["digest"]
    plan = current.manifest.get("iteration", {})
    if "design" not in plan:
        return "a manifest with iteration.design", "none"
    design, params_hash = plan["design"], labelled(b"clover/iteration/v1", plan)
    none_claimed = design.get("no_environment_claimed", False)
    if state.asks("claimed_environments") and not design["environments"] and not none_claimed:
        return "a plan that names environments, or says no_environment_claimed", "neither"
    if e.data["params"] != plan:
        return "params as registered, %s" % params_hash, "others (E_UNREGISTERED_RULE)"
    for name, expected in (("params_hash", params_hash), ("rubric_hash", design["rubric_hash"])):
        if e.data[name] != expected:
            return "%s %s" % (name, expected), e.data[name]
    problem = signer_problem("arbiter", current.manifest, e.author)
    if problem:
        return problem
    head = state.heads.get(e.experiment)
    if head is None or head[1] != e.data["rubric_hash"]:
        return "the rubric in force, %s" % (head[1] if head else "none"), e.data["rubric_hash"]
    if "anchors" in design and (e.experiment, design["anchors"]) not in state.anchors:
        return "a registered anchor set", design["anchors"]
    if e.data["iteration"] in state.iterations:
        return "an iteration id that is not used yet", e.data["iteration"]
    name = state.open_iteration(e.experiment)
    if name is not None:
        return "no open iteration", "%s, opened at seq %d" % (name, state.iterations[name].opened)
    quarter = quarter_of(e.recorded_text)
    if e.data["quarter"] != quarter:
        return "quarter %s" % quarter, e.data["quarter"]
    account = state.accounts.get(design["peek_account"])
    if account is None:
        return "an account %s" % design["peek_account"], "none"
    if account.period != "quarter" or account.amount > 3:
        return "an account with at most 3 peeks each quarter", str(account.amount)
    if state.asks("peek_account") and account.spenders & {"optimizer", "meta_optimizer"}:
        return "an account that no optimizer spends from", ", ".join(sorted(account.spenders))
    if account.spent.get(account.period_of(e.recorded_text), 0) >= account.amount:
        return "a peek left in %s in %s" % (design["peek_account"], quarter), "none"


STEPS = {"label_process.audited": "an audit", "prentice.checked": "a check", "residuals.audited": "an audit",
         "slices.classified": "a classification", "card.published": "a card", "iteration.paused_for_labels": "a pause",
         "gate.evaluated": "a gate", "candidates.sealed": "a sealing", "dev.objective_queried": "a dev call",
         "calibrator.fitted": "a calibrator", "oua.estimated": "an estimate", "coverage.checked": "a check",
         "scores.recomputed": "scores"}
DEV_GATES = tuple("p%d" % gate for gate in range(8))
CONFIRM_GATES = ("p4", "p6", "p8", "p9", "p10")


def live_iteration(state, e):
    """(iteration, decisions, None), or (None, None, problem) where it is not open."""
    name = (e.data["terms"]["iteration"] if "terms" in e.data else e.data)["iteration"]
    it = state.iterations.get(name)
    if it is None or it.experiment != e.experiment:
        return None, None, ("an open iteration of %s" % e.experiment, "%s, never opened" % name)
    if it.closed is not None:
        return None, None, ("an open iteration of %s" % e.experiment, "%s, closed at seq %d" % (name, it.closed))
    return it, state.decisions.get(name, Decisions()), None


def paused_problem(e, decided):
    if decided.paused:
        what = STEPS[e.kind]
        return "%s in an iteration that goes on" % what, "one paused for labels at seq %d" % decided.paused[0]


def unsealed_problem(it, decided, what):
    seq = decided.unsealed[0] if decided.unsealed else it.unsealed
    if seq is not None:
        return "%s before confirm was unsealed" % what, "unsealed at seq %d" % seq


def rule_predicate(state, e):
    if e.kind not in STEPS or e.kind == "candidates.sealed" or e.experiment is None:
        return None
    if "terms" in e.data and "iteration" not in e.data["terms"]:
        return None
    it, decided, problem = live_iteration(state, e)
    problem = problem or paused_problem(e, decided)
    if problem:
        return problem
    frozen = decided.classified
    if e.kind == "gate.evaluated":
        return gate_problem(state, e, it, decided)
    if e.kind == "calibrator.fitted":
        return fitted_problem(e, it, decided)
    if e.kind in ("oua.estimated", "coverage.checked") and e.data["calibrator"] != decided.calibrators.get(None):
        return "the calibrator of the rubric in force, fitted first", e.data["calibrator"]
    if e.kind == "dev.objective_queried":
        return dev_call_problem(state, e, it, decided)
    if e.kind == "scores.recomputed":
        return recomputed_problem(state, e, it, decided)
    if e.kind == "card.published":
        problem = unsealed_problem(it, decided, "a card") if frozen else ("slices.classified first", "none")
        return problem or card_problem(e, it, decided)
    if e.kind == "iteration.paused_for_labels":
        if e.data["share"] < 0.3:
            return "a share of at least 0.3", str(e.data["share"])
        if not frozen:
            return "slices.classified first", "none"
        return ("a pause before sealing", "sealed at seq %d" % decided.sealed[0]) if decided.sealed else None
    if e.kind == "slices.classified":
        if not decided.audited:
            return "residuals.audited first", "none"
        expected = labelled(b"clover/classification/v1", e.data["slices"])
        if e.data["classification_hash"] != expected:
            return "classification_hash %s" % expected, e.data["classification_hash"]
    return ("an audit before slices were classified", "classified at seq %d" % frozen[0]) if frozen else None


def card_problem(e, it, decided):
    """A card is named by its digest, and says what it was computed on: the iteration, its rubric, its calibrator."""
    card = e.data["card"]
    digest, basis = labelled(b"clover/card/v1", card), card.get("basis")
    if e.data["public_digest"] != digest:
        return "public_digest %s" % digest, e.data["public_digest"]
    if basis is None:
        return ("a card with its basis", e.data["build"]) if "build" in e.data else None
    if "build" not in e.data:
        return "the build of a card with a basis", "none"
    if basis["iteration"] != e.data["iteration"]:
        return "a card of %s" % e.data["iteration"], basis["iteration"]
    if basis["rubric_hash"] != it.rubric_hash:
        return "rubric_hash %s" % it.rubric_hash, basis["rubric_hash"]
    calibrator = decided.calibrators.get(None, basis["calibrator"])
    if basis["calibrator"] != calibrator:
        return "the calibrator fitted first, %s" % calibrator, basis["calibrator"]


def recomputed_problem(state, e, it, decided):
    """Scores under a candidate, once, before a calibrator is fitted on them, of every row that was read."""
    candidate, rows = e.data["candidate"], e.data["inputs"]["rows"]
    if candidate in decided.recomputed:
        return "scores under a candidate once", "recorded at seq %d" % decided.recomputed[candidate]
    if candidate in decided.calibrators:
        return "scores before the calibrator that is fitted on them", decided.calibrators[candidate]
    anew = "judge" in e.data and state.asks("rescored_anew")
    if not anew and e.data["recomputed"] + e.data["rescored"] < rows:
        return "a score of each of %d rows at least" % rows, str(e.data["recomputed"] + e.data["rescored"])
    if not decided.classified:
        return "slices.classified first", "none"
    standing = [patch for patch, stands in it.candidates.values() if stands]
    known = standing + [composite_of([a, b]) for a in standing for b in standing]
    problem = unsealed_problem(it, decided, "scores")
    return problem or (None if candidate in known else ("a patch that stands, or a composite of two", candidate))


def fitted_problem(e, it, decided):
    """One calibrator of the rubric in force, before slices are classified by it; then one of each candidate."""
    terms, frozen = e.data["terms"]["iteration"], decided.classified
    candidate = terms.get("candidate")
    if candidate in decided.calibrators:
        return "one calibrator of each candidate", decided.calibrators[candidate]
    if candidate is None:
        if frozen:
            return "an audit before slices were classified", "classified at seq %d" % frozen[0]
        same = terms["rubric_hash"] == it.rubric_hash
        return None if same else ("rubric_hash %s" % it.rubric_hash, terms["rubric_hash"])
    if None not in decided.calibrators:
        return "the calibrator of the rubric in force first", "none"
    if not frozen:
        return "slices.classified first", "none"
    standing = [patch for patch, stands in it.candidates.values() if stands]
    known = standing + [composite_of([a, b]) for a in standing for b in standing]
    problem = unsealed_problem(it, decided, "a calibrator")
    return problem or (None if candidate in known else ("a patch that stands, or a composite of two", candidate))


def dev_call_problem(state, e, it, decided):
    if not decided.classified:
        return "slices.classified first", "none"
    problem = unsealed_problem(it, decided, "a dev call")
    if problem or decided.sealed:
        return problem or ("a dev call before sealing", "sealed at seq %d" % decided.sealed[0])
    key = state.keys.get(e.data["requester"])
    if key is None or key.ended or "optimizer" not in key.roles:
        return "a requester with a live key in role optimizer", e.data["requester"]
    if [of["gate"] for of in e.data["answers"]] != list(DEV_GATES):
        return "answers of p0 to p7 in order", "others"
    plan, made = state.plan_of(it), state.dev_calls_made(e.data["iteration"])
    if not plan or "design" not in plan:
        return "a manifest that says how often dev is called", "none"
    if made >= plan["design"]["dev_calls_max"]:
        return "at most %d dev calls, as registered" % plan["design"]["dev_calls_max"], "%d made before" % made


def taint_problem(state, e, decided):
    """What taints the iteration: a patch from unpublished inputs, or a read that an optimizer may not have."""
    read = state.taints.get(e.experiment)
    found = decided.tainted or (read and read[2] == "optimizer" and "tainted by the read at seq %d" % read[0])
    return ("an iteration that is not tainted", found) if found else None


def left_out_environment(state, plan, data):
    """P6 is about what the plan claims: its required environments are there, and none is claimed only where it says so."""
    found = data["evidence"].get("p6")
    if found is None or not state.asks("claimed_environments"):
        return None
    design = plan.get("design", {})
    claimed = design.get("no_environment_claimed", False)
    if found.get("none_claimed", False) != claimed:
        return "none_claimed as the plan says, %s" % str(claimed).lower(), str(not claimed).lower()
    tested = {(of["family"], of["environment"]) for of in found["environments"] if of["required"]}
    for of in design.get("environments", []):
        if of["required"] and (of["family"], of["environment"]) not in tested:
            return "the required environment %s of %s" % (of["environment"], of["family"]), "none"


def gate_problem(state, e, it, decided):
    data, evidence = e.data, next(iter(e.data["evidence"]))
    if evidence != data["gate"]:
        return "evidence of gate %s" % data["gate"], "of %s" % evidence
    gates = CONFIRM_GATES if data["split"] == "confirm" else DEV_GATES
    if data["gate"] not in gates:
        return "one of %s on %s" % (" ".join(gates), data["split"]), data["gate"]
    if not decided.classified:
        return "slices.classified first", "none"
    if data["classification_hash"] != decided.classified[2]:
        return "the frozen classification %s" % decided.classified[2], data["classification_hash"]
    if data["params_hash"] != it.params_hash:
        return "params_hash %s, as opened" % it.params_hash, data["params_hash"]
    plan = state.plan_of(it)
    if not plan:
        return "a manifest with the parameters of its iteration", "none"
    if data["thresholds"] != thresholds_of(plan):
        return "the registered thresholds", "others (E_UNREGISTERED_RULE)"
    problem = left_out_environment(state, plan, data)
    if problem:
        return problem
    both = [decided.calibrators.get(None), decided.calibrators.get(data["candidate"])]
    expected = dict(zip(("baseline", "candidate"), both)) if all(both) else None
    if data.get("calibrators") != expected:
        return "calibrators %s, as fitted" % expected, str(data.get("calibrators"))
    if data["split"] == "dev":
        standing = [patch for patch, stands in it.candidates.values() if stands]
        known = standing + [composite_of([a, b]) for a in standing for b in standing]
        problem = unsealed_problem(it, decided, "a gate on dev")
        return problem or (None if data["candidate"] in known else ("a patch that stands", data["candidate"]))
    if not decided.unsealed:
        return "confirm.unsealed before a gate on confirm", "none"
    sealed = [one["candidate"] for one in decided.sealed[2]] if decided.sealed else []
    if data["candidate"] not in sealed:
        return "a sealed candidate", data["candidate"]
    return (block_problem(it, data) if it.block else None) or left_out_problem(state, e)


def left_out_problem(state, e):
    """A gate on confirm reads every label of its block."""
    if not state.asks("confirm_rows"):
        return None
    sealed, revealed, _ = state.blocks.get(e.experiment, (0, 0, 0))
    if sealed == 0:
        return "a confirm block with sealed labels", "none"
    if sealed != revealed:
        return "a gate on all %d sealed labels of the confirm block" % sealed, "%d of them revealed" % revealed


def block_problem(it, data):
    """Gates on confirm stand on the whole block, and P8 on how the test ended at the looks."""
    block = it.block
    if not block.whole():
        return "a gate on the whole confirm block", "%d clusters shown" % block.units
    if data["gate"] != "p8":
        return None
    tests = {one["candidate"]: one["test"] for one in block.looked[1]["hypotheses"]}
    if tests.get(data["candidate"]) != data["evidence"]["p8"].get("sequential"):
        return "the test as at seq %d" % block.looked[0], "other numbers"


def thresholds_of(plan):
    """The thresholds that a plan fixes for P0 to P10."""
    same = ("alpha_micro", "confirm_test", "drift_max_micro", "ece_slack_micro", "eta_micro", "ks_max_micro", "profile",
            "q_micro", "shift_metric", "tau_micro", "uplift_max_micro", "w1_max_micro")
    return dict({name: plan[name] for name in same}, style_max_micro=20_000,
                hypotheses=max(plan["hypotheses_max"], len(plan["patch_families"])),
                must_not_regress=plan.get("design", {}).get("must_not_regress", "literal"))


def lets_pass(state, e, said, gate):
    """A pass does; what nobody could check does if two keys answered for it before the splits were formed; transport does
    where the plan claims no environment."""
    verdict = said[2]
    if gate == "p6" and verdict == "not_checked":
        plan = state.plan_of(state.iterations[e.data["iteration"]]) or {}
        return bool(plan.get("design", {}).get("no_environment_claimed"))
    code = {"p0": "CLOVER.J2", "p7": "ADV"}.get(gate)
    if verdict == "pass" or verdict != "not_checked" or code is None:
        return verdict == "pass"
    granted = state.granted.get((e.experiment, code))
    formed = max(state.formed.get(e.experiment, {}).values(), default=None)
    return bool(granted and formed is not None and granted[0] < formed and granted[1] > e.recorded_at)


def stopped_by(state, e, decided, candidate, split):
    """The first gate that keeps a candidate from passing, or None."""
    for gate in CONFIRM_GATES if split == "confirm" else DEV_GATES:
        said = decided.gates.get((candidate, split, gate))
        if said is None:
            return "%s not evaluated on %s" % (gate, split)
        if not lets_pass(state, e, said, gate):
            return "%s %s at seq %d" % (gate, said[2], said[0])
