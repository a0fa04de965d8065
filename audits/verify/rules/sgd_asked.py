"""Scores of a run whose judge is behind HTTP: what calls on record answered, about rows that are due (question `asked_scores`)."""

import io

from formats.blake3 import blake3_stream
from formats.tree import sha256
from history.model_folds import AGAIN
from rules import sgd_gate, sgd_patch
from rules.prompt_judges import derived_name

MISSES_MAX = 3


def judge_of(state, experiment, name):
    """A judge as it was registered, where it is asked behind HTTP."""
    judge = state.judges.get(experiment, {}).get(name, ({}, 0))[0]
    return judge if judge.get("port") == "endpoint" else None


def is_told(judge):
    return judge is not None and "of" in judge


def runs_of(state, name):
    return [run for run in state.runs.values() if run.data.get("sgd", {}).get("run") == name]


def opened_problem(state, e):
    """A run says who pays for its scores exactly where its judge is behind HTTP."""
    judge = judge_of(state, e.experiment, e.data["judge"])
    asked = judge is not None and state.asks("asked_scores")
    if asked != ("scoring" in e.data):
        return "who pays for scores, exactly where a judge behind HTTP gives them", "another"
    if asked and is_told(judge):
        return "a judge of its own, which is told each prompt", e.data["judge"]
    return None


def quiet_problem(state, run):
    """A run of a prompt goes on once no judge is being asked for it."""
    if any(of.end is None for of in runs_of(state, run.data["run"])):
        return "the end of the run of judges that scores for it", "an open one"
    return None


def rows_of(run, part, digest):
    """Rows of a part that have no scores yet."""
    step = run.going()
    if part == "batch":
        return [run.rows["train"][at] for at in step.batch["rows"][len(step.scores):]] if step else []
    scored = {"base": run.base, "val": step.val_scores if step else run.best_scores,
              "confirm": run.confirm.get(digest, ()), "test": run.test.get(digest, ())}[part]
    return run.rows["train" if part == "base" else part][len(scored):]


def asked_problem(state, e, prompt_under, is_due, other_test):
    """A judge that is told a prompt asks for a run of that prompt alone: its rows are due, and that run pays."""
    judge = judge_of(state, e.experiment, e.data["judge"])
    if not is_told(judge) or not state.asks("asked_scores"):
        return ("a run of a prompt only of a judge that is told it", "one") if "sgd" in e.data else None
    if "sgd" not in e.data:
        return "the run of a prompt that it scores for", "none"
    of = e.data["sgd"]
    run = state.descents.get(of["run"])
    if run is None:
        return "sgd.opened of %s" % of["run"], "none"
    if run.experiment != e.experiment:
        return "the experiment of %s, %s" % (of["run"], run.experiment), str(e.experiment)
    if judge["of"] != run.data["judge"]:
        return "the judge of %s, %s" % (of["run"], run.data["judge"]), judge["of"]
    if judge.get("repeat", 0) >= run.data["terms"]["repeats"]:
        return "a repeat below %d" % run.data["terms"]["repeats"], str(judge["repeat"])
    if quiet_problem(state, run):
        return "no other open run of judges for %s" % of["run"], "one"
    return (paid_problem(state, e, run) or due_problem(state, run, of, is_due, other_test)
            or told_problem(judge, of, prompt_under(run, of["part"], of["prompt_digest"])))


def paid_problem(state, e, run):
    """Scores are paid as their run was opened, and what is left of its cap is the cap of each run of judges."""
    scoring, name = run.data.get("scoring"), run.data["run"]
    if scoring is None:
        return "who pays for scores of %s" % name, "none"
    if scoring.get("account") != e.data.get("account"):
        return "the account of %s, %s" % (name, scoring.get("account")), str(e.data.get("account"))
    left = scoring.get("cap_usd_micro")
    if left is not None:
        left = max(0, left - sum(of.settled for of in runs_of(state, name)))
    if left != e.data.get("cap_usd_micro"):
        return "a cap of %s, what %s has left" % (left, name), str(e.data.get("cap_usd_micro"))
    return None


def due_problem(state, run, of, is_due, other_test):
    part, digest = of["part"], of["prompt_digest"]
    if part == "confirm":
        return sgd_gate.confirm_problem(state, run, of)
    due = run.due()
    if due is None:
        return "a run that is open, as %s is not" % of["run"], "its end"
    if not is_due(due, part):
        return "%s first" % (" of ".join(word for word in due if word)), "rows of %s" % part
    problem = other_test(state, run) if part == "test" else None
    if problem:
        return problem
    known = None
    if part == "base" or part == "val" and run.going() is None:
        known = [run.data["prompt_digest"]]
    elif part == "batch":
        known = [run.digest()]
    elif part == "test":
        known = [run.data["prompt_digest"], run.checkpoint["prompt_digest"]]
    return ("the prompt that is due, %s" % known[0], digest) if known and digest not in known else None


def told_problem(judge, of, prompt):
    """The judge is told the prompt that is due."""
    if prompt is None:
        return "rows of %s under the prompt that is due" % of["part"], of["prompt_digest"]
    text = sgd_patch.rendered(prompt["sections"]).encode("utf-8")
    if judge["prompt_hash"] != sha256(text).hex():
        return "a judge that is told %s, prompt_hash %s" % (of["prompt_digest"], sha256(text).hex()), judge["prompt_hash"]
    blob, length = blake3_stream(io.BytesIO(text).read)
    if judge.get("prompt") != {"blake3": blob.hex(), "bytes": length, "media": "text/plain"}:
        return "the text of that prompt, blake3 %s" % blob.hex(), judge.get("prompt", {}).get("blake3", "none")
    return None


def row_problem(state, e):
    """What a judge that is told a prompt says first of a text is about a row that is due."""
    if e.data["judge"] not in state.told.get(e.experiment, {}) or "call" not in e.data:
        return None
    for run in state.runs.values():
        if run.end is not None or run.experiment != e.experiment or run.data["judge"] != e.data["judge"]:
            continue
        if e.data["call"]["call"] not in run.unnamed:
            continue
        of = run.data.get("sgd")
        sgd = state.descents.get(of["run"]) if of else None
        if sgd is None:
            return "the run of a prompt that it scores for", "none"
        row = e.data["item"], e.data["policy"], e.data["draw"]
        due = rows_of(sgd, of["part"], of["prompt_digest"])
        if not any((at["item"], at["policy"], at["draw"]) == row for at in due):
            return "a row of %s that is due in %s" % (of["part"], of["run"]), "%s/%s/%d" % (row[1], row[0], row[2])
    return None


def names_of(run, prompt):
    """The judges that are asked under a prompt, repeat by repeat."""
    hash_ = sha256(sgd_patch.rendered(prompt["sections"]).encode("utf-8")).hex()
    first = derived_name(run.data["judge"], hash_)
    return [first if repeat == 0 else "%s.%d" % (first, repeat) for repeat in range(run.data["terms"]["repeats"])]


def is_final(of):
    return of[0] is not None or of[2] is not None and of[2] not in AGAIN or of[1] >= MISSES_MAX


def scored_problem(state, e, run, prompt_under):
    """Scores are what calls on record give, and misses as well."""
    data = e.data
    if judge_of(state, run.experiment, run.data["judge"]) is None or not state.asks("asked_scores"):
        return ("misses only of a judge behind HTTP", str(len(data["missed"]))) if data.get("missed") else None
    prompt = prompt_under(run, data["part"], data["prompt_digest"])
    if prompt is None:
        return "rows of %s under the prompt that is due" % data["part"], data["prompt_digest"]
    told, names = state.told.get(run.experiment, {}), names_of(run, prompt)
    missed = []
    for place, row in enumerate(rows_of(run, data["part"], data["prompt_digest"])[:len(data["scores"])]):
        key, scores = (row["item"], row["policy"], row["draw"]), []
        for repeat, name in enumerate(names):
            of = told.get(name, {}).get(key, [None, 0, None])
            if not is_final(of):
                return "an answer to each ask about these rows", "none"
            if of[0] is None:
                missed.append({"repeat": repeat, "row": place})
            else:
                scores.append(of[0])
        if scores != data["scores"][place]:
            return "the scores that calls on record gave", "others of row %d" % place
    if missed != data.get("missed", []):
        return "%d misses, those on record" % len(missed), str(len(data.get("missed", [])))
    return None
