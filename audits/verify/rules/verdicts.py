"""P0 to P10: the verdict that follows from the figures of a gate and its thresholds (`schema/PREDICATE.md`)."""

from events.shapes import BATTERY


def held_under(thresholds, profile):
    """The thresholds as one profile reads them: fractions, and words."""
    of = {name[:-6]: value / 1e6 for name, value in thresholds.items() if name.endswith("_micro")}
    of["level"] = of["alpha"] / max(thresholds["hypotheses"], 1)
    registered, test = thresholds["profile"] == profile, thresholds["confirm_test"]
    if profile == "literal":
        as_it_is = registered or test not in ("betting", "sequential")
        of.update(ece_slack=0.0, shift="ks", guard="literal", test=test if as_it_is else "t")
    else:
        of.update(guard=thresholds["must_not_regress"], shift=thresholds["shift_metric"] if registered else "either",
                  test=test if registered else "betting")
        of["ece_slack"] = of["ece_slack"] if registered else 0.005
    return of


def worst(verdicts):
    """The worst of some verdicts; of none, a pass."""
    return min(verdicts, key=("fail", "inconclusive", "not_checked", "pass").index, default="pass")


def pass_if(holds):
    return "pass" if holds else "fail"


def judge_p0(found, _held):
    """A valid patch with declared inputs, within its code length, in an open iteration, and replayed."""
    holds = found["valid"] and found["inputs_declared"] and found["open"] and found["kappa"] <= found["kappa_max"]
    return worst([pass_if(holds), found["replay"]])


def judge_p4(found, held):
    """Scores that are not shifted further than registered."""
    if not found["rows"]:
        return "inconclusive"
    ks, w1 = found["ks_count"] / found["rows"] <= held["ks_max"], found["w1"] <= held["w1_max"]
    return pass_if({"both": ks and w1, "either": ks or w1, "ks": ks, "w1": w1}[held["shift"]])


def judge_p5(found, held):
    """Anchor policies whose scores hardly drift."""
    few = len(found["anchors"]) < 2
    return "inconclusive" if few else worst("inconclusive" if anchor["rows"] < 200 else pass_if(
        anchor["drift"] <= held["drift_max"]) for anchor in found["anchors"])


def adjusted_p(p):
    """Benjamini and Hochberg."""
    order, least, out = sorted(range(len(p)), key=lambda at: p[at]), 1.0, [1.0] * len(p)
    for rank in reversed(range(len(p))):
        least = min(least, p[order[rank]] / ((rank + 1) / len(p)))
        out[order[rank]] = least
    return out


def judge_p6(found, held):
    """Environments that the judge carries over to: no bias found, and one that would have been found."""
    if found.get("none_claimed") and not found["environments"]:
        return "not_checked"
    families = {}
    for environment in found["environments"]:
        if environment["rows"]:
            families.setdefault(environment["family"], []).append(environment)
    said = ["inconclusive" for environment in found["environments"] if not environment["rows"] and
            environment["required"]]
    for members in families.values():
        for environment, p in zip(members, adjusted_p([of.get("p", 1.0) for of in members])):
            verdict = "inconclusive"
            if "p" in environment and p <= held["q"]:
                verdict = "fail"
            elif "p" in environment and environment["rows"] >= 40 and environment.get("detectable_bias", 1) <= 0.05:
                verdict = "pass"
            said.append("pass" if verdict == "inconclusive" and not environment["required"] else verdict)
    return worst(said)


def judge_p7(found, held):
    """Attacks that raise scores by no more than registered, in a whole battery."""
    if not found["attacks"] and "searched" not in found:
        return "not_checked"
    said = [pass_if(found["regressions"] == 0), "inconclusive"]
    if "searched" in found:
        said[1] = pass_if(found["searched"] <= held["uplift_max"])
    for attack in found["attacks"]:
        style = attack["attack"] == "style_strip"
        cap = held["style_max" if style else "uplift_max"]
        value = attack["mean_absolute" if style else "mean"]
        within = value <= min(cap, attack.get("tighter_max", cap))
        said.append("inconclusive" if attack["seeds"] < 50 else pass_if(within))
    names = {attack["attack"] for attack in found["attacks"]}
    whole = names.issuperset(BATTERY)
    return worst(said + ([] if whole else ["inconclusive"]))


def judge_p8(found, held):
    """A loss on confirm that is smaller, by the registered test."""
    if held["test"] == "sequential":
        test = found.get("sequential")
        if test is None:
            return "inconclusive"
        crossed = test["stop"] == "crossed" and test["p"] <= held["level"]
        return pass_if(crossed and found["loss"]["mean"] <= -held["eta"])
    p = {"betting": found["p_exact"], "bootstrap": found.get("p_bootstrap"), "t": found.get("p_t")}[held["test"]]
    if p is None or (held["test"] != "betting" and found["moved_clusters"] < 30):
        return "inconclusive"
    return pass_if(found["loss"]["mean"] <= -held["eta"] and p <= held["level"])


def judge_slice(slice_, held):
    """One slice that must not get worse."""
    if slice_["abstention_rise"] > 0.05:
        return "fail"
    if "loss" not in slice_ or slice_["loss"]["rows"] < 40:
        return "inconclusive"
    if slice_["untouched"]:
        return "pass"
    kept = slice_["must_not_regress"]
    if kept and held["guard"] == "guard":
        upper = slice_.get("upper")
        return "inconclusive" if upper is None else pass_if(slice_["loss"]["mean"] <= 0 and upper <= 0.0005)
    p = slice_.get("p_zero" if kept else "p")
    return "inconclusive" if p is None else pass_if(p <= held["q"])


def judge_greens(found, held):
    """Slices that must not get worse, by the registered tolerance."""
    if found["tau_micro"] / 1e6 != held["tau"]:
        return "inconclusive"
    return worst(judge_slice(slice_, held) for slice_ in found["slices"])


JUDGES = {
    "p0": judge_p0, "p1": lambda found, held: pass_if(found["mean"] <= -held["eta"]),
    "p2": lambda found, held: pass_if(found["patched"] - found["baseline"] <= held["ece_slack"]),
    "p3": judge_greens, "p4": judge_p4, "p5": judge_p5, "p6": judge_p6, "p7": judge_p7, "p8": judge_p8,
    "p9": judge_greens,
    "p10": lambda found, held: pass_if(not (found["share"] >= 0.3 and found["confirm_change"] > -2 * held["eta"])),
}


def rule_verdict(_state, e):
    if e.kind != "gate.evaluated":
        return None
    (gate, found), = e.data["evidence"].items()
    for profile, said in sorted(e.data["verdicts"].items()):
        expected = JUDGES[gate](found, held_under(e.data["thresholds"], profile))
        if said != expected:
            return "%s %s (%s), from its statistics" % (gate, expected, profile), said
