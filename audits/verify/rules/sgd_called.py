"""Gradients and patches of a run that asks a model behind HTTP: each is the text of a call on record."""

import io

from formats.blake3 import blake3_stream
from history.asked_folds import FINAL


def called_problem(state, e, run):
    """A gradient or a proposal of a model names its call, and is the text of it; of anybody else it names none."""
    data, name = e.data, e.data["run"]
    if "asked" not in run.data:
        return ("no call in a run that asks no model", "one") if "call" in data else None
    asked, due = state.asked_runs.get(name), run.awaited()
    if asked is None or asked.purpose != "descend" or due is None:
        return "an ask of the run that waits for its answer", "none"
    last = asked.last_of(due[0])
    if last is None or last["outcome"] not in FINAL:
        return "a call of ask %d that came to its end" % due[0], "none"
    if "call" not in data:
        return "the call that gave it", "none"
    if data["call"] != last["call"]:
        return "the call of ask %d, %s" % (due[0], last["call"]), data["call"]
    if data["call"] not in e.refs:
        return "the call %s among its references" % data["call"], "none"
    document = data["gradient"] if e.kind == "sgd.gradient_returned" else data["patch"]
    if e.kind == "sgd.gradient_returned" and document == '{"anchors":[],"items":[],"step":%d}' % run.taken():
        return None
    if "text" not in last:
        return "an answer of its call, or a gradient without items", "none"
    found = blake3_stream(io.BytesIO(document.encode("utf-8")).read)[0].hex()
    return None if found == last["text"]["blake3"] else ("the text of its call, byte for byte", "another")
