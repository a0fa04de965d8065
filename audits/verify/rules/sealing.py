"""Rules of sealed candidates, and of confirm labels that are unsealed and shown (`schema/PREDICATE.md`)."""

from formats.tree import sha256
from formats.fields import b64, decode_base64
from events.commitments import composite_of, unit_order
from history.records import Decisions, draw_of_row, quarter_of
from history.labels import shown_of
from history.synth_folds import open_run
from rules.iterations import (
    live_iteration, paused_problem, stopped_by, taint_problem, thresholds_of, unsealed_problem)

STAKES_MIN = 700_000                  # millionths: from these stakes on an edit needs two keys


def rule_sealing(state, e):
    if e.experiment is None:
        return None
    if e.kind == "candidates.sealed":
        return sealed_problem(state, e)
    if e.kind == "confirm.unsealed":
        return unsealing_problem(state, e)
    if e.kind == "label.sealed" and state.asks("sealed_before"):
        name = state.open_iteration(e.experiment)
        if name is not None and state.designs.get((e.experiment, e.data["design"])) == "confirm":
            return "a confirm label sealed before %s opens" % name, "one sealed while it is open"
    if e.kind == "label.revealed" and state.designs.get((e.experiment, e.data["design"])) == "confirm":
        name = state.open_iteration(e.experiment)
        asks = state.asks("confirm_rows")
        if name is None and asks:
            return "an open iteration whose confirm.unsealed pays for the reveal", "no open iteration"
        unsealed = None if name is None else state.decisions.get(name, Decisions()).unsealed
        if name is not None and not unsealed:
            return "confirm.unsealed of %s, which is open, before a reveal" % name, "none"
        if asks and state.peek_charges.get(e.data["charge"]) != unsealed[0]:
            return "the charge of the confirm.unsealed of %s" % name, e.data["charge"]
        seals = state.seals.get((e.experiment, e.data["design"], e.data["row"]), ())
        since = state.split_since.get(e.experiment)
        if asks and since is not None and any(one.seq < since for one in seals[:1]):
            return "a confirm label that was sealed after the newest split was formed", "an older one"
        if name is None:
            return None
        return unscored_problem(state, e, name, unsealed[0]) or shown_problem(state, e, name)
    if e.kind == "score.recorded" and state.asks("scored_before"):
        return late_score_problem(state, e)
    return looked_problem(state, e) if e.kind == "confirm.looked" else None


def unscored_problem(state, e, name, unsealed):
    """A row whose confirm label is shown was scored by the iteration's judge before the unsealing."""
    if not state.asks("scored_before"):
        return None
    judge = state.reads(state.iterations[name])
    if judge is None:
        return "a judge of the iteration, by its plan or as the only one with scores", "none"
    scored = state.scored_at.get(e.experiment, {}).get(judge, {}).get(e.data["row"])
    if draw_of_row(e.data["row"]) is not None and (scored is None or scored >= unsealed):
        return "a score of %s by %s before seq %d" % (e.data["row"], judge, unsealed), str(scored)


def late_score_problem(state, e):
    """While confirm is unsealed nobody scores a row of a confirm block."""
    name = state.open_iteration(e.experiment)
    unsealed = None if name is None else state.decisions.get(name, Decisions()).unsealed
    if unsealed and (e.experiment, e.data["item"]) in state.confirm:
        return "no score of a confirm row between its unsealing and the end of %s" % name, "unsealed at seq %d" % unsealed[0]


def block_order(state, e, name):
    """(beacon, seed) of the order in which labels of an iteration are shown, or None before a checkpoint is named."""
    it, sealed = state.iterations[name], state.decisions[name].sealed
    # What was sealed before the iteration was opened is none of its own.
    sealed = sealed if sealed and sealed[0] > it.opened else None
    beacon = state.beacons.get(sealed[0]) if sealed else None
    if beacon is None and sealed and e.seen and e.seen[0] > sealed[0]:
        beacon = {"root": b64(e.seen[1]), "size": e.seen[0]}
    if beacon is None:
        return None
    parts = (bytes.fromhex(it.digest), decode_base64(it.block.root), decode_base64(beacon["root"]))
    return beacon, sha256(*parts).hex()


def shown_problem(state, e, name):
    """Labels are shown in the order of the beacon, up to the next look, and none after every test stopped."""
    block, item = shown_of(state, e)
    if not block:
        return None
    if block.saves():
        return ("no further label of %s: every test stopped, none by crossing" % name,
                "a reveal after seq %d" % block.looked[0])
    if block.last == item:
        return None
    drawn = block_order(state, e, name)
    if drawn is None:
        return "a checkpoint above the sealing", "none (E_ORDER)"
    if block.last is not None and unit_order(drawn[1], block.last) >= unit_order(drawn[1], item):
        return "labels in the order that seed %s gives" % drawn[1], "%s (E_ORDER)" % item
    if not block.settled() and block.units >= block.seen() + block.every:
        return "confirm.looked of %s after %d clusters" % (name, block.seen() + block.every), "a further label"


def looked_problem(state, e):
    it, decided, problem = live_iteration(state, e)
    if problem:
        return problem
    data, block = e.data, it.block
    if not block:
        return "an iteration with confirm_test sequential", "%s (E_UNREGISTERED_RULE)" % data["iteration"]
    if not block.root:
        return "confirm.unsealed before a look", "none"
    if data["params_hash"] != it.params_hash:
        return "params_hash %s, as opened" % it.params_hash, data["params_hash"]
    if block.settled():
        return "a test that did not stop", "all of them since seq %d" % block.looked[0]
    drawn = block_order(state, e, data["iteration"])
    if drawn is None:
        return "a checkpoint above the sealing", "none (E_ORDER)"
    if (data["beacon"], data["seed"]) != drawn:
        return "the checkpoint of size %d, seed %s" % (drawn[0]["size"], drawn[1]), "another (E_ORDER)"
    due = min(block.seen() + block.every, data["of_units"])
    if data["units"] != block.units or data["units"] != due:
        return ("a look at %d of %d clusters, all of them shown" % (due, data["of_units"]),
                "at %d, with %d shown" % (data["units"], block.units))
    sealed = [one["candidate"] for one in decided.sealed[2]] if decided.sealed else []
    if sealed != [one["candidate"] for one in data["hypotheses"]]:
        return "the sealed hypotheses, in order", "others"
    if not block.looked:
        return None
    before = block.looked[1]
    if before["of_units"] != data["of_units"]:
        return "a block of %d clusters, as before" % before["of_units"], str(data["of_units"])
    for old, new in zip(before["hypotheses"], data["hypotheses"]):
        stopped = old["test"]["stop"] != "continue"
        if old["test"]["bound"] != new["test"]["bound"] or stopped and old != new:
            return "%s %s, as at seq %d" % (old["candidate"], old["test"]["stop"], block.looked[0]), new["test"]["stop"]


def sealed_problem(state, e):
    it, decided, problem = live_iteration(state, e)
    problem = problem or paused_problem(e, decided) or unsealed_problem(it, decided, "a sealing")
    if problem:
        return problem
    problem = taint_problem(state, e, decided)
    if problem:
        return problem
    if decided.sealed:
        return "one sealing", "sealed at seq %d" % decided.sealed[0]
    run = open_run(state, e.data["iteration"]) if state.asks("run_ends_first") else None
    if run:
        return "synth.stopped of %s before a sealing" % run.data["run"], "an open run"
    plan, sealed = state.plan_of(it), e.data["hypotheses"]
    if not plan:
        return "a manifest with the parameters of its iteration", "none"
    most = thresholds_of(plan)["hypotheses"]
    if e.data["divisor"] != most:
        return "divisor %d" % most, str(e.data["divisor"])
    if not 1 <= len(sealed) <= most:
        return "1 to %d hypotheses" % most, str(len(sealed))
    problem = hypotheses_problem(it, sealed) or reviews_problem(state, it, sealed)
    if problem:
        return problem
    for one in sealed:
        found = stopped_by(state, e, decided, one["candidate"], "dev")
        if found:
            return "p0 to p7 passed on dev by %s" % one["candidate"], found


def hypotheses_problem(it, sealed):
    names = [one["candidate"] for one in sealed]
    if not all(a < b for a, b in zip(names, names[1:])):
        return "hypotheses in order of hash, each once", "another order"
    families, composites = [], 0
    singles = [one["patches"][0] for one in sealed if len(one["patches"]) == 1]
    for one in sealed:
        patches = one["patches"]
        if not patches or one["candidate"] != composite_of(patches):
            return "the hash of its patches", one["candidate"]
        if len(patches) == 1:
            of = [it.patches[name]["family"] for name, (hash_, stands) in sorted(it.candidates.items())
                  if stands and hash_ == patches[0]]
            if not of:
                return "a patch that stands", "%s, none" % patches[0]
            if of[0] in families:
                return "one candidate of each family", "two of %s" % of[0]
            families.append(of[0])
        elif len(patches) == 2 and patches[0] < patches[1]:
            composites += 1
            if composites > 1 or not set(patches) <= set(singles):
                return "one composite, of two patches that are sealed by themselves", "another"
        else:
            return "one patch, or two in order of hash", "others"


def high_slices(plan):
    """Slices with high stakes."""
    return ["slice %s %s" % (family["family"], cell["slice"]) for family in plan.get("design", {}).get("slices", ())
            for cell in family["cells"] if cell["stakes_micro"] >= STAKES_MIN]


def reviews_problem(state, it, sealed):
    """Where stakes are high, each patch has a review that accepts it and none that disputes it."""
    why = high_slices(state.plan_of(it) or {})
    hashes = {patch for one in sealed for patch in one["patches"]} if why else ()
    for patch in sorted(it.candidates):
        if it.candidates[patch][0] in hashes:
            words = it.reviews.get(patch, {}).values()
            against = [seq for outcome, seq in words if outcome == "disputed"]
            if against:
                return "no dispute of %s that stands, because of %s" % (patch, why[0]), "one at seq %d" % against[0]
            if not any(outcome == "accepted" for outcome, _ in words):
                return "a review that accepts %s, because of %s" % (patch, why[0]), "none"


def unsealing_problem(state, e):
    it, decided, problem = live_iteration(state, e)
    if problem:
        return problem
    if not decided.sealed:
        return "candidates.sealed first", "none"
    if decided.sealed[1] != e.data["sealed"]:
        return "the sealing at seq %d" % decided.sealed[0], e.data["sealed"]
    problem = unsealed_problem(it, decided, "an unsealing")
    if problem:
        return problem
    charge, root = e.data["charge"], e.data["confirm_root"]
    if charge not in state.peeks:
        return "a charge to an account whose unit is peek", charge
    named = (state.plan_of(it) or {}).get("design", {}).get("peek_account")
    if state.asks("peek_account") and state.peeks[charge] != named:
        return "a charge to the plan's peek_account, %s" % named, "one to %s" % state.peeks[charge]
    if charge in state.peek_charges:
        return "a charge that paid for no other unsealing", "one spent at seq %d" % state.peek_charges[charge]
    if root in state.spent_roots:
        return "a confirm block that is not spent", "one unsealed at seq %d" % state.spent_roots[root]
    quarter = quarter_of(e.recorded_text)
    if state.asks("peek_account") and state.unsealings[quarter] >= 3:
        return "at most 3 confirm blocks unsealed in %s" % quarter, "%d before" % state.unsealings[quarter]
    ends = max(state.windows.get(e.experiment, []), default=None)
    if ends and ends[0] > e.recorded_at:
        return "an unsealing from %s on, where the confirm window ends" % ends[1], e.recorded_text
    if (e.experiment, root) not in state.confirm_roots:
        return "the confirm root of a split", root
    position, size = state.charges.get(charge), e.seen[0] if e.seen else 0
    if position is None or position >= size:
        return "a charge at a seq below the seen size %d" % size, str(position)
