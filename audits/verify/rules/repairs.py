"""The rule of runs that repair a workflow without ground truth (`schema/REPAIR.md`)."""

import json

from formats.canonical import encode
from formats.limits import ONE
from formats.tree import sha256
from rules import repair_cells, repair_claims, repair_feedback, repair_learning, repair_workflows
from rules.custody import name_problem
from rules.repair_workflows import labelled, read

RANGES = {"beam": (1, 32), "proposals": (1, 16), "iterations": (1, 50), "reruns": (0, 8), "stagnation": (1, 50),
          "theta_micro": (0, ONE), "least_gain_micro": (0, ONE)}
TEMPLATES = {"templates/1": "strong", "templates-weak/1": "weak"}
LEARNING = {
    "meta.triggered": repair_learning.triggered_problem, "meta.updated": repair_learning.updated_problem,
    "meta.validated": repair_learning.validated_problem, "meta.planned": repair_claims.planned_problem,
    "meta.concluded": repair_claims.concluded_problem, "lib.template_added": repair_learning.template_problem}

# What is said of an edit that gives a candidate which the run has.
KNOWN = "the run has this candidate already"


def rule_repair(state, e):
    if e.kind == "wf.run_started":
        return started_problem(state, e) or repair_learning.started_problem(state, e)
    if e.kind in LEARNING:
        return ("an experiment", "none") if e.experiment is None else LEARNING[e.kind](state, e)
    if not e.kind.startswith("wf.") and e.kind not in ("edit_pair.recorded", "utility.recorded"):
        return None
    run = state.repairs.get(e.data["run"])
    if run is None:
        return "wf.run_started of %s" % e.data["run"], "none"
    if run.experiment != e.experiment:
        return "the experiment of %s" % e.data["run"], str(e.experiment)
    begins = e.kind in ("wf.called", "wf.executed") and state.asks("opened_arms")
    problem = begins and repair_learning.begun_problem(state, run)
    if not problem and e.kind in ("wf.called", "wf.executed"):
        problem = repair_cells.begun_problem(state, run)
    return problem or IN_RUN[e.kind](state, e, run)


def seed_of(registration, run):
    return sha256(b"clover/wf/seed/v1\0" + bytes.fromhex(registration) + run.encode("utf-8")).hex()


def key_problem(state, what, key_id, role):
    key = state.keys.get(key_id)
    if key is None or key.ended or role not in key.roles:
        return "a live key in role %s as %s" % (role, what), key_id
    return ("a key as %s that read no truth" % what, key_id) if key_id in state.truth_readers else None


def started_problem(state, e):
    data, terms = e.data, e.data["terms"]
    problem = (name_problem(e, state.repairs) or key_problem(state, "the optimizer's", data["optimizer_key"], "optimizer")
               or key_problem(state, "the verifier's", data["verifier_key"], "verifier"))
    if problem:
        return problem
    registration = state.registrations.get(e.experiment)
    if registration is None or data["seed"] != seed_of(registration, data["run"]):
        return "the seed that experiment and run give", data["seed"]
    for name, (least, most) in RANGES.items():
        if not least <= terms[name] <= most:
            return "%s from %d to %d" % (name, least, most), str(terms[name])
    if not 1 <= terms["budget"]["calls"] <= 10_000_000:
        return "calls from 1 to 10000000", str(terms["budget"]["calls"])
    if data["executor"] == "endpoint":
        return "the simulator or recorded answers", data["executor"]
    for name, label in (("program", "clover/wf-ir/v1"), ("context", "clover/wf-context/v1"),
                        ("meta", "clover/wf-meta/v1"), ("verifier", "clover/wf-verifier/v1")):
        digest = labelled(label, data[name])
        if data[name + "_digest"] != digest:
            return "the digest of the %s, %s" % (name, digest), data[name + "_digest"]
        problem = repair_workflows.FORMS[name](read(data[name]))
        if problem:
            return "%s as canonical JSON: %s" % (name, problem), "another form"
    ids, inputs = set(), set()
    for item in data["items"]:
        if item["id"] in ids or item["input"] in inputs:
            return "each item once", item["id"]
        ids.add(item["id"])
        inputs.add(item["input"])
        if item["input"] in state.opened_inputs:
            return "items whose truth is not opened", item["id"]
    return documents_problem(data)


def documents_problem(data):
    only = all(of == "edit_prompt" for of in read(data["meta"])["operators"])
    if (data["cell"]["edits"] == "prompt") != only:
        return "a cell of prompts exactly where the meta prompt allows nothing else", data["cell"]["edits"]
    first = (data["optimizer_model"].split() or [""])[0]
    if (first in TEMPLATES) != (data["optimizer"] == "templates"):
        return "the name of the built-in optimizer exactly where it proposes", data["optimizer_model"]
    if first in TEMPLATES and TEMPLATES[first] != data["cell"]["optimizer"]:
        return "the name of the weak optimizer exactly where the weak one proposes", data["optimizer_model"]
    return None


def first(run, found):
    return "%s first" % " ".join(map(str, run.due())), found


def by_problem(e, what, key):
    return None if e.author == key else ("%s key of the run, %s" % (what, key), e.author)


def execution_problem(run, e):
    found = "execution", e.data["candidate"], e.data["item"], e.data["rerun"]
    return None if run.due() == found else first(run, e.kind)


def called_problem(state, e, run):
    data, problem = e.data, execution_problem(run, e)
    if problem:
        return problem
    if not run.end and run.is_spent():
        return "no call once the budget is spent", str(data["number"])
    if data["number"] != run.calls:
        return "call %d of the run" % run.calls, str(data["number"])
    if ("ask" in data) != (run.data["executor"] == "endpoint"):
        return "the ask of a call exactly where a model behind HTTP is called", str(data["number"])
    return None if ("answer" in data) != ("error" in data) else ("an answer, or why there is none", "both or neither")


def executed_problem(state, e, run):
    data, problem = e.data, execution_problem(run, e)
    if problem:
        return problem
    cost = {part: sum(1 if part == "calls" else of[part] for of in run.pending) for part in data["cost"]}
    if data["cost"] != cost:
        return "the sum of its calls, %s" % encode(cost), encode(data["cost"])
    if ("output" in data) == ("crash" in data):
        return "an output, or why there is none", "both or neither"
    if ("answers" in data) != bool(run.pending):
        return "answers exactly where models were called", str("answers" in data).lower()
    digest = labelled("clover/wf-trace/v1", data["trace"])
    if data["trace_digest"] != digest:
        return "the digest of the trace, %s" % digest, data["trace_digest"]
    try:
        trace = json.loads(data["trace"])
        calls = [(step["step"], step["attempt"], step["call"]["request"], step["call"].get("answer"))
                 for step in trace["steps"] if step.get("call")]
        crash = trace["crash"]["reason"] if trace.get("crash") else None
        told = trace["workflow"], trace.get("output"), crash
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
        return "a trace", "another form"
    if told != (data["candidate"], data.get("output"), data.get("crash")):
        return "a trace of the candidate, with its output and its end", "another"
    if calls != [(of["step"], of["attempt"], of["request"], of.get("answer")) for of in run.pending]:
        return "%d calls in the trace, those on record" % len(run.pending), "others"
    return None


def feedback_problem(state, e, run):
    return (by_problem(e, "the verifier's", run.data["verifier_key"])
            or repair_feedback.feedback_problem(run, e.data))


def scored_problem(state, e, run):
    return repair_feedback.scored_problem(run, e.data)


def pruned_problem(state, e, run):
    data = e.data
    if run.due() != ("prune",):
        return first(run, "wf.pruned")
    if data["iteration"] != run.turn():
        return "turn %d" % run.turn(), str(data["iteration"])
    kept, dropped = run.pruned()
    if data["kept"] != kept or data["dropped"] != dropped:
        return "kept by score, cost and id: %s" % " ".join(kept), " ".join(data["kept"])
    return None


def proposal_problem(state, e, run):
    data = e.data
    if run.due() != ("proposals",):
        return first(run, "a proposal")
    if (data["number"], data["iteration"]) != (run.proposals, run.turn()):
        return "proposal %d of the run, in turn %d" % (run.proposals, run.turn()), str(data["number"])
    kept = run.turns[-1]["kept"]
    if data["parent"] not in kept:
        return "a candidate that the turn kept", data["parent"]
    last, tries = run.tries[-1] if run.tries else (None, 0)
    if last and kept.index(last) > kept.index(data["parent"]):
        return "proposals in the order of what was kept", data["parent"]
    most = run.data["terms"]["proposals"]
    if last == data["parent"] and tries >= most:
        return "at most %d proposals for a candidate" % most, str(tries + 1)
    return unjudged_problem(run, kept[:kept.index(data["parent"]) + 1])


def unjudged_problem(run, kept):
    """The built-in optimizer proposes by what feedback blames."""
    judged = all(run.candidates[of].feedback for of in kept)
    return None if judged or run.data["optimizer"] != "templates" else ("feedback on what a turn keeps", "none")


def rejected_problem(state, e, run):
    """Why an edit was not taken is said in fixed words where the run has its candidate; other reasons are taken as said."""
    problem = proposal_problem(state, e, run)
    if not problem and e.data["reason"] == "known" and e.data["detail"] != KNOWN:
        return "detail %s" % KNOWN, e.data["detail"]
    return problem


def added_problem(state, e, run):
    data = e.data
    problem = by_problem(e, "the optimizer's", run.data["optimizer_key"]) or proposal_problem(state, e, run)
    if problem:
        return problem
    if data["candidate"] in run.candidates:
        return "a candidate that the run does not have", data["candidate"]
    return arm_problem(run, data["parent"], data)


def arm_problem(run, parent, data):
    digest = labelled("clover/wf-ir/v1", data["ir"])
    if data["candidate"] != digest:
        return "the digest of the workflow, %s" % digest, data["candidate"]
    operators = read(run.data["meta"]).get("operators", [])
    return repair_workflows.edit_problem(run.candidates[parent].ir, data, run.data["terms"]["edits"], operators)


def closed_problem(state, e, run):
    if run.due() != ("proposals",):
        return first(run, "wf.iteration_closed")
    problem = unjudged_problem(run, run.turns[-1]["kept"])
    if problem:
        return problem
    again = run.closing()
    return None if e.data == again else (encode(again), encode(e.data))


def stopped_problem(state, e, run):
    data = e.data
    if run.end:
        return "a run that is open", "its end"
    due = run.due()
    cut = run.is_spent() and data["reason"] == "budget" and due[0] == "execution"
    if due != ("stop", data["reason"]) and not cut and data["reason"] != "person":
        return first(run, "the end of the run by %s" % data["reason"])
    again = run.stopping(data["reason"])
    return None if data == again else (encode(again), encode(data))


def utility_problem(state, e, run):
    data = e.data
    if run.due() != ("worth",):
        return first(run, "utility.recorded")
    inputs = {item["input"] for item in run.data["items"]}
    for other in state.repairs.values():
        if e.author in (other.data["optimizer_key"], other.data["verifier_key"]):
            return "a key that neither proposes nor judges in a run", e.author
        if not other.end and any(item["input"] in inputs for item in other.data["items"]):
            return "no open run on the same items", other.data["run"]
    waiting = run.unworthed()
    if not waiting or data["candidate"] != waiting[0]:
        return "the worth of %s" % (waiting[0] if waiting else "no candidate"), data["candidate"]
    committed = sha256(b"clover/wf-truth/v1\0" + bytes.fromhex(data["salt"])
                       + bytes.fromhex(data["truth"]["blake3"])).hex()
    if committed != run.data["truth"]:
        return "the truth that the run committed to, %s" % run.data["truth"], committed
    if run.truth and (run.truth["salt"], run.truth["truth"]) != (data["salt"], data["truth"]):
        return "the truth that was opened", "another"
    if len(data["utilities_micro"]) != len(run.data["items"]):
        return "a number for each of %d items" % len(run.data["items"]), str(len(data["utilities_micro"]))
    outputs = outputs_of(run, data["candidate"])
    for at, worth in enumerate(data["utilities_micro"]):
        if not 0 <= worth <= (0 if outputs[at] is None else ONE):
            return "a worth from 0 to 1, and nothing where nothing returned", str(worth)
        for digest, other in run.candidates.items():
            if other.worth and outputs[at] is not None and outputs_of(run, digest)[at] == outputs[at] \
                    and other.worth[at] != worth:
                return "%d, as for the same output of %s" % (other.worth[at], digest), str(worth)
    return None


def outputs_of(run, digest):
    return [of.get("output") for of in run.candidates[digest].executions[::run.each()]]


def pair_problem(state, e, run):
    data = e.data
    if run.due() != ("worth",) or run.truth:
        return "pairs after the end of the run, before what is right is read", "edit_pair.recorded"
    if data["number"] != len(run.pairs):
        return "pair %d of the run" % len(run.pairs), str(data["number"])
    parent = run.candidates.get(data["parent"])
    if parent is None or parent.scored is None or parent.passes():
        return "a parent that was judged and does not pass", data["parent"]
    blamed = data["targeted"]["step"]
    if all(of["step"] != blamed for of in parent.feedback["blame"]):
        return "a step that the feedback blames", blamed
    document = read(parent.ir or "")
    if repair_workflows.form_problem(document):
        return "a parent with its workflow", "none"
    others = [of["id"] for of in document["steps"] if of["kind"] == "llm" and of["id"] != blamed]
    if data["eligible"] != others or not others:
        return "the other steps that ask a model: %s" % ", ".join(others), ", ".join(data["eligible"])
    drawn = sha256(b"clover/wf/control/v1\0" + bytes.fromhex(run.data["seed"]) + bytes.fromhex(data["parent"])
                   + data["number"].to_bytes(8, "big"))
    place = int.from_bytes(drawn[:8], "big") % len(others)
    if data["draw"] != place or data["control"]["step"] != others[place]:
        return "place %d, which the seed draws" % place, str(data["draw"])
    if data["propensity_micro"] != ONE // len(others):
        return "a propensity of %d" % (ONE // len(others)), str(data["propensity_micro"])
    for arm in (data["targeted"], data["control"]):
        edit = read(arm["edit"])
        if not repair_workflows.is_edit(edit) or arm["step"] not in (edit["args"].get("step"), edit["args"].get("after")):
            return "an edit of %s" % arm["step"], "another"
        problem = arm_problem(run, data["parent"], dict(arm, operator=data["operator"]))
        if problem:
            return problem
    return None


IN_RUN = {
    "wf.called": called_problem, "wf.executed": executed_problem, "wf.feedback_given": feedback_problem,
    "wf.scored": scored_problem, "wf.pruned": pruned_problem, "wf.candidate_added": added_problem,
    "wf.edit_rejected": rejected_problem, "wf.iteration_closed": closed_problem, "wf.stopped": stopped_problem,
    "utility.recorded": utility_problem, "edit_pair.recorded": pair_problem}
