"""The rule of families of gates: what they spend, and which claims hold together (`schema/GATES.md`)."""

import math
import sys

from formats.limits import ONE
from events.shapes import HOLDS
from history.records import alpha_of

FAMILY_MAX = 1000                     # members of a family that is closed together


def family_problem(state, manifest, joining):
    """A manifest that joins a family has its terms, and takes no more than is left."""
    of = manifest.get("multiplicity")
    if of is None:
        return None
    family, name = state.families.get(of["family"]), manifest["manifest"]
    if family is None:
        return "an open family", of["family"]
    if (family.method, family.alpha) != (of["method"], of["family_alpha_micro"]):
        return ("%s at %d, as it was opened" % (family.method, family.alpha),
                "%s at %d (E_FAMILY_BUDGET)" % (of["method"], of["family_alpha_micro"]))
    if joining and of["family"] in state.closed:
        return "a family that is not closed", "closed at seq %d (E_FAMILY_BUDGET)" % state.closed[of["family"]][0]
    others = [alpha for member, alpha in family.joined.items() if member != name]
    if joining and family.members is not None and name not in family.members:
        return "a listed member", name
    if joining and len(others) >= family.most:
        return "at most %d members" % family.most, "%s more (E_FAMILY_BUDGET)" % name
    most = family.alpha
    if family.method == "spend":
        most -= sum(others)
    elif family.method == "elond":
        place = list(family.joined).index(name) if name in family.joined else len(family.joined)
        share = family.gamma[place] if place < len(family.gamma) else 0
        product = max(-2 ** 63, min(family.alpha * share, 2 ** 63 - 1))
        most = abs(product) // ONE * (1 if product >= 0 else -1)
        # A member that is amended may keep what it had; a new one gains by claims that hold already.
        most = max(most, family.joined[name]) if name in family.joined else most * (len(family.held) + 1)
    if state.asks("capped_alpha"):
        most = min(most, family.alpha)
    if alpha_of(manifest) > most:
        return "at most alpha_micro %d left" % max(0, most), "%d (E_FAMILY_BUDGET)" % alpha_of(manifest)


def rule_family(state, e):
    if e.kind == "manifest.registered":
        return family_problem(state, e.data["manifest"], True)
    if e.kind == "manifest.amended":
        record_ = state.manifests.get(e.data["manifest"]["manifest"])
        if record_ is None:
            return None
        old, new = (m.get("multiplicity", {}).get("family")
                    for m in (record_.versions[0].manifest, e.data["manifest"]))
        if old != new:
            return "family %s: membership is fixed at registration" % old, "%s (E_FAMILY_BUDGET)" % new
        return family_problem(state, e.data["manifest"], False)
    if e.kind == "family.closed":
        return closing_problem(state, e.data)
    if e.kind != "family.opened":
        return None
    gamma, most, listed = e.data.get("gamma_micro"), e.data["members_max"], len(e.data.get("members", []))
    if not 1 <= e.data["alpha_micro"] < ONE:
        return "alpha_micro 1 to %d" % (ONE - 1), str(e.data["alpha_micro"])
    if most == 0 or listed > most:
        return "members_max of at least %d" % max(1, listed), str(most)
    if e.data["method"] not in ("elond", "spend") and most > FAMILY_MAX:
        return "members_max of at most %d where members are closed together" % FAMILY_MAX, str(most)
    if (gamma is None) != (e.data["method"] != "elond"):
        return "gamma_micro for elond only", "none" if gamma is None else "gamma_micro"
    if gamma is not None and not (gamma and all(1 <= share <= ONE for share in gamma) and sum(gamma) <= ONE):
        return "shares from 1, together at most %d" % ONE, "%d shares, together %d" % (len(gamma), sum(gamma))


def claims_that_hold(state, family, values):
    """Members whose claims hold by the procedure of their family; `values` are their e-values in order."""
    names, most = list(family.joined), max(family.most, len(values))
    if family.method in ("elond", "spend"):
        gates = [(name, state.gates_by_id.get(name)) for name in names]
        return [name for name, gate in gates if gate and gate.decided and gate.decided[1]["outcome"] in HOLDS]
    if family.most > FAMILY_MAX or not 0 < family.alpha < ONE:
        return []
    values, bar = values + [0.0] * (most - len(values)), ONE / family.alpha
    order = sorted(range(most), key=lambda at: (-values[at], at))
    if family.method == "closed_mean":
        def holds(at):
            total, count, least = values[at], 1, values[at]
            for other in reversed(order):
                if other != at:
                    total, count = total + values[other], count + 1
                    least = min(least, total / count)
            return least >= bar
        return [name for at, name in enumerate(names) if holds(at)]

    def stands(r):
        if family.method == "ebh":
            return r * values[order[r - 1]] / most >= bar
        inside = 0.0
        for j in range(1, r + 1):
            inside += values[order[r - j]]
            total = inside
            for i in range(most - r + 1):
                total += values[order[most - i]] if i else 0.0
                if total < (i + j) * j * bar / r:
                    return False
        return True
    top = order[:max([r for r in range(1, most + 1) if stands(r)], default=0)]
    return [name for at, name in enumerate(names) if at in top]


def n_min_of(state, name):
    current = state.manifests[name].in_force() if name in state.manifests else None
    return current.manifest.get("test", {}).get("n_min") if current else None


def closing_problem(state, data):
    """A family closes on the evidence of every member, by its procedure."""
    family = state.families.get(data["family"])
    if family is None:
        return "an open family", data["family"]
    if (family.method, family.alpha, family.most) != (data["method"], data["alpha_micro"], data["members_max"]):
        return "the terms with which it was opened", "others (E_FAMILY_BUDGET)"
    gates = [(name, state.gates_by_id.get(name)) for name in family.joined]
    for name, gate in gates:
        if family.method not in ("elond", "spend") and gate and not gate.decided and gate.unlooked():
            return "a look at %s after its %d units, or its decision" % (name, gate.n), "units that no look has seen"
    evidence = [{"log_e": gate.evidence(n_min_of(state, name)) if gate else 0, "member": name} for name, gate in gates]
    if evidence != data["evidence"]:
        return "every member with its last log_e", "others"
    values = [min(math.exp(min(one["log_e"], 709.78)), sys.float_info.max) for one in evidence]
    found = claims_that_hold(state, family, values)
    return None if found == data["rejected"] else ("claims that hold: %s" % found, str(data["rejected"]))
