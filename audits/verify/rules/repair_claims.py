"""What a plan of repairs in sixteen cells predicts, and what becomes of it over all its runs (`schema/REPAIR.md`)."""

import math

from formats.limits import ONE
from rules.repair_cells import CELLS, OUTER, name_of, place_of
from rules.repair_learning import FRACTIONS, NEAR, gamma_of, gate_of, kappa_of

CLAIMS = ["outer_gamma", "outer_kappa", "structure_kappa"]
NAME_MAX = 200


def planned_problem(state, e):
    """A plan names its update, its tasks and its claims before any of its runs is opened."""
    data, update = e.data, state.updates.get(e.data["update"])
    if not 1 <= data["alpha_micro"] <= 50_000:
        return "a level above 0 and at most 0.05", str(data["alpha_micro"])
    if not 1 <= data["useful_micro"] <= ONE:
        return "a utility above 0 and at most 1", str(data["useful_micro"])
    if not 1 <= data["tasks"] <= 500:
        return "1 to 500 tasks", str(data["tasks"])
    if data["claims"] != CLAIMS:
        return "every claim, each once, in order", " ".join(data["claims"])
    if update is None:
        return "meta.updated of %s" % data["update"], "none"
    if update.experiment != e.experiment:
        return "the experiment of %s" % data["update"], str(e.experiment)
    if update.data["target"] == "meta":
        return "an update of verifier, program or library: cells choose the meta prompt", "meta"
    for one in state.updates.values():
        if one.data["new_digest"] == update.data["parent_digest"]:
            return "an update of what no update brought", one.data["update"]
    if len(name_of(data["plan"], data["tasks"] * CELLS - 1).encode("utf-8")) > NAME_MAX:
        return "a shorter name of a plan", data["plan"]
    names = list(state.repairs) + [pair[side] for one in state.updates.values() for pair in one.data["pairs"]
                                   for side in ("new", "old")]
    for name in names:
        plan, number = place_of(name)
        if plan == data["plan"] and number < data["tasks"] * CELLS:
            return "runs that are opened after it", name
    return None


def contrasts(claim):
    if claim == "structure_kappa":
        return [((cell + 1, 0.5), (cell, -0.5), (cell + 3, -0.5), (cell + 2, 0.5)) for cell in (0, 4, 8, 12)]
    return [((cell + OUTER, 1.0), (cell, -1.0)) for cell in range(OUTER)]


def difference(claim, cells):
    """The difference of a claim in one task; None where no contrast has all its cells."""
    whole = []
    for arms in contrasts(claim):
        values = [cells[cell] for cell, _ in arms]
        if None not in values:
            whole.append(math.fsum(weight * value for value, (_, weight) in zip(values, arms)))
    return min(1.0, max(-1.0, math.fsum(whole) / len(whole))) if whole else None


def closed_mean(values):
    """Each e-value closed with the others by the mean."""
    closed = []
    for at, one in enumerate(values):
        total, count, least = one, 1, one
        for other in sorted(values[:at] + values[at + 1:]):
            total, count = total + other, count + 1
            least = min(least, total / count)
        closed.append(least)
    return closed


def near(again, found):
    return abs(again - found) <= NEAR * max(1.0, abs(again))


def concluded_problem(state, e):
    data, plan = e.data, state.crossed_plans.get(e.data["plan"])
    if plan is None:
        return "meta.planned of %s" % data["plan"], "none"
    if [of["claim"] for of in data["claims"]] != CLAIMS:
        return "every claim, each once, in order", " ".join(of["claim"] for of in data["claims"])
    tasks, truth = plan.data["tasks"], None
    measured = {"gamma": [], "kappa": []}
    for number in range(tasks * CELLS):
        name = name_of(data["plan"], number)
        run = state.repairs.get(name)
        if run is None or not run.is_known():
            return "%s with its truth known" % name, "none"
        if run.end["reason"] == "person":
            return "%s ended by its record" % name, "a person's word"
        right = run.truth and run.truth["truth"]["blake3"]
        if number % CELLS == 0:
            truth = right
        if right != truth:
            return "the same truth in all cells of its task as %s" % name, "another"
        measured["gamma"].append(gamma_of(run))
        measured["kappa"].append(kappa_of(run))
    return claims_problem(data["claims"], measured, (tasks, plan.data["alpha_micro"] / ONE))


def claims_problem(claims, measured, terms):
    tasks, alpha = terms
    gates = []
    for claim in CLAIMS:
        values = measured["gamma" if claim == "outer_gamma" else "kappa"]
        of = [difference(claim, values[at:at + CELLS]) for at in range(0, tasks * CELLS, CELLS)]
        gates.append(gate_of([one for one in of if one is not None], 0.0, alpha))
    closed = closed_mean([math.exp(gate["log_wealth"]) for gate in gates])
    for said, gate, one in zip(claims, gates, closed):
        log = math.log(one)
        slack = 4.0 * (tasks + FRACTIONS) * 2.0 ** -53 * (1.0 + abs(log))
        again = {"claim": said["claim"], "gate": gate, "holds": log - slack >= math.log(1.0 / alpha), "log_closed": log}
        found = said["gate"]
        same = near(gate["log_wealth"], found["log_wealth"]) and near(log, said["log_closed"])
        if not same or gate["pairs"] != found["pairs"] or gate["reached"] != found["reached"] \
                or again["holds"] != said["holds"]:
            return "%s %r" % (said["claim"], again), "%r" % said
    return None
