"""The rule of reports: each part is there, or it is named with the reason (`schema/REPORT.md`)."""

from events.shapes import REPORT_PARTS
from history.records import Decisions


def rule_report(state, e):
    if e.kind != "report.published" or e.experiment is None:
        return None
    name, through = e.data["iteration"], e.data["through_seq"]
    it, decided = state.iterations.get(name), state.decisions.get(name, Decisions())
    if it is None or it.experiment != e.experiment:
        return "an iteration of %s" % e.experiment, "%s, never opened" % name
    end = it.closed
    if end is None and decided.paused:
        end = decided.paused[0]
    if end is None and decided.accepted and decided.unsealed:
        end = decided.unsealed[0]
    if end is None:
        return "an iteration that is closed or decided", "%s, opened at seq %d and going on" % (name, it.opened)
    if not end <= through < e.position:
        expected = "through_seq from %d, where %s was decided, to %d" % (end, name, e.position - 1)
        return expected, str(through)
    present, gaps = e.data["present"], e.data["gaps"]
    if any(a >= b for a, b in zip(present, present[1:])):
        return "parts in the order of their words, each once", "another order"
    for gap in gaps:
        if not gap["what"] or not gap["why"]:
            return "what %s lacks, and why" % gap["part"], "an empty word"
    named = set(present) | {gap["part"] for gap in gaps}
    for part in REPORT_PARTS:
        if part not in named:
            return "part %s, or why it is missing" % part, "neither"
