"""Folds of runs of optimizers into the state, beside what else an entry moves."""

from history.records import SynthRun

MAY_BE_UNCHECKED = ("p6", "p7")


def is_passing(answers):
    """Whether p1 to p5 pass, and p6 and p7 do where somebody looked."""
    for of in answers:
        allowed = ("pass", "not_checked") if of["gate"] in MAY_BE_UNCHECKED else ("pass",)
        if of["gate"] in ("p1", "p2", "p3", "p4", "p5", "p6", "p7") and of["verdict"] not in allowed:
            return False
    return True


def open_run(state, iteration):
    runs = (run for run in state.synths.values() if run.end is None and run.data["iteration"] == iteration)
    return next(runs, None)


def take(state, entry, data):
    kind = entry.kind
    if kind in ("score.recorded", "label.recorded", "label.sealed"):
        state.judged.add(entry.author)
    elif kind == "data.read" and data["outcome"] == "allowed":
        for run in state.synths.values():
            if run.end is None and run.data["key"] == data["reader"] and run.experiment == entry.experiment:
                run.released.add(data["class"])
    elif kind == "synth.opened" and entry.experiment is not None:
        state.synths.setdefault(data["run"], SynthRun(entry, data))
    elif kind == "dev.objective_queried":
        if is_passing(data["answers"]):
            state.passing.setdefault(data["iteration"], set()).add(data["candidate"])
        run = open_run(state, data["iteration"])
        if run:
            run.dev_calls += 1
    elif kind in ("synth.asked", "synth.returned", "synth.stopped", "patch.proposed"):
        run = state.synths.get(data.get("run"))
        if run:
            told(run, kind, data)


def told(run, kind, data):
    if kind == "synth.asked":
        run.asked, run.inputs, run.released = run.asked + 1, data["inputs"], set()
        run.view = data["view_digest"]
        run.views.add(data["view_digest"])
    elif kind == "synth.returned":
        run.returned += 1
        run.valid.update(of["patch_hash"] for of in data["candidates"] if "code" not in of and "patch_hash" in of)
    elif kind == "synth.stopped":
        run.end = run.end or data["reason"]
    else:
        run.proposed.setdefault(data["family"], data["patch"])
