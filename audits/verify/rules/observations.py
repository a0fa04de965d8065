"""Rules of a gate's observations: each value is the recorded one (`schema/GATES.md`)."""

from events.entry import natural_key_of
from history.records import row_of_draw
from rules.betting import scale_of, strata_of
from rules.gates import acting


def missing_value(metric, role):
    """What stands for a missing draw: the end of the scale that is against the candidate."""
    low = (metric["direction"] == "increase") == (role == "candidate")
    return metric["scale_lo_micro" if low else "scale_hi_micro"]


def rule_observation(state, e):
    if e.kind != "gate.observed":
        return None
    problem, gate, record_ = acting(state, e)
    found = None if problem else observation_problem(e, gate, record_)
    return found or source_problem(state, e, problem is None)


def observation_problem(e, gate, record_):
    t, current = e.data["t"], record_.in_force()
    if gate.terminal():
        return "no observation of a gate that has ended", "t %d (E_AFTER_TERMINAL)" % t
    if current is None or "test" not in current.manifest or "metric" not in current.manifest:
        return None
    manifest, test, metric = current.manifest, current.manifest["test"], current.manifest["metric"]
    if "continuation_of" in test and gate.parent is None:
        return "gate.continued before the first observation", "none (E_UNREGISTERED_RULE)"
    if t != gate.n + 1:
        return "t %d" % (gate.n + 1), "t %d (E_ORDER)" % t
    if t > test["n_max"]:
        return "at most test.n_max %d" % test["n_max"], "t %d (E_PAST_MAXN)" % t
    if gate.n in test.get("look_at", ()) and gate.unlooked():
        return "gate.looked after %d units, as test.look_at has it" % gate.n, "t %d (E_N)" % t
    if t > record_.units:
        return "one of the %d units exposed" % record_.units, "t %d (E_EXPOSURE)" % t
    predicted, stratum = test.get("control_variate"), e.data.get("stratum")
    if (predicted is None) != (stratum is None) or predicted is not None and stratum not in strata_of(test):
        return "the stratum of the unit where the test has a control variate", "%s (E_UNREGISTERED_RULE)" % stratum
    if len(e.data["readings"]) != len(gate.sources):
        return "%d readings, one for each metric" % len(gate.sources), str(len(e.data["readings"]))
    if "estimand" not in manifest:
        return None
    # What stands for a missing draw is against the candidate, not against a claim of harm, equality or difference.
    excluded = (manifest["estimand"]["missing_rule"] == "excluded"
                or manifest["hypothesis"]["kind"] in ("different", "equivalent", "kill"))
    return next(filter(None, (reading_problem(reading, metric, excluded) for reading in e.data["readings"])), None)


def reading_problem(reading, metric, excluded):
    sums, repeats = {}, metric["repeats"]
    for role in ("baseline", "candidate"):
        draws, missing = reading[role], reading.get(role + "_missing", [])
        if len(draws) != repeats:
            return "%d draws of each arm" % repeats, "%d draws" % len(draws)
        if not all(a < b for a, b in zip(missing, missing[1:])) or not all(draw < repeats for draw in missing):
            return "missing draws in order, each once", "another list"
        if excluded and missing:
            return "every draw, where missing_rule is excluded", "missing draws (E_UNREGISTERED_RULE)"
        for draw, value in enumerate(draws):
            stands = missing_value(metric, role)
            if draw in missing and value != stands:
                return "%d for a missing draw: the end against the candidate" % stands, str(value)
            if not metric["scale_lo_micro"] <= value <= metric["scale_hi_micro"]:
                return "values of the scale", "%d (E_SCALE)" % value
        if "noise" in metric and len({value for draw, value in enumerate(draws) if draw not in missing}) > 1:
            return "draws of one unit that agree, as metric.noise is none", "draws that differ (E_UNIT)"
        sums[role] = sum(draws)
    delta, most = sums["candidate"] - sums["baseline"], scale_of(metric) * repeats
    if reading.get("baseline_missing") or reading.get("candidate_missing"):
        delta = max(delta, -most) if metric["direction"] == "increase" else min(delta, most)
    if reading["delta_micro"] != delta:
        return "delta_micro %d" % delta, str(reading["delta_micro"])
    if abs(delta) > most:
        return "a difference of at most %d" % most, "%d (E_SCALE)" % delta


def source_problem(state, e, acts):
    """The unit is the one at its place, and every value is recorded since its exposure, or not recorded at all."""
    gate, record_ = state.gates_by_id.get(e.data["gate"]), state.manifests.get(e.data["gate"])
    if gate is None or record_ is None:
        return None
    bound, current, t = record_.bound(), record_.in_force(), e.data["t"]
    drawn = bound and state.drawn.get(bound.digest)
    if not drawn or acts and drawn[0] > gate.opened:
        return ("an order drawn before the gate was opened", "none of the version in force (E_ORDER)") if acts else None
    if (bound.digest, max(0, t - 1), e.data["unit"]) not in state.placed_units:
        return "the unit at this place of the order drawn (E_ORDER)", e.data["unit"]
    key = (e.experiment, bound.manifest.get("data", {}).get("confirm_root"), e.data["unit"])
    if "stratum" in e.data and state.stratum_of.get(key) != e.data["stratum"]:
        return "the stratum that units.listed gave the unit", "%s (E_DATA_ROOT)" % e.data["stratum"]
    since = next((seq for units, seq in record_.exposed if t <= units), None)
    if current is None or since is None:
        return None
    for arm in current.manifest.get("arms", []):
        for source, reading in zip(gate.sources, e.data["readings"]):
            missing = reading.get(arm["role"] + "_missing", [])
            for draw, value in enumerate(reading[arm["role"]]):
                natural = value_key(e, source, arm["id"], draw)
                if natural is None:
                    continue
                if draw in missing:
                    if natural in state.natural_keys:
                        return "no recorded value for a draw that is said to be missing", "one"
                    continue
                seq, said = state.values.get(natural, (None, None))
                if seq is None or said != value or seq < since:
                    return ("a recorded value of %d millionths at seq %d or later" % (value, since),
                            "none" if seq is None else "%s at seq %d" % (said, seq))


def value_key(e, source, policy, draw):
    if "judge" in source:
        parts = ["score.recorded", e.experiment, source["judge"], policy, e.data["unit"], draw]
    elif "design" in source:
        parts = ["label.revealed", e.experiment, source["design"], row_of_draw(policy, e.data["unit"], draw)]
    else:
        return None
    return natural_key_of(*parts)
