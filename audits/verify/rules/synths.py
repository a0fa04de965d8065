"""The rule of runs of optimizers that see only cards (`schema/SYNTHESIS.md`)."""

import re

from events.commitments import labelled
from formats.limits import Refused
from formats.plain_yaml import Unsure, read_yaml
from history.records import Decisions
from history.synth_folds import open_run
from rules.asked import called_problem, model_problem
from rules.iterations import live_iteration
from rules.patches import diff_of_edits, needs_answers, patch_document
from rules.rubrics import code_length, families_of, rubric_problem

CLASSES = ("card.public", "dev_receipt", "rubric", "schema")
K_MAX, ROUNDS_MAX = 8, 64
# A document that is refused here before its changes are known has one of these codes.
EARLY = ("parse", "keys", "path", "type", "range", "conflict", "append")
UNREAD = ("beyond_k", "oversize")


def run_problem(state, e):
    """(run, problem): the open run that an entry names, of its iteration and experiment."""
    name = e.data["run"]
    run = state.synths.get(name)
    if run is None:
        return None, ("synth.opened of %s" % name, "none")
    if run.end is not None:
        return None, ("a run that is open, as %s is not" % name, run.end)
    if run.data["iteration"] != e.data["iteration"] or run.experiment != e.experiment:
        return None, ("the iteration of %s, %s" % (name, run.data["iteration"]), e.data["iteration"])
    return run, None


def rule_synth(state, e):
    if e.kind in ("score.recorded", "label.recorded", "label.sealed"):
        optimizes = any(run.data["key"] == e.author for run in state.synths.values())
        return ("a key that is no optimizer's in a run", e.author) if optimizes else None
    if e.kind == "synth.opened":
        return opened_problem(state, e)
    if e.kind == "dev.objective_queried":
        return dev_call_problem(state, e)
    if e.kind == "patch.proposed":
        return proposed_problem(state, e)
    if e.kind not in ("synth.asked", "synth.returned", "synth.stopped"):
        return None
    run, problem = run_problem(state, e)
    if problem:
        return problem
    if e.kind == "synth.asked":
        return asked_problem(state, e, run)
    return returned_problem(state, e, run) if e.kind == "synth.returned" else stopped_problem(e, run)


def within(what, found, most):
    return None if 1 <= found <= most else ("%s from 1 to %d" % (what, most), str(found))


def is_own_name(model):
    """Whether a text is the name of a built-in optimizer, whatever its case, up to the first blank."""
    words = [word for word in model.replace("\t", " ").split(" ") if word]
    return bool(words) and re.fullmatch("cards/[0-9]+", words[0], re.ASCII | re.IGNORECASE) is not None


def opened_problem(state, e):
    if e.experiment is None:
        return "an experiment", "none"
    it, decided, problem = live_iteration(state, e)
    if problem:
        return problem
    if decided.paused:
        return "a run in an iteration that goes on", "one paused for labels at seq %d" % decided.paused[0]
    if decided.sealed:
        return "a run before sealing", "sealed at seq %d" % decided.sealed[0]
    beside = set(Decisions().published) | set(decided.receipts) | {it.rubric_hash}
    if not decided.published - beside:
        return "an iteration with cards", "none"
    other = open_run(state, e.data["iteration"])
    if other:
        return "no other open run in %s" % e.data["iteration"], other.data["run"]
    if e.data["run"] in state.synths:
        return "a name that no run had", e.data["run"]
    key = state.keys.get(e.data["key"])
    if key is None or key.ended or "optimizer" not in key.roles:
        return "a live key in role optimizer", e.data["key"]
    if state.asks("own_names") and is_own_name(e.data["model"]) != (e.data["optimizer"] == "cards"):
        return "the name of a built-in optimizer exactly where it writes the candidates", e.data["model"]
    problem = model_problem(e.data)
    if problem:
        return problem
    if e.data["key"] in state.judged:
        return "an optimizer's key that signed no score and no label", e.data["key"]
    plan = state.plan_of(it)
    if not plan or "design" not in plan:
        return "a manifest that says how often dev is called", "none"
    left = max(0, plan["design"]["dev_calls_max"] - state.dev_calls_made(e.data["iteration"]))
    return (within("k", e.data["k"], K_MAX) or within("rounds", e.data["rounds"], ROUNDS_MAX)
            or within("dev_calls", e.data["dev_calls"], left))


def asked_problem(state, e, run):
    _, decided, problem = live_iteration(state, e)
    if problem:
        return problem
    if decided.sealed:
        return "a round before sealing", "sealed at seq %d" % decided.sealed[0]
    if run.asked != run.returned:
        return "an answer to round %d first" % (run.asked - 1), "none"
    if e.data["round"] != run.asked or run.asked >= run.data["rounds"]:
        return "round %d of at most %d" % (run.asked, run.data["rounds"]), str(e.data["round"])
    for name in CLASSES:
        if name not in run.released:
            return "data.read of %s to the key of %s before the view" % (name, e.data["run"]), "none"
    strange = next((name for name in e.data["inputs"] if name not in decided.published), None)
    if strange:
        return "inputs that were published", strange
    if not run.seq <= e.data["through_seq"] < e.position:
        return "a view of entries from seq %d on, before itself" % run.seq, str(e.data["through_seq"])
    return None


def returned_problem(state, e, run):
    if e.author != run.data["key"]:
        return "the key of %s, %s" % (e.data["run"], run.data["key"]), e.author
    if run.asked <= run.returned:
        return "synth.asked of its round first", "none"
    if e.data["round"] != run.returned:
        return "round %d" % run.returned, str(e.data["round"])
    problem = called_problem(state, e, e.data)
    if problem:
        return problem
    if "call" not in e.data and ("answer" in e.data) != (e.data["state"] != "oversize"):
        return "an answer on record, unless it was too long", e.data["state"]
    if e.data["state"] != "read" and e.data["candidates"]:
        return "no candidate of an answer that was not read", "some"
    it = state.iterations.get(e.data["iteration"])
    plan, rubric = it and state.plan_of(it), it and state.rubrics.get(e.experiment, {}).get(it.rubric_hash)
    if not rubric or not plan or "design" not in plan:
        return "the rubric and the plan of the iteration", "none"
    seen = {name for name, _ in it.candidates.values()} | run.valid
    for place, of in enumerate(e.data["candidates"]):
        problem = candidate_problem(state, e, (run, place, of), (rubric[1], plan, seen))
        if problem:
            return problem
        if "code" not in of:
            seen.add(of["patch_hash"])
    return None


def candidate_problem(state, e, told, against):
    run, place, of = told
    code, most = of.get("code", "none"), run.data["k"]
    if (code == "beyond_k") != (place >= most):
        return "beyond_k of candidate %d, as %d are read, and of no other" % (place, most), code
    if ("yaml" in of) == (code in UNREAD):
        return "the document of each candidate that was read", "none"
    if ("patch_hash" in of) != ("code" not in of):
        return "patch_hash of a candidate that passes every check, and of no other", code
    if "yaml" not in of:
        return None
    try:
        found, digest = code_of(state, of["yaml"], of.get("cards", []), run.inputs, against)
    except Unsure:
        state.unread.append(e.position)
        return None
    if found == "early":
        return None if code in EARLY else ("a code of its grammar for candidate %d" % place, code)
    if found != code:
        return "code %s of candidate %d" % (found, place), code
    if code == "none" and digest != of["patch_hash"]:
        return "patch_hash %s" % digest, of["patch_hash"]
    return None


def code_of(state, document, cards, inputs, against):
    """(code, hash of the diff) by checks 1 to 12 in order; `early` where the document itself is refused."""
    before, plan, seen = against
    try:
        family, name, most, affects, edits = patch_document(read_yaml(document))
        diff, after = diff_of_edits(before, edits)
    except Refused:
        return "early", None
    if not diff:
        return "noop", None
    frozen = plan["design"].get("frozen_paths", ())
    paths = [change["path"] for change in diff]
    if family not in plan["patch_families"] or any(families_of(path) and family not in families_of(path) for path in paths):
        return "cross_family", None
    for path in paths:
        if not families_of(path) or any(path == top or path.startswith(top + ".") for top in frozen):
            return "frozen", None
    length = code_length(before, after)
    if length["tokens_added"] > min(most, 150) or length["kappa"] > 150 or length["new_fields"] > 2:
        return "size", None
    anew = needs_answers(before, diff, plan["design"]["topics"])
    if anew and not affects:
        return "affects_rescore", None
    if rubric_problem(after):
        return "rubric", None
    digest = labelled(b"clover/patch/v1", diff)
    if name in state.patch_ids:
        return "duplicate_id", None
    if digest in seen:
        return "duplicate_diff", None
    if anew:
        return "rescore", None
    return ("cards", None) if set(cards) - set(inputs) else ("none", digest)


def dev_call_problem(state, e):
    run = open_run(state, e.data["iteration"])
    if run is None:
        return None
    name = run.data["run"]
    if e.data["requester"] != run.data["key"]:
        return "a dev call of %s, which is open, by its key" % name, e.data["requester"]
    if e.data["candidate"] not in run.valid:
        return "a candidate that %s returned" % name, e.data["candidate"]
    if run.dev_calls >= run.data["dev_calls"]:
        return "at most %d dev calls of %s" % (run.data["dev_calls"], name), "%d made before" % run.dev_calls
    return None


def proposed_problem(state, e):
    data = e.data
    if "run" not in data:
        optimizes = any(run.data["key"] == e.author for run in state.synths.values())
        if data["author_kind"] != "human" and optimizes:
            return "the run that returned it: its key is that of an optimizer in a run", "none"
        return None
    name, run = data["run"], state.synths.get(data["run"])
    if run is None:
        return "synth.opened of %s" % name, "none"
    if run.end is not None or run.data["iteration"] != data["iteration"]:
        return "an open run of %s" % data["iteration"], name
    if e.author != run.data["key"]:
        return "the key of %s, %s" % (name, run.data["key"]), e.author
    if data["patch_hash"] not in run.valid:
        return "a candidate that %s returned" % name, data["patch_hash"]
    if data["patch_hash"] not in state.passing.get(data["iteration"], ()):
        return "a candidate of which the dev objective says that p1 to p7 pass", data["patch_hash"]
    model = data.get("model") if data["author_kind"] == "llm" else None
    if state.asks("model_of_run") and model != run.data["model"]:
        return "a patch by the model of %s, %s" % (name, run.data["model"]), model or "another author"
    if data["family"] in run.proposed:
        return "one patch of %s from %s" % (data["family"], name), "%s before it" % run.proposed[data["family"]]
    if data.get("prompt_digest") not in run.views:
        return "the digest of a view of %s as prompt_digest" % name, "none"
    return None


def stopped_problem(e, run):
    data = e.data
    if data["rounds"] != run.returned:
        return "%d rounds" % run.returned, str(data["rounds"])
    if data["dev_calls"] != run.dev_calls:
        return "%d dev calls" % run.dev_calls, str(data["dev_calls"])
    came = [run.proposed[family] for family in sorted(run.proposed)]
    if data["proposed"] != came:
        return "the patches that name it, %d" % len(came), str(len(data["proposed"]))
    if data["reason"] == "rounds" and run.returned != run.data["rounds"]:
        return "rounds as its end after %d of them" % run.data["rounds"], str(run.returned)
    return None
