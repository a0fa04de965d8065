"""Why an audit passes nothing, whatever its numbers are (`schema/ESTIMATES.md`, `schema/TRANSPORT.md`)."""

from formats.limits import show
from history.environments import scope_key, scope_words
from history.evidence_folds import fit_terms


def obstacle_problem(state, e):
    """An audit names what keeps it from passing, and passes nothing where something does."""
    if "environment" in e.data["terms"] and state.asks("inside_probes") and "drawn" not in e.data:
        return "drawn: how many rows its environment has", "none"
    found, said = obstacles(state, e, e.data["policy"], e.data["rows"]), e.data.get("obstacles", [])
    if said != found:
        return "obstacles %s" % show(found), show(said)
    if found and e.data["state"] == "pass":
        return "no pass with %s" % ", ".join(found), "a pass"


def family_problem(state, e):
    """A family of environments names what keeps it from passing; each passes with as many probes as are drawn of its rows."""
    data, design = e.data, e.data["design"]
    found = set()
    for policy, designs in state.open_probes.get(e.experiment, {}).items():
        if design in designs:
            found.update(obstacles(state, e, policy, len(designs[design])))
    order = ("fitted_late", "fewer_probes", "more_probes", "other_terms")
    found = [name for name in order if name in found]
    if data.get("obstacles", []) != found:
        return "obstacles %s" % show(found), show(data.get("obstacles", []))
    rate = min(state.inclusions.get((e.experiment, design), 0), 1_000_000)
    for of in data["environments"]:
        words, passes = scope_words(of["scope"]), of["verdict"] == "pass"
        if found and passes:
            return "no pass of %s with %s" % (words, ", ".join(found)), "a pass"
        if "drawn" not in of:
            return "drawn: how many rows %s has" % words, "none"
        other = other_draw(of["drawn"]["rows"], of["drawn"]["left"], rate, of["rows"])
        if other and passes:
            return "no pass of %s with %s" % (words, ", ".join(other)), "a pass"


def obstacles(state, e, policy, labels):
    """A calibrator that somebody could still choose once probes could be read; fewer or more probes than their design draws."""
    data, judge, scope = e.data, e.data["terms"]["judge"], scope_key(e.data["terms"].get("environment"))
    first, rows, calibrated = state.first_probe.get((e.experiment, policy, data["design"]), (None, {}, 0))
    if first is None:
        return []
    found = []
    if state.newest_label.get((e.experiment, judge, scope, data["calibrator"]), 0) > first:
        found.append("fitted_late")
    early = state.on_terms.get((e.experiment, judge, scope, fit_terms(data["terms"])))
    other = (early is None or early >= first) and not usual_terms(state, e.experiment, e.data["terms"])
    rows, rate = rows.get(judge, 0), min(state.inclusions[e.experiment, data["design"]], 1_000_000)
    left = max(rows - calibrated, 0)
    if state.asks("confirmed_rows"):
        formed = state.asks("formed_confirm")
        left = max(left - state.entries(e.experiment).kept_for_confirm(policy, data["design"], judge, rows, formed), 0)
    else:
        left = outside_confirm(state, e.experiment, left)
    if not scope:
        found += other_draw(rows, left, rate, labels)
    elif state.asks("inside_probes"):             # said by who computed it, and computed again by the program
        found += other_draw(data["drawn"]["rows"], data["drawn"]["left"], rate, labels)
    return found + (["other_terms"] if other else [])


def other_draw(rows, left, rate, labels):
    """Fewer labels than a design draws of the rows that are left, or more than it draws of all."""
    if labels * 1_000_000 < left * rate and beyond_draw(left, rate, labels):
        return ["fewer_probes"]
    if labels * 1_000_000 > rows * rate and beyond_draw(rows, rate, labels):
        return ["more_probes"]
    return []


def usual_terms(state, experiment, terms):
    """Whether the terms of a fit are those of nobody's choice."""
    scale, declared = terms.get("label_scale"), state.label_scales.get(experiment)
    same = scale is None or declared == (scale["low_micro"], scale["high_micro"])
    return not terms["covariates"] and terms["mode"] == "auto" and (terms["folds"], terms["fold_seed"]) == (5, 42) and same


def outside_confirm(state, experiment, rows):
    """Rows without those of clusters that are kept for confirm, as the splits share them; below rulebook 24."""
    splits = state.split_counts.get(experiment, {})
    for name in sorted(splits, key=lambda name: name.encode("utf-8")):
        confirm, dev, fit = splits[name]
        rows = rows * (dev + fit) // (confirm + dev + fit) if confirm + dev + fit else rows
    return rows


def beyond_draw(rows, rate, labels):
    """Whether labels lie further than three standard deviations from what a design draws of rows."""
    return (rows * rate - labels * 1_000_000) ** 2 > 9 * rows * rate * (1_000_000 - rate)
