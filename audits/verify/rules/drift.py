"""Rules of drift of judges, and of gates that it makes stale (`schema/DRIFT.md`)."""

from formats.limits import ONE
from events.entry import natural_key_of
from events.shapes import JUDGE_PATH


def stale_problem(state, e, gate, record_, opened):
    """A judge of the gate failed a drift check, and no deviation that knew of it says how that is handled."""
    for source_ in gate:
        seq, newest = state.drifts.get((e.experiment, source_.get("judge")), (None, False))
        counts = seq is not None and (newest if opened is None else seq > opened)
        if counts and not any(known >= seq and at > seq for at, known in record_.handled):
            return ("a manifest.deviated on %s, known after seq %d, that says how the drift is handled"
                    % (JUDGE_PATH, seq),
                    "none: judge %s failed its drift check, and the gate is stale" % source_["judge"])


def rule_drift(state, e):
    if e.kind == "judge.drift_checked":
        return drift_problem(state, e)
    if e.kind not in ("gate.opened", "gate.observed", "gate.looked", "gate.decided"):
        return None
    record_, gate = state.manifests.get(e.data["gate"]), state.gates_by_id.get(e.data["gate"])
    if e.experiment is None:
        return None
    if e.kind == "gate.opened":
        return record_ and stale_problem(state, e, e.data["sources"], record_, None)
    if gate is None or gate.experiment != e.experiment or e.data.get("outcome") in ("superseded", "void"):
        return None
    if record_ is None:
        return "the manifest of the opened gate %s" % e.data["gate"], "none"
    return stale_problem(state, e, gate.sources, record_, gate.opened)


def drift_problem(state, e):
    """Verdicts follow from the figures beside them, every row has its score, and the anchor set is registered."""
    data, said = e.data, e.data["verdicts"]
    rows = len(data["scores_micro"])
    if not rows == data["rows"]["rows"] == sum(of["rows"] for of in data["policies"]):
        return "figures of all %d scores" % rows, str(data["rows"]["rows"])
    tau = data.get("kendall_tau")
    least = data["terms"]["plan"]["tau_min_micro"] / ONE
    ranks = "inconclusive" if tau is None else "fail" if tau < least else "pass"
    drifts = data["rows"]["drifting"] > 0 or any(of["charted"]["drifts"] for of in data["policies"])
    version = "fail" if data["unversioned"] else said["version"] if "asked" in data else "not_checked"
    for name, due in (("ranks", ranks), ("residuals", "fail" if drifts else "pass"), ("version", version)):
        if said[name] != due:
            return "%s %s" % (name, due), said[name]
    if natural_key_of("anchor_set.registered", e.experiment, data["anchors"]) not in state.natural_keys:
        return "an earlier anchor_set.registered of that set", data["anchors"]
