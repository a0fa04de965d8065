"""Folds of runs that ask a model for something else than scores into the state, beside what else an entry moves."""

from history.records import AskedRun

OPENED = {"sgd.opened": "descend", "synth.opened": "propose"}         # what a run asks for, by what opens it
ENDED = {"sgd.stopped": "descend", "synth.stopped": "propose"}
FINAL = ("answered", "filtered", "refused", "truncated", "unparsed")   # nobody asks again


def awaited(state, run):
    """(place, digest) of what was shown and is not answered yet; None where there is none."""
    if state.asked_runs[run].purpose == "descend":
        descent = state.descents.get(run)
        return descent and descent.awaited()
    of = state.synths.get(run)
    if of is None or of.view is None or of.asked <= of.returned:
        return None
    return of.returned, of.view


def take(state, entry, data):
    kind = entry.kind
    if kind in OPENED and entry.experiment is not None and "asked" in data:
        state.asked_runs.setdefault(data["run"], AskedRun(entry.experiment, data, OPENED[kind]))
        return
    if kind not in ENDED and kind not in ("budget.reserved", "budget.settled", "model_call.recorded"):
        return
    run = state.asked_runs.get(data["run"])
    if run is None:
        return
    if kind in ENDED:
        run.is_over = run.is_over or run.purpose == ENDED[kind]
    elif kind == "budget.reserved":
        run.holds += 1
        run.hold = [data["hold"], data["amount"], data["asks"]]
    elif kind == "budget.settled":
        run.settled += data["amount"]
        run.settled_since += data["amount"]
        run.hold = None
    elif kind == "model_call.recorded":
        called(run, entry, data)


def called(run, entry, data):
    if data["outcome"] == "lost":                  # what was charged for its attempts before is charged
        run.cost_since = run.settled_since = 0
    run.cost_since += data["cost_usd_micro"]
    if run.hold:
        run.hold[2] = max(0, run.hold[2] - 1)
    run.last = dict(data, call=entry.id.hex())
