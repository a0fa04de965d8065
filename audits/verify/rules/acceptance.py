"""Rules of what an iteration accepts, and of how it ends (`schema/PREDICATE.md`)."""

from events.commitments import composite_of
from history.records import Decisions, quarter_of
from rules.iterations import CONFIRM_GATES, DEV_GATES, live_iteration, stopped_by, taint_problem


def missing_gate(decided, candidate):
    """The first gate that was not evaluated on confirm, or None."""
    return next((gate for gate in CONFIRM_GATES if (candidate, "confirm", gate) not in decided.gates), None)


def order_of(state, e, it, decided):
    """Hashes of the patches to accept, in order."""
    def passes(candidate):
        return not any(stopped_by(state, e, decided, candidate, split) for split in ("dev", "confirm"))
    sealed = [one["candidate"] for one in decided.sealed[2]] if decided.sealed else []
    ranked = []
    for patch in (it.patches[name] for name in sorted(it.patches)):
        candidate = patch["patch_hash"]
        if candidate in sealed and passes(candidate):
            improve = decided.gates[candidate, "confirm", "p8"][3]["p8"]["risk_improve"]
            count = decided.gates[candidate, "dev", "p4"][3]["p4"]["ks_count"]
            ranked.append((improve, patch["length"]["kappa"], count, candidate))
    chosen = [candidate for _, _, _, candidate in sorted(ranked)][:2]
    if len(chosen) == 2:
        together = composite_of(chosen)
        if together not in sealed or not passes(together):
            chosen.pop()
    return chosen


def rule_acceptance(state, e):
    if e.experiment is None or e.kind not in ("patch.accepted", "iteration.closed"):
        return None
    if e.kind == "iteration.closed":
        return ending_problem(state, e)
    it, decided, problem = live_iteration(state, e)
    if problem:
        return problem
    problem = taint_problem(state, e, decided)
    if problem:
        return problem
    data, patch = e.data, it.patches.get(e.data["patch"])
    if patch is None or patch["patch_hash"] != data["candidate"]:
        return "a patch of the iteration with its hash", "%s with hash %s" % (data["patch"], data["candidate"])
    if not decided.sealed or not decided.unsealed:
        return "confirm.unsealed first", "none"
    for one in decided.sealed[2]:
        gate = missing_gate(decided, one["candidate"])
        if gate:
            return "every gate of every sealed candidate", "%s of %s not evaluated" % (gate, one["candidate"])
    candidate = data["candidate"]
    stops = (stopped_by(state, e, decided, candidate, split) for split in ("dev", "confirm"))
    stopped = next(filter(None, stops), None)
    if stopped:
        return "a candidate that passed every gate", stopped
    gates = [decided.gates[candidate, "dev", gate][1] for gate in DEV_GATES]
    gates += [decided.gates[candidate, "confirm", gate][1] for gate in CONFIRM_GATES]
    if data["gates"] != gates:
        return "its thirteen gate events, dev then confirm", "%d others" % len(data["gates"])
    numbers = (patch["length"]["kappa"], patch["result_hash"])
    if (data["kappa"], data["result_hash"]) != numbers:
        return "kappa %d and result_hash %s" % numbers, "kappa %d and result_hash %s" % (
            data["kappa"], data["result_hash"])
    improve = decided.gates[candidate, "confirm", "p8"][3]["p8"]["risk_improve"]
    if data["risk_improve"] != improve:
        return "risk_improve %s, as p8 has it" % improve, str(data["risk_improve"])
    before = len(decided.accepted)
    if before >= 2:
        return "at most 2 accepted patches", "%d accepted before" % before
    if data["rank"] != before + 1:
        return "rank %d" % (before + 1), str(data["rank"])
    order = order_of(state, e, it, decided)
    if before >= len(order):
        return "no more patches", "one whose composite did not pass"
    if order[before] != candidate:
        return "%s at rank %d" % (order[before], before + 1), candidate
    return unpaid_problem(state, e, it)


def unpaid_problem(state, e, it):
    """Where an account of patches is open, each accepted patch names a charge of its own to it, of its quarter."""
    charge, held = e.data.get("charge"), state.asks("patch_account")
    if not state.asks("charged_patches"):
        return None
    named, pays = state.patch_account(it) if held else (None, None)
    if named is None and not any(account.unit == "patch" for account in state.accounts.values()):
        return ("no charge: no account of patches is open", charge) if charge else None
    if charge not in state.patch_charges:
        return "a charge to an account whose unit is patch", charge or "none"
    (quarter, account), now = state.patch_charges[charge], quarter_of(e.recorded_text)
    if held and account != pays:
        of = "the plan's patch_account" if named else "the first that no optimizer charges"
        return "a charge to %s: %s" % (of, named or pays or "none"), "one to %s" % account
    if quarter not in ("once", now):
        return "a charge of %s" % now, "one of %s" % quarter
    if charge in state.paid_patches:
        return "a charge that paid for no other patch", "one spent at seq %d" % state.paid_patches[charge]


def ending_problem(state, e):
    it = state.iterations.get(e.data["iteration"])
    if it is None:
        return None
    decided, outcome = state.decisions.get(e.data["iteration"], Decisions()), e.data["outcome"]
    if outcome == "tainted":
        if it.experiment == e.experiment and it.closed is None and not taint_problem(state, e, decided):
            return "a tainted iteration", "one that is not"
    sealed = decided.sealed[2] if decided.sealed else []
    saved = bool(it.block) and it.block.saves() and not it.block.whole()
    judged = bool(decided.unsealed) and (saved or not any(missing_gate(decided, one["candidate"]) for one in sealed))
    due, accepted = len(order_of(state, e, it, decided)), len(decided.accepted)
    shut, shown, day = state.blocks.get(it.experiment, (0, 0, 0))
    kept_back = state.asks("confirm_rows") and shut != shown and day < e.recorded_at
    stops = outcome == "stopped" or (outcome == "transport_failed" and state.asks("end_after_peek"))
    stops = stops or (outcome == "sdp_changed" and state.asks("judged_peek"))
    stops = stops or (outcome == "tainted" and state.asks("tainted_peek"))
    if stops and decided.unsealed and not judged and not kept_back:
        return "every gate of every sealed candidate", "some missing"
    if outcome == "paused_for_labels" and not decided.paused:
        return "iteration.paused_for_labels first", "none"
    if outcome == "accepted" and not accepted:
        return "an accepted patch", "none"
    if outcome == "accepted" and judged and accepted < due:
        return "%d accepted patches, which passed every gate" % due, str(accepted)
    if outcome == "none_accepted" and (accepted or (judged and due)):
        return "no patch that passed every gate", str(max(due, accepted))
    if outcome == "none_accepted" and not judged:
        return "every gate of every sealed candidate", "some missing"
    if outcome == "no_candidate" and decided.sealed:
        return "no sealed candidate", "sealed candidates"
