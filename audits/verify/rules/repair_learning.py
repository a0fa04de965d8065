"""The outer loop of repairs: triggers, updates, and the gates that let an update take effect (`schema/REPAIR.md`)."""

import math

from formats.limits import ONE
from rules.betting import log_mean_exp
from rules import repair_cells
from rules.repair_workflows import FORMS, labelled, read

CASES_MIN, FRACTIONS, LEAST_GAIN, NEAR = 5, 20, 50_000, 1e-9
LABELS = {"library": "clover/wf-ir/v1", "meta": "clover/wf-meta/v1", "program": "clover/wf-ir/v1",
          "verifier": "clover/wf-verifier/v1"}
DIGESTS = {"meta": "meta_digest", "program": "program_digest", "verifier": "verifier_digest"}


def looked_at(state, experiment):
    return [run for run in state.repairs.values()
            if run.experiment == experiment and run.is_known() and run.data["part"] != "validate"]


def upper_quartile(values):
    ordered = sorted(values)
    return ordered[(len(ordered) * 3 + 3) // 4 - 1] if ordered else None


def tokens(run):
    return run.spent["tokens_in"] + run.spent["tokens_out"]


def shows(state, run, case, data):
    """Whether a case shows what its class says."""
    of, useful, theta = run.candidates.get(case["candidate"]), data["useful_micro"], run.data["terms"]["theta_micro"]
    worth = run.mean_worth(case["candidate"])
    if of is None or of.scored is None or worth is None:
        return False
    score = of.score()
    if data["class"] == "false_positive":
        return (of.passes() or score is not None and score >= theta) and worth < useful
    if data["class"] == "false_negative":
        return worth >= useful and (score is None or score * 2 < theta)
    if data["class"] == "stagnation":
        return run.end["reason"] == "stagnation"
    won = [one for one in looked_at(state, run.experiment) if one.succeeds(useful)]
    turns, cost = upper_quartile(len(one.turns) for one in won), upper_quartile(map(tokens, won))
    slow = turns is not None and (len(run.turns) > turns or tokens(run) > cost)
    return run.end.get("winner") == case["candidate"] and worth >= useful and slow


def named(state, name):
    """The update that names a run, and whether it has what is new there."""
    for update in state.updates.values():
        for pair in update.data["pairs"]:
            if name in (pair["new"], pair["old"]):
                return update, name == pair["new"]
    return None, False


def trial_of(state, name):
    """The update that a trial begins from or stands against, of a pair or of a plan, and whether it begins from it."""
    update, is_new = named(state, name)
    plan, number = repair_cells.plan_of(state, name)
    if update is None and plan is not None:
        update = state.updates.get(plan.data["update"])
        is_new = update is not None and number % repair_cells.CELLS >= repair_cells.OUTER
    return update, is_new


def sources(state, data):
    """Updates that a run's documents come from."""
    for update in state.updates.values():
        target, new = update.data["target"], update.data["new_digest"]
        if new in data["templates"] if target == "library" else data[DIGESTS[target]] == new:
            yield update


def started_problem(state, e):
    data = e.data
    update, is_new = trial_of(state, data["run"])
    if (data["part"] == "validate") != (update is not None):
        return "a trial exactly of a run that an update or a plan names", data["part"]
    tried = update.data["update"] if is_new else None
    if data.get("update") != tried:
        return "the update that names the run, where it has what is new", str(data.get("update"))
    learnt = list(sources(state, data))
    for one in learnt:
        if one.verdict != "pass" and one.data["update"] != tried:
            return "%s validated before it takes effect" % one.data["update"], data["run"]
    if data["cell"]["outer"] != bool(learnt):
        return "a cell with the outer loop exactly where an update is in it", str(data["cell"]["outer"]).lower()
    for digest in data["templates"]:
        brings = is_new and update.data["target"] == "library" and update.data["new_digest"] == digest
        if digest not in state.library and not brings:
            return "templates of the library", digest
    return update and (trial_problem(state, e, update, is_new) or repair_cells.started_problem(state, data))


def trial_problem(state, e, update, is_new):
    data, said = e.data, update.data
    if update.experiment != e.experiment:
        return "the experiment of %s" % said["update"], str(e.experiment)
    wanted = said["new_digest"] if is_new else said["parent_digest"]
    if said["target"] == "library":
        has = (said["new_digest"] in data["templates"]) == is_new
    else:
        has = data[DIGESTS[said["target"]]] == wanted
    return None if has else ("%s as %s" % (wanted, said["target"]), "another")


def begun_problem(state, run):
    """No run that an update names is executed before all of them are opened."""
    if run.calls or run.data["part"] != "validate" or any(of.executions for of in run.candidates.values()):
        return None
    update = named(state, run.data["run"])[0]
    for name in (pair[side] for pair in update.data["pairs"] for side in ("new", "old")) if update else ():
        if name not in state.repairs:
            return "all runs of %s opened before one is executed" % update.data["update"], "%s is not opened" % name
    return None


def triggered_problem(state, e):
    data, looked = e.data, looked_at(state, e.experiment)
    if len(data["cases"]) < CASES_MIN:
        return "at least %d cases" % CASES_MIN, str(len(data["cases"]))
    if not 1 <= data["useful_micro"] <= ONE:
        return "a utility above 0 and at most 1", str(data["useful_micro"])
    if data["looked"] != len(looked):
        return "%d runs that were looked at" % len(looked), str(data["looked"])
    before = None
    for case in data["cases"]:
        if before is not None and not before.encode() < case["run"].encode():
            return "one case a run, in the order of their names", case["run"]
        before = case["run"]
        run = next((one for one in looked if one.data["run"] == case["run"]), None)
        if run is None:
            return "a run %s of the experiment whose truth is known" % case["run"], "none"
        if not shows(state, run, case, data):
            return "%s that shows %s" % (case["run"], data["class"]), "none of it"
    return None


def updated_problem(state, e):
    data = e.data
    digest = labelled(LABELS[data["target"]], data["document"])
    if data["new_digest"] != digest:
        return "the digest of the document, %s" % digest, data["new_digest"]
    if FORMS[data["target"]](read(data["document"])):
        return "a document of %s as canonical JSON" % data["target"], "another"
    if data["new_digest"] == data["parent_digest"]:
        return "a change", "none"
    if not data["triggers"] or any(name not in state.triggers for name in data["triggers"]):
        return "triggers on record", " ".join(data["triggers"]) or "none"
    if not 1 <= data["useful_micro"] <= ONE:
        return "a utility above 0 and at most 1", str(data["useful_micro"])
    useful = [state.triggers[name]["useful_micro"] for name in data["triggers"]]
    if any(one != data["useful_micro"] for one in useful):
        return "%d as useful, as in its triggers" % useful[0], str(data["useful_micro"])
    if any(one.data["new_digest"] == data["new_digest"] for one in state.updates.values()):
        return "a document that no update brought before", data["new_digest"]
    if not 1 <= data["alpha_micro"] <= 50_000:
        return "a level above 0 and at most 0.05", str(data["alpha_micro"])
    if not 1 <= data["margin_micro"] <= 200_000:
        return "a margin above 0 and at most 0.2", str(data["margin_micro"])
    seen = set()
    for name in (pair[side] for pair in data["pairs"] for side in ("new", "old")):
        if name in seen or name in state.repairs or named(state, name)[0] or repair_cells.plan_of(state, name)[0]:
            return "runs that are opened after it, each named once", name
        seen.add(name)
    return None


def gamma_of(run):
    """Share of pairs of unequal worth that the score puts in order; None where none can be compared."""
    groups = []
    for turn in run.turns:
        both = [run.candidates[digest] for digest in turn["kept"] + turn["dropped"] if digest in run.candidates]
        known = [(of.score(), sum(of.worth) // len(of.worth)) for of in both
                 if of.worth and of.score() is not None]
        pairs = []
        for at, (score, worth) in enumerate(known):
            for other, less in known[at + 1:]:
                if worth != less:
                    pairs.append(0.5 if score == other else float((score > other) == (worth > less)))
        if pairs:
            groups.append(math.fsum(pairs) / len(pairs))
    return math.fsum(groups) / len(groups) if groups else None


def kappa_of(run):
    """Share of children that gain, over expansions; None where nothing was expanded."""
    shares = []
    for at, turn in enumerate(run.turns):
        for parent in turn["kept"]:
            worth = run.mean_worth(parent)
            children = [run.mean_worth(digest) for digest, of in run.candidates.items()
                        if of.iteration == at + 2 and of.parent == parent]
            children = [child for child in children if child is not None]
            if worth is not None and children:
                gains = sum(1 for child in children if child - worth >= LEAST_GAIN)
                shares.append(1.0 - (len(children) - gains) / len(children))
    return math.fsum(shares) / len(shares) if shares else None


def gate_of(differences, margin, alpha):
    """A gate over differences from -1 to 1, that their mean is above -margin: log wealth, pairs, whether it was reached."""
    null, logs, reached = (1.0 - margin) / 2.0, [0.0] * FRACTIONS, False
    wealth, threshold = log_mean_exp(logs), math.log(1.0 / alpha)
    for n, difference in enumerate(differences, 1):
        gain = (difference + 1.0) / 2.0 / null - 1.0
        logs = [log + math.log1p((k + 1) / (FRACTIONS + 1.0) * gain) for k, log in enumerate(logs)]
        wealth = log_mean_exp(logs)
        slack = 4.0 * (n + FRACTIONS) * 2.0 ** -53 * (1.0 + abs(wealth))
        reached = reached or wealth - slack >= threshold
    return {"log_wealth": wealth, "pairs": len(differences), "reached": reached}


ALIKE = ("items", "terms", "context_digest", "executor", "executor_model", "optimizer", "optimizer_model")


def alike_problem(said, new, old):
    """Both runs of a pair are the same but for what the update changes, and nobody cut one of them short."""
    library = said["target"] == "library"

    def told(run):
        yield from ((part, run.data[part]) for part in ALIKE)
        yield from (("cell " + part, run.data["cell"][part]) for part in ("executor", "optimizer"))
        yield "truth", run.truth and run.truth["truth"]["blake3"]
        yield "templates", [of for of in run.data["templates"] if not (library and of == said["new_digest"])]
        yield from ((part, run.data[part]) for target, part in DIGESTS.items() if target != said["target"])

    for (part, one), (_, other) in zip(told(new), told(old)):
        if one != other:
            return "the same %s in %s and %s" % (part, new.data["run"], old.data["run"]), "another"
    for run in (new, old):
        if run.end["reason"] == "person":
            return "%s ended by its record" % run.data["run"], "a person's word"
    return None


def validated_problem(state, e):
    data, update = e.data, state.updates.get(e.data["update"])
    if update is None:
        return "meta.updated of %s" % data["update"], "none"
    said, differences = update.data, {"gamma": [], "kappa": [], "success": []}
    for pair in said["pairs"]:
        new, old = state.repairs.get(pair["new"]), state.repairs.get(pair["old"])
        for name, run in ((pair["new"], new), (pair["old"], old)):
            if run is None or not run.is_known():
                return "%s with its truth known" % name, "none"
        problem = alike_problem(said, new, old)
        if problem:
            return problem
        differences["success"].append(
            float(new.succeeds(said["useful_micro"])) - float(old.succeeds(said["useful_micro"])))
        for name, measure in (("gamma", gamma_of), ("kappa", kappa_of)):
            both = measure(new), measure(old)
            if None not in both:
                differences[name].append(both[0] - both[1])
    for name, of in differences.items():
        margin = 0.0 if name == "success" else said["margin_micro"] / ONE
        again, found = gate_of(of, margin, said["alpha_micro"] / ONE), data[name]
        near = abs(again["log_wealth"] - found["log_wealth"]) <= NEAR * max(1.0, abs(again["log_wealth"]))
        if not near or again["pairs"] != found["pairs"] or again["reached"] != found["reached"]:
            return "%s %r" % (name, again), "%r" % found
    verdict = "pass" if all(data[name]["reached"] for name in differences) else "fail"
    return None if data["verdict"] == verdict else ("the verdict of its gates, " + verdict, data["verdict"])


def template_problem(state, e):
    data, update = e.data, state.updates.get(e.data["update"])
    if data["template_digest"] != labelled("clover/wf-ir/v1", data["ir"]):
        return "the digest of the template", data["template_digest"]
    if update is None:
        return "meta.updated of %s" % data["update"], "none"
    if update.data["target"] != "library" or update.data["new_digest"] != data["template_digest"]:
        return "the template of %s" % data["update"], data["template_digest"]
    if not data["distilled_from"]:
        return "a candidate", "none"
    for case in data["distilled_from"]:
        run = state.repairs.get(case["run"])
        if run is None or not run.is_known() or case["candidate"] not in run.candidates:
            return "a candidate of a run whose truth is known", case["run"]
    return None
