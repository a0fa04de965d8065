"""The grade of a gate, and the rule of promotions (`schema/GATES.md`)."""

from formats.limits import SAFE_INTEGER
from events.shapes import HOLDS
from rules.betting import scale_of
from rules.manifests import candidates, family_name, family_of, shares_candidate, signer_problem

RANKS = ("certified", "certified_amended", "self_governed", "finite", "asymptotic", "exploratory", "void")
KNOWING = frozenset(("labeler", "meta_optimizer", "optimizer", "registrar", "scorer"))


def grade_of(state, gate, record_, now):
    """The grade of a gate: no better than that of any which it continues."""
    if record_.superseded_by:
        return "void"
    grade, left = grade_alone(state, gate, record_, now), len(state.gates_by_id)
    while gate.parent is not None and state.asks("carried_grade"):
        gate, record_ = state.gates_by_id.get(gate.parent), state.manifests.get(gate.parent)
        if gate is None or record_ is None or left == 0:
            return "void"
        grade, left = max(grade, grade_alone(state, gate, record_, now), key=RANKS.index), left - 1
    return grade


def grade_alone(state, gate, record_, now):
    """The grade of a gate by itself."""
    tainted = any(state.compromised.get(one.author, one.seq + 1) <= one.seq for one in record_.versions)
    if state.asks("tainted_evidence"):
        rests = list(gate.rests.items())
        rests += [(one.countersigned_by, one.since) for one in record_.versions if one.countersigned]
        tainted = tainted or any(state.compromised.get(key, seq + 1) <= seq for key, seq in rests)
    if is_late(record_, now) or tainted:
        return "void"
    looked = SAFE_INTEGER if gate.first_look is None else gate.first_look
    if any(seen or seq > looked for seen, seq in record_.deviations):
        return "exploratory"
    current = record_.in_force()
    metric = current.manifest.get("metric") if current else None
    # A bound below the width of the scale is taken on trust: no unit that breaks it can be observed.
    trusts = metric and scale_of(metric) < metric["scale_hi_micro"] - metric["scale_lo_micro"]
    if trusts or gate.decided and gate.decided[1]["class"] == "asymptotic":
        return "asymptotic"
    bound = record_.bound()
    if state.asks("finite_claims") and bound and bound.manifest.get("test", {}).get("without_replacement"):
        return "finite"
    if state.asks("known_outcomes") and (bound is None or knew_outcomes(state, record_, bound)):
        return "self_governed"
    look = SAFE_INTEGER if record_.first_look is None else record_.first_look
    amended = any(one.seq > look and one.amendment is not None and one.amendment >= 2 for one in record_.versions)
    before = gate.opened if state.asks("one_of_orders") else record_.versions[0].seq
    redrawn = state.asks("one_order") and is_redrawn(state, record_, before)
    return "certified_amended" if amended or record_.deviations or redrawn else "certified"


def knew_outcomes(state, record_, bound):
    """Whether the person who fixed the order wrote a version, or has or had a role that makes or knows outcomes."""
    def person(key_id):
        key = state.keys.get(key_id)
        return key and state.person(key.holder)
    fixed = person(bound.countersigned_by or bound.author)
    wrote = any(person(one.author) == fixed for one in record_.versions)
    return fixed is None or wrote or any(
        person(key_id) == fixed and KNOWING & key.roles for key_id, key in state.keys.items())


def is_redrawn(state, record_, before):
    """Whether another manifest had the same units ordered for the same candidate and metric before an entry."""
    first = record_.versions[0]
    root = first.manifest.get("data", {}).get("confirm_root")
    metric = first.manifest.get("metric", {}).get("metric")
    return root is not None and any(
        one.digest != first.digest and one.countersigned and one.since < before
        and one.manifest.get("data", {}).get("confirm_root") == root
        and one.manifest.get("metric", {}).get("metric") == metric
        and shares_candidate(one.manifest, first.manifest)
        for other in state.manifests.values() if other is not record_ for one in other.versions)


def rule_promotion(state, e):
    if e.kind == "promotion.revoked":
        standing = state.promotions.get(e.data["promotion"], True) is False
        return None if standing else ("a promotion that stands", e.data["promotion"])
    if e.kind != "promotion.issued":
        return None
    names, grade = e.data["gates"], "certified"
    if not names or not all(a.encode("utf-8") < b.encode("utf-8") for a, b in zip(names, names[1:])):
        return "gates in order, each once, at least one", "another list"
    for name in names:
        gate, record_ = state.gates_by_id.get(name), state.manifests.get(name)
        if gate is None or record_ is None:
            return "opened gates", name
        current = record_.in_force()
        if current is None:
            return "a version in force", "none"
        problem = signer_problem("releaser", current.manifest, e.author)
        if problem:
            return problem
        kind = current.manifest["hypothesis"]["kind"]
        if kind not in ("equivalent", "noninferior", "promote"):
            return "a claim of %s that speaks for its candidate" % name, "%s (E_DIRECTION)" % kind
        if e.data["candidate_digest"] not in [arm["artifact_digest"] for arm in candidates(current.manifest)]:
            return "the candidate of %s" % name, "%s (E_ARM_DIGEST)" % e.data["candidate_digest"]
        if not gate.decided:
            return "a decision of %s" % name, "none"
        family = family_of(state, record_)
        if family is None:
            return "an open family", "none"
        if family.method in ("elond", "spend"):
            if gate.decided[1]["outcome"] not in HOLDS:
                return "a decision of %s that its claim holds" % name, gate.decided[1]["outcome"]
        elif family_name(record_) not in state.closed:
            return "family.closed of %s" % family_name(record_), "none"
        elif gate.decided[1]["outcome"] in ("futile", "kill", "superseded", "void"):
            return "a decision of %s that is not against its claim" % name, gate.decided[1]["outcome"]
        elif name not in state.closed[family_name(record_)][1]:
            return "a claim that the closing of %s found to hold" % family_name(record_), name
        grade = max(grade, grade_of(state, gate, record_, e.recorded_at), key=RANKS.index)
    if grade == "void":
        return "gates whose grade is not void", "void"
    if e.data["grade"] != grade:
        return "grade %s, derived" % grade, e.data["grade"]
    bounds = [state.manifests[name].bound() for name in names]
    finite = all(not one or one.manifest.get("test", {}).get("without_replacement", True) for one in bounds)
    if state.asks("finite_claims") and finite:
        return "a gate about what its units were drawn from", "gates about exactly their own units (E_UNIT)"
    bounds = [one.bound() for one in state.manifests.values()]
    tests = sum(1 for one in bounds if one and one.manifest["template"] == "gate" and any(
        arm["artifact_digest"] == e.data["candidate_digest"] for arm in candidates(one.manifest)))
    if state.asks("one_family") and e.data.get("tests") != tests:
        return "tests %d, the gates that tested the candidate" % tests, str(e.data.get("tests"))


def is_late(record_, now):
    """Whether a sealed plan was not revealed in time."""
    revealed = now if record_.revealed_at is None else record_.revealed_at
    return record_.plan is not None and revealed > record_.reveal_by
