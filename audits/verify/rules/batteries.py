"""Rules of batteries of attacks, and of exploits that are found (`schema/BATTERY.md`)."""

import re

from events.shapes import EDITS, EXPLOIT, EXPLOITS_MAX, RISE
from events.commitments import composite_of
from history.records import Attacked
from rules.iterations import live_iteration, unsealed_problem


def rule_battery(state, e):
    if e.experiment is None:
        return None
    it = state.attacked.get(e.data["iteration"]) if e.kind in ("card.published", "gate.evaluated") else None
    if e.kind == "battery.evaluated":
        return battery_problem(state, e)
    if e.kind == "exploit.discovered":
        return exploit_problem(state, e)
    if e.kind == "card.published":
        card = e.data["card"]
        known = it.stress.get((card["family"], card["slice"]), []) if it else []
        return None if card["stress"] == known else ("the uplifts that the battery measured in the slice", "others")
    if e.kind != "gate.evaluated":
        return None
    if "p7" not in e.data["evidence"]:
        return ("no battery behind %s" % e.data["gate"], e.data["battery"]) if "battery" in e.data else None
    found, ran = e.data["evidence"]["p7"], it and it.batteries.get(e.data["candidate"])
    named = ran[1] if ran else None
    decided = state.decisions.get(e.data["iteration"])
    somebody = any(not key.ended and "adversary" in key.roles for key in state.keys.values())
    strict = bool(somebody and decided and None in decided.calibrators)
    if e.data.get("battery") != named and (strict or "battery" in e.data):
        return "battery %s, as recorded for the candidate" % named, str(e.data.get("battery"))
    if ran is None:
        checked = strict and (found["attacks"] or "searched" in found)
        return ("battery.evaluated of the candidate before its p7", "none") if checked else None
    expected = {"attacks": [{name: value for name, value in of.items() if name != "max"} for of in ran[2]["attacks"]],
                "regressions": ran[2]["regressions"]}
    if "u_adv" in ran[2]:
        expected["searched"] = ran[2]["u_adv"]
    return None if found == expected else ("what the battery at seq %d measured" % ran[0], "other numbers")


def battery_problem(state, e):
    it, decided, problem = live_iteration(state, e)
    if not problem and decided.paused:
        problem = ("a battery in an iteration that goes on", "one paused for labels at seq %d" % decided.paused[0])
    if problem:
        return problem
    data, expected = e.data, it.rubric_hash
    if not 100 <= data["tries"] <= 200:
        return "100 to 200 tries", str(data["tries"])
    if "candidate" in data:
        standing = [patch for patch, stands in it.candidates.values() if stands]
        known = standing + [composite_of([a, b]) for a in standing for b in standing]
        problem = unsealed_problem(it, decided, "a battery")
        if problem:
            return problem
        if data["candidate"] not in known:
            return "a patch that stands, or a composite of two", data["candidate"]
        ran = state.attacked.get(data["iteration"], Attacked()).batteries.get(data["candidate"])
        if ran:
            return "one battery of each candidate", "one at seq %d" % ran[0]
        p7 = decided.gates.get((data["candidate"], "dev", "p7"))
        if p7:
            return "a battery of a candidate before its p7", "p7 at seq %d" % p7[0]
        named = [it.patches[name] for name in sorted(it.patches)]
        expected = next((of["result_hash"] for of in named if of["patch_hash"] == data["candidate"]), None)
    if expected not in (None, data["rubric_hash"]):
        return "rubric_hash %s" % expected, data["rubric_hash"]
    problem = None
    if state.asks("both_answers"):
        problem = both_problem(state, e)
    elif state.asks("answered_battery"):
        problem = answers_problem(state, e)
    return problem or battery_lists_problem(data) or measured_problem(data, state.exploits[e.experiment])


def answers_problem(state, e):
    """What a program answered is named, the judge's own first: it, and the same judge told what a candidate changes."""
    judges, judge = state.judges.get(e.experiment, {}), e.data["judge"]
    said, _ = judges.get(judge, (None, 0))
    names = [of["judge"] for of in e.data.get("answers", [])]
    if said is None:
        return None                               # the rule `judge` refuses it
    if said["port"] != "command":
        return ("no answers: %s is no program" % judge, "answers of %s" % names[0]) if names else None
    if e.data["seeds"] > 0 and not names:
        return "answers of %s, which is a program" % judge, "none"
    others = names[1:] if names[:1] == [judge] else names
    told = [name for name in others if "candidate" in e.data
            and judges.get(name, ({}, 0))[0].get("of") == said.get("of", judge)]
    if len(others) > 1 or told != others:
        return "answers of %s, and of it as a candidate tells it" % judge, "those of another"
    if any(of["records_count"] == 0 for of in e.data.get("answers", [])):
        return "at least one answer of each", "none"


def both_problem(state, e):
    """What programs answered is named: the iteration's judge where a candidate tells it something else, then the attacked one."""
    data, judge = e.data, e.data["judge"]
    said, _ = state.judges.get(e.experiment, {}).get(judge, (None, 0))
    names = [of["judge"] for of in data.get("answers", [])]
    if said is None:
        return None                               # the rule `judge` refuses it
    if said["port"] != "command":
        return ("no answers: %s is no program" % judge, "answers of %s" % ", ".join(names)) if names else None
    first = state.reads(state.iterations[data["iteration"]]) if "candidate" in data else None
    both = [first, judge] if first not in (None, judge) else None
    if names != [judge] and names != both and (names or data["seeds"] > 0):
        before = ", and before them those of %s about known exploits" % first if both else ""
        return "answers of %s%s" % (judge, before), ", ".join(names) or "none"
    if any(of["records_count"] == 0 for of in data.get("answers", [])):
        return "at least one answer of each", "none"


def battery_lists_problem(data):
    names = [of["attack"] for of in data["attacks"]]
    if not all(a.encode() < b.encode() for a, b in zip(names, names[1:])):
        return "attacks in order of name, each once", "another order"
    if any(not len(of["means_micro"]) == len(of["seeds"]) == len(names) for of in data["slices"]):
        return "%d uplifts of each slice" % len(names), "another number"
    if len(data["chains"]) > 10:
        return "at most 10 chains", str(len(data["chains"]))
    for of in data["chains"]:
        if violates(of["chain"]) is None:
            return "a chain of one to three attacks", of["chain"]
    means = [of["mean"] for of in data["chains"]]
    expected = max(means) if means and not data["unscored"] else None
    return None if data.get("u_adv") == expected else ("u_adv %s" % expected, str(data.get("u_adv")))


def measured_problem(data, known):
    found, both = data["exploits"], "candidate" in data
    numbers = [of["exploit"] for of in found]
    if not all(a < b for a, b in zip(numbers, numbers[1:])) or any(number >= known for number in numbers):
        return "exploits below %d in order, each once" % known, "others"
    if data["unscored"] < known - len(found):
        return "each of %d known exploits measured again" % known, "%d left out" % (
            known - len(found) - data["unscored"])
    if any(("before_micro" in of) != both for of in found):
        return "before_micro where a candidate is attacked, and only there", "otherwise"
    worse = 0
    for of in found if both else []:
        before, now = of["before_micro"], of["uplift_micro"]
        worse += now > EXPLOIT if before <= EXPLOIT else now > before + RISE
    return None if data["regressions"] == worse else ("regressions %d" % worse, str(data["regressions"]))


def violates(chain):
    """Whether a chain holds an attack that violates by what it is; None for a text that is no chain."""
    steps = [step.rpartition("@") if step.count("@") == 1 else ("", "", "") for step in chain.split("+")]
    good = all(edit in EDITS and re.fullmatch("0|[1-9][0-9]{0,9}", seed, re.ASCII) and int(seed) < 2 ** 32
               for edit, _, seed in steps)
    return any(edit != "style_strip" for edit, _, _ in steps) if good and len(steps) <= 3 else None


def exploit_problem(state, e):
    it, _, problem = live_iteration(state, e)
    if problem:
        return problem
    data, of = e.data, violates(e.data["chain"])
    if data["uplift_micro"] <= EXPLOIT:
        return "an uplift above 0.05", str(data["uplift_micro"])
    if of is None:
        return "a chain of one to three attacks", data["chain"]
    if data["violation"] == "construction" and not of:
        return "a chain that violates by construction", data["chain"]
    known = state.attacked.get(data["iteration"], Attacked())
    batteries = list(known.batteries.values()) + ([known.in_force] if known.in_force else [])
    ran = next((ran for ran in batteries if ran[1] == data["battery"]), None)
    if ran is None:
        return "a battery of %s" % data["iteration"], data["battery"]
    if ran[2]["rubric_hash"] != data["rubric_hash"]:
        return "rubric_hash %s, as attacked" % ran[2]["rubric_hash"], data["rubric_hash"]
    known = state.exploits[e.experiment]
    return None if known < EXPLOITS_MAX else ("at most %d exploits" % EXPLOITS_MAX, str(known + 1))
