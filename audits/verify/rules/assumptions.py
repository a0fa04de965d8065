"""Rules of releases to readers, protocols of labels, waivers and conflicts (`schema/ASSUMPTIONS.md`)."""

from formats.limits import Refused, show
from formats.fields import micros
from events.shapes import GOVERNED, GOVERNED_TOO, HOLDS, OF_LEDGER


def rule_access(state, e):
    if e.kind != "data.read":
        return None
    key = state.keys.get(e.data["reader"])
    if key is None or key.ended:
        return "a reader with a live key of this ledger", e.data["reader"]
    if e.data.get("role", next(iter(key.roles))) not in key.roles:
        return "a role that the reader's key holds: " + ", ".join(sorted(key.roles)), e.data["role"]


def by_protocol(state, e, protocol):
    """Labels are made by the protocol in force."""
    force = state.sdp_in_force(e.recorded_at)
    if force and force[0] != protocol:
        return "protocol %s, in force since seq %d" % (force[0], force[2]), protocol


def rule_sdp(state, e):
    if e.kind == "label.design_registered":
        return by_protocol(state, e, e.data["protocol"])
    if e.kind in ("label.recorded", "label.sealed"):
        protocol = state.protocols.get((e.experiment, e.data["design"]))
        return None if protocol is None else by_protocol(state, e, protocol)
    if e.kind == "sdp.version_registered":
        return effective_problem(state, e)
    if e.kind != "bridge.assessed":
        return protocol_stands(state, e)
    if not state.sdp or state.sdp[-1][0] != e.data["sdp_version"]:
        return "the newest protocol, " + (state.sdp[-1][0] if state.sdp else "none yet"), e.data["sdp_version"]
    ends = [e.data.get(name) for name in ("ci_lo", "estimate", "ci_hi")]
    ordered = None not in ends and ends[0] <= ends[1] <= ends[2]
    if not ordered and (ends[0] is not None or ends[2] is not None):
        return "ci_lo, estimate and ci_hi in ascending order, or no interval", show(ends)
    return person_problem(state, e) or end_problem(e)


def effective_problem(state, e):
    """A protocol that takes the place of another is in force from its registration on at the earliest."""
    if state.sdp and state.asks("effective_later") and micros(e.data["effective_at"]) < e.recorded_at:
        return "effective_at not before it is recorded, at " + e.recorded_text, e.data["effective_at"]


SDP_STEPS = ("candidates.sealed", "card.published", "confirm.unsealed", "gate.evaluated", "iteration.paused_for_labels",
             "label_process.audited", "patch.accepted", "patch.proposed", "prentice.checked", "residuals.audited",
             "scores.recomputed", "slices.classified")
NO_SDP_STEPS = ("iteration.opened", "patch.rejected", "patch.withdrawn")    # from rulebook 19 on
OF_TERMS = ("calibrator.fitted", "coverage.checked", "oua.estimated")       # their terms name their iteration


def iteration_of(e):
    """The name of the iteration that an event belongs to, or None."""
    named = e.data["terms"].get("iteration", {}) if e.kind in OF_TERMS else e.data
    name = named.get("iteration")
    return name if isinstance(name, str) else None


def protocol_changed(state, e):
    """Why an open iteration cannot go on, or None. Refused where its rubric cannot be found."""
    it = state.iterations.get(iteration_of(e))
    if it is None or it.closed is not None:
        return None
    if any(state.bridge.get(kind, ("",))[0] == "fail" for kind in ("construct", "pte", "stability")):
        return "A0 fails"
    force, rubric = state.sdp_in_force(e.recorded_at), state.rubrics.get(it.experiment, {}).get(it.rubric_hash)
    if force and force[2] > it.opened:
        if not rubric:
            raise Refused("the rubric that the iteration starts from", "none")
        if "sdp_version" not in rubric[1]:
            raise Refused("a rubric that names its protocol", "none")
        if rubric[1]["sdp_version"] != {"text": force[0]}:
            return "%s in force since seq %d" % (force[0], force[2])


def protocol_stands(state, e):
    try:
        return protocol_breach(state, e)
    except Refused as refused:
        return refused.expected, refused.found


def owed(state, e):
    """Once confirm was unsealed, every gate there is evaluated, whatever protocol people label by since."""
    of_confirm = e.kind == "confirm.looked" or e.kind == "gate.evaluated" and e.data["split"] == "confirm"
    decided = state.decisions.get(iteration_of(e)) if of_confirm and state.asks("judged_peek") else None
    return bool(decided and decided.unsealed)


def protocol_breach(state, e):
    if e.kind == "iteration.opened" and any(
            state.bridge.get(kind, ("",))[0] == "fail" for kind in ("construct", "pte", "stability")):
        return "A0 that does not fail", "fail"
    if e.kind == "iteration.closed":
        why, so = protocol_changed(state, e), e.data["outcome"] == "sdp_changed"
        if why and not so:
            return "an end as sdp_changed", why
        return ("a protocol that was replaced, or A0 that fails", "neither") if so and not why else None
    step = e.kind not in NO_SDP_STEPS if state.asks("protocol_steps") else e.kind in SDP_STEPS
    why = protocol_changed(state, e) if step and not owed(state, e) else None
    return why and ("no step of %s under another protocol: close it as sdp_changed" % iteration_of(e), why)


def person_problem(state, e):
    """A person signs, not a machine."""
    key = state.keys.get(e.author)
    return None if key is None or key.human else ("a key that a person holds", "a machine's")


def end_problem(e):
    """What expires ends after it was recorded."""
    ended = micros(e.data["expires_at"]) <= e.recorded_at
    return ("an end after %s" % e.recorded_text, e.data["expires_at"]) if ended else None


def never_waived(state, code, experiment):
    """What no two keys can waive."""
    if code == "H1":
        return "another assumption: a confirm block that was touched is never waived", "H1"
    failed = [seq for kind, (status, seq) in state.bridge.items() if status == "fail" and kind != "attestation"]
    if code == "A0" and failed:
        return "A0 that does not fail", "fail since seq %d" % min(failed)
    if code == "CLOVER.J2" and state.contradicted(experiment) is not None:
        return "CLOVER.J2 that does not fail", "fail since the %s at seq %d" % state.contradicted(experiment)


def rule_waiver(state, e):
    if e.kind == "assumption.waived":
        if (e.data["code"] in OF_LEDGER) != (e.experiment is None):
            return "A0 and A1-A3 of the ledger, any other of an experiment", "%s of %s" % (e.data["code"], e.experiment)
        return never_waived(state, e.data["code"], e.experiment) or person_problem(state, e) or end_problem(e)
    if e.kind != "assumption.countersigned":
        return None
    waiting = {waiver[0]: (code, waiver) for (scope, code), waiver in state.waivers.items() if scope == e.experiment}
    if e.data["waiver"] not in waiting:
        return "the newest waiver of an assumption, waiting for a second key", e.data["waiver"]
    code, (_, author, end) = waiting[e.data["waiver"]]
    if e.author == author:
        return "another key than the one that proposed it", e.author
    first, second = state.keys.get(author), state.keys.get(e.author)
    if state.strict and first and second and first.holder == second.holder:
        return "another holder than the one who proposed it, under strict", second.holder
    if end <= e.recorded_at:
        return "a waiver that has not ended", "one that had"
    return person_problem(state, e) or never_waived(state, code, e.experiment)


def governed(state, e):
    """Whether an event is a step that needs a judge who does not contradict itself."""
    if e.kind in GOVERNED or not state.asks("governed_steps"):
        return e.kind in GOVERNED
    if e.kind == "gate.decided":
        return e.data["outcome"] in HOLDS
    return e.kind == "promotion.issued" or e.kind in GOVERNED_TOO


def rule_blocked(state, e):
    if not governed(state, e):
        return None
    rests = [e.experiment]
    if e.kind == "promotion.issued":    # wherever it is issued, it rests on the experiments of its gates
        rests = [state.manifests[name].experiment for name in e.data["gates"] if name in state.manifests]
    since = next(filter(None, map(state.contradicted, rests)), None)
    if since is not None:
        return ("%s in an experiment whose judge never contradicted itself" % e.kind,
                "CLOVER.J2 fail since the %s at seq %d" % since)
