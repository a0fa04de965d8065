"""The rule of noise: answers of a judge behind HTTP that are asked for again, and what follows (`schema/ENDPOINTS.md`)."""

from math import isqrt

from events.commitments import labelled
from formats.fields import b64
from history.records import JudgeNoise

RESCORED_MIN, RESCORED_MAX, MISSED_ONE_IN = 30, 1_000, 50
QUANTILE = 1_959_964, 2_372_271, 2_822_499, 2_555_850        # of Student at .975 in millionths: 1, 1/v, 1/v^2, 1/v^3


def rule_noise(state, e):
    if e.experiment is None:
        return None
    if e.kind == "judge_run.opened" and "rescore" in e.data:
        return opening_problem(state, e, e.data)
    if e.kind == "call.recorded":
        return call_problem(state, e, e.data)
    return measured_problem(state, e, e.data) if e.kind == "noise.measured" else None


def opening_problem(state, e, data):
    """What is asked again is drawn from all that gave a score, by the next number, once the last such run is measured."""
    of = state.noise.get((e.experiment, data["judge"]))
    if of is None:
        return "answers of %s that gave a score" % data["judge"], "none"
    if of.unmeasured is not None:
        return "a judge whose runs that ask again were all measured", of.unmeasured
    if data["rescore"]["number"] != of.runs + 1:
        return "sample %d of %s" % (of.runs + 1, data["judge"]), str(data["rescore"]["number"])
    every = len(of.scored)
    if data["rescore"]["of"] != every:
        return "a sample of all %d answers that gave a score" % every, str(data["rescore"]["of"])
    if not 1 <= data["asks"] <= min(every, RESCORED_MAX):
        return "1 to %d answers" % min(every, RESCORED_MAX), str(data["asks"])
    root = b64(bytes.fromhex(labelled(b"clover/noise-frame/v1", list(of.scored))))
    return None if data["asks_root"] == root else ("the digest of their entries, %s" % root, data["asks_root"])


def drawn(state, e, run):
    """The entries that a run asks for again: drawn without putting back, from the first checkpoint after it was opened."""
    beacon = state.beacons.get(run.opened)
    if beacon is None and e.seen and e.seen[0] > run.opened:
        beacon = {"root": b64(e.seen[1]), "size": e.seen[0]}
    of = state.noise.get((run.experiment, run.data["judge"]))
    if beacon is None or of is None:
        return None
    scored, moved, found = list(of.scored), {}, set()
    for at in range(min(run.data["asks"], len(scored))):
        digest = labelled(b"clover/noise-draw/v1", [beacon["root"], run.data["run"], at])
        other = at + int(digest[:16], 16) % (len(scored) - at)
        place = moved.get(other, other)
        moved[other] = moved.get(at, at)
        found.add(scored[place])
    return found


def call_problem(state, e, data):
    run, first = state.runs.get(data["run"]), data.get("first")
    if run is None or run.end is not None or run.experiment != e.experiment:
        return None                                            # by the rule of runs
    if run.rescored is None:
        return ("no first call of an ask that is the first", "one") if first else None
    if first is None:
        return "the first call of an ask that is asked again", "none"
    entries = drawn(state, e, run)
    if entries is None:
        return "a checkpoint above seq %d" % run.opened, "none"
    if first["seq"] not in entries:
        return "an answer that %s was drawn to ask for again" % data["run"], "that of seq %d" % first["seq"]
    if first["seq"] in run.rescored.done:
        return "each answer asked for again once", "that of seq %d twice" % first["seq"]
    known = state.noise[e.experiment, data["judge"]].scored.get(first["seq"])
    gave = state.calls.get(first["call"])
    if known != first["call"] or gave[2:] != ("answered", data["texts"], first["score_micro"]):
        return "the call of seq %d about these texts that gave this score" % first["seq"], first["call"]
    return None


def root_above(of):
    root = isqrt(of)
    return root + (root * root < of)


def figures(asked, missed, pairs):
    """What differences of scores say: standard deviation of one score, mean shift, and half the width of its interval."""
    out = {"answered": len(pairs), "asked": asked, "differing": sum(of != 0 for of in pairs), "missed": missed}
    n, total = len(pairs), sum(pairs)
    if n < 2:
        return out
    spread = n * sum(of * of for of in pairs) - total * total
    z, first, second, third = QUANTILE
    cube = (n - 1) ** 3
    wide = -(-(z * cube + first * (n - 1) ** 2 + second * (n - 1) + third) // cube)
    down, rest = divmod(total, n)
    out["sd_micro"] = root_above(-(-spread // (2 * n * (n - 1))))
    out["shift_half_micro"] = root_above(-(-(wide * wide * spread) // (n * n * (n - 1) * 10 ** 12)))
    out["shift_micro"] = down + (2 * rest > n or 2 * rest == n and down % 2 == 1)
    return out


def verdict(of, most):
    without = of["asked"] - of["answered"]
    thin = of["answered"] < RESCORED_MIN or without * MISSED_ONE_IN > of["asked"]
    if most is None:
        return "fail" if of["differing"] else "inconclusive" if thin else "pass"
    if thin:
        return "inconclusive"
    return "pass" if of["sd_micro"] <= most and abs(of["shift_micro"]) <= of["shift_half_micro"] else "fail"


def measured_problem(state, e, data):
    """Figures follow from the calls of a run that ended, and of those before it."""
    run = state.runs.get(data["run"])
    if run is None or run.experiment != e.experiment or run.data["judge"] != data["judge"]:
        return "a run %s of %s" % (data["run"], data["judge"]), "none"
    if run.rescored is None:
        return "a run that asked for answers again", "none"
    if run.end is None:
        return "a run that ended", "one that is open"
    judge = state.judges.get(e.experiment, {}).get(data["judge"], ({}, 0))[0]
    before = state.noise.get((e.experiment, data["judge"]), JudgeNoise())
    most = judge.get("asked", {}).get("noise_sd_max_micro")
    asks, missed, pairs = run.data["asks"], run.rescored.missed, run.rescored.pairs
    pooled = figures(before.asked + asks, before.missed + missed, before.pairs + pairs)
    due = {"figures": figures(asks, missed, pairs), "judge": data["judge"], "pooled": pooled, "run": data["run"],
           "verdict": verdict(pooled, most)}
    if most is not None:
        due["sd_max_micro"] = most
    return None if data == due else ("as its calls give it, %s" % due, str(data))
