"""Rules of labels, seals, splits and scores (`schema/SEAL.md`, `schema/SPLITS.md`, `schema/SCORING.md`)."""

import hashlib

from formats.limits import show
from formats.fields import b64, micros
from events.entry import natural_key_of
from events.shapes import GAP_MIN, PARTS, REPLAYED_MIN
from history.records import draw_of_row, row_of_draw
from history.labels import matching_seals, seals_of
from rules.newest_entries import tainted_judges_problem


def rule_seal(state, e):
    if e.kind not in ("label.revealed", "seal.accepted") or state.origin is None:
        return None
    seals = seals_of(state, e)
    if not seals:
        return "an earlier label.sealed of this row", "none"
    if e.kind == "label.revealed" and (e.experiment, e.data["design"], e.data["row"]) not in state.accepted:
        return "an earlier seal.accepted of this row", "none"
    if e.kind == "label.revealed" and not matching_seals(state, e):
        return "the value and salt committed to at seq %d" % seals[0].seq, "another commitment"
    charged = state.charges.get(e.data.get("charge")) if e.data.get("charge") in state.peeks else None
    if e.kind == "label.revealed" and charged is not None and state.asks("sealed_when_charged"):
        first = min(seal.seq for seal in matching_seals(state, e))
        if first >= charged:
            return "a label.sealed of this row before its charge at seq %d" % charged, "one at seq %d" % first
    if e.kind == "seal.accepted" and e.data["envelope_sha256"] not in [seal.envelope for seal in seals]:
        return "envelope_sha256 %s" % seals[0].envelope, e.data["envelope_sha256"]


def rule_charge(state, e):
    if e.kind != "label.revealed":
        return None
    position, size = state.charges.get(e.data["charge"]), e.seen[0] if e.seen else 0
    if position is None:
        return "a budget.charged", e.data["charge"]
    if position >= size:
        return "a charge at a seq below the seen size %d" % size, "seq %d" % position
    if e.data["charge"] not in state.peeks:
        return "a charge to an account whose unit is peek", e.data["charge"]
    paid = state.paid_for.get(e.data["charge"]) if e.experiment is not None else None
    if state.asks("one_charge") and paid not in (None, state.labels_of(e.experiment, e.data["design"])):
        return "a charge that paid for no other labels", "one that paid for %s" % (paid,)


def rule_design(state, e):
    key = (e.experiment, e.data.get("design"))
    if e.kind == "label.design_registered" and e.experiment is not None:
        names = [stratum["stratum"] for stratum in e.data.get("strata", [])]
        if key in state.first_label:
            return "registration before the first label", "%s, labelled since seq %d" % (key[1], state.first_label[key])
        if names and e.data["purpose"] == "audit" and state.asks("even_probes"):
            return "a design for audits without strata: an audit counts each of its probes alike", "strata"
        return None if all(a < b for a, b in zip(names, names[1:])) else ("strata in order, each once", "another order")
    if e.kind not in ("label.recorded", "label.sealed") or e.experiment not in state.governed:
        return None
    if key not in state.designs:
        return "a registered label design", key[1]
    if e.kind == "label.sealed" and draw_of_row(e.data["row"]) is None:
        return "a row policy/item/draw", e.data["row"]


def in_units(value):
    """Millionths in words, as the other verifier has them."""
    whole, rest = divmod(abs(value), 1_000_000)
    digits = ("%06d" % rest).rstrip("0")
    return ("-" if value < 0 else "") + "%d" % whole + ("." + digits if digits else "")


def rule_label_scale(state, e):
    if e.experiment is None or not state.asks("labels_on_scale"):
        return None
    if e.kind in ("label.recorded", "label.revealed"):
        low, high = state.label_scales.get(e.experiment, (None, None))
        value = e.data["value_micro"]
        if low is not None and not low <= value <= high:
            return "a label from %s to %s" % (in_units(low), in_units(high)), in_units(value)
    if e.kind != "label.scale_declared":
        return None
    low, high = e.data["low_micro"], e.data["high_micro"]
    if low >= high:
        return "a scale whose ends are in order", "%s to %s" % (in_units(low), in_units(high))
    sealed = [key for key in state.sealed_of if key[0] == e.experiment]
    if sealed:
        first = min(state.first_label[key] for key in sealed)
        return ("a scale that is said before a label is sealed",
                "one after labels of a design that has sealed ones, since seq %d" % first)
    least, most = state.label_ranges.get(e.experiment, (low, high))
    if not (low <= least and most <= high):
        return "a scale that holds every label on record", "labels from %s to %s" % (in_units(least), in_units(most))


def rule_score_scale(state, e):
    if e.experiment is None or not state.asks("scores_on_scale"):
        return None
    if e.kind == "score.recorded":
        low, high = state.score_scales.get((e.experiment, e.data["judge"]), (None, None))
        value = e.data["score_micro"]
        if low is None or low <= value <= high:
            return None
        return ("a score from %s to %s, the scale of %s" % (in_units(low), in_units(high), e.data["judge"]),
                in_units(value))
    if e.kind != "score.scale_declared":
        return None
    low, high, judge = e.data["low_micro"], e.data["high_micro"], e.data["judge"]
    if low >= high:
        return "a scale whose ends are in order", "%s to %s" % (in_units(low), in_units(high))
    if state.scored_at.get(e.experiment, {}).get(judge):
        return "a scale that is said before the first score of %s" % judge, "one after it"
    said, _ = state.judges.get(e.experiment, {}).get(judge, (None, 0))
    if said is not None and said["port"] != "recorded":
        return "a judge whose scores are imported, as %s is not" % judge, said["port"]


def rule_purpose(state, e):
    purpose = state.designs.get((e.experiment, e.data.get("design")))
    if e.kind == "label.recorded":
        if purpose not in (None, e.data["purpose"]):
            return "a label for %s" % purpose, "an open one for %s" % e.data["purpose"]
        row = e.experiment, row_of_draw(e.data["policy"], e.data["item"], e.data["draw"])
        served = state.draws.get(row, set()) - {e.data["purpose"]}
        others = [design for design in state.probe_designs.get(row, ()) if design != e.data["design"]]
        if e.data["purpose"] == "audit" and others and not served and state.asks("one_probe"):
            return "a draw that is a probe of one design", "one of %s" % others[0]
        if e.data["purpose"] == "audit" and not served:
            problem = probe_problem(state, e, (e.data["policy"], e.data["item"]))
            if problem:
                return problem
    elif e.kind == "label.sealed":
        if purpose == "calibrate":
            return "a design for audit or confirm", "%s, for calibrate" % e.data["design"]
        served = state.draws.get((e.experiment, e.data["row"]), set())
        draw = draw_of_row(e.data["row"])
        served = served if draw else served - {"sealed"}
        if draw and purpose == "audit" and not served:
            problem = probe_problem(state, e, draw[:2])
            if problem:
                return problem
    else:
        return None
    return ("a draw whose labels serve one purpose", "one that served " + ", ".join(sorted(served))) if served else None


def probe_problem(state, e, prompt):
    """A prompt of a policy is a probe of one design."""
    designs = state.prompt_designs.get((e.experiment,) + tuple(prompt), set())
    if designs and e.data["design"] not in designs and state.asks("one_prompt"):
        return "a prompt that is a probe of one design", "%s of %s, a probe of %s" % (prompt[1], prompt[0], min(designs))


def rule_split(state, e):
    split, formed = state.splits.get(e.experiment), state.formed.get(e.experiment, {})
    if e.kind == "label.recorded":
        confirm = (e.experiment, e.data["item"]) in state.confirm
        return ("no open label of a confirm cluster", e.data["item"]) if confirm else None
    if e.kind == "label.sealed" and state.designs.get((e.experiment, e.data["design"])) == "confirm":
        if split or not formed:
            return "splits.formed before confirm labels", "none, or clusters listed since"
        draw = draw_of_row(e.data["row"])
        listed = draw is None or (e.experiment, draw[1]) in state.confirm
        return None if listed else ("a cluster listed in confirm", draw[1])
    if e.kind == "splits.listed":
        problem = None if e.experiment is None else listing_problem(e, split, formed)
        return problem or place_problem(state, e)
    if e.kind == "splits.formed" and e.experiment is not None:
        return forming_problem(e, split)


def listing_problem(e, split, formed):
    name, part, clusters = e.data["split"], e.data["part"], e.data["clusters"]
    if split and split.name != name:
        return "clusters of %s, which is not formed" % split.name, name
    if name in formed:
        return "a split that is not formed", "%s, formed at seq %d" % (name, formed[name])
    count, last = (split.parts[part].size, split.last[part]) if split else (0, None)
    if e.data["first"] != count:
        return "first %d" % count, "first %d" % e.data["first"]
    order = ([] if last is None else [last]) + clusters
    if not clusters or not all(a < b for a, b in zip(order, order[1:])):
        return "clusters in ascending order, each once", "another order"
    by = e.data.get("by")
    if split and split.by != by:
        return "listings by one rule, as the first: %s" % show(split.by), show(by)
    for cluster in clusters if by else ():
        if not belongs(cluster, part, by):
            return "clusters that seed %d puts into %s" % (by["seed"], part), cluster


def belongs(cluster, part, by):
    """Whether the hash of a cluster puts it into a part; what a later block of time takes is not for the hash."""
    def hashed(modulus):
        message = ("%s-%d-%d" % (cluster, by["seed"], modulus)).encode("utf-8")
        return int.from_bytes(hashlib.blake2b(message, digest_size=8).digest(), "big") % modulus
    confirm = hashed(4) == 3 if by["separation"] == "hashed" else part == "confirm"
    return confirm if part == "confirm" else not confirm and (hashed(3) == 2) == (part == "dev")


def place_problem(state, e):
    for cluster in e.data["clusters"]:
        key = (e.experiment, cluster)
        if (e.experiment, e.data["split"], cluster) in state.placed:
            return "a cluster in one part", cluster
        if e.data["part"] == "confirm" and (key in state.confirm or key in state.open_clusters):
            return "a confirm cluster that is fresh: in confirm once, and without open labels", cluster


def forming_problem(e, split):
    data = e.data
    if split is None or split.name != data["split"]:
        return "listed clusters of %s" % data["split"], "none"
    by = {name: data[name] for name in ("cluster_rule", "seed", "separation")}
    if split.by and split.by != by:
        return "%s, as listed" % show(split.by), show(by)
    for part in PARTS:
        size, root = split.parts[part].size, b64(split.parts[part].root(split.parts[part].size))
        if (data[part]["count"], data[part]["root"]) != (size, root):
            return "%d clusters of %s under %s" % (size, part, root), "%(count)d under %(root)s" % data[part]
    gap = data.get("gap_seconds")
    if data["separation"] == "hashed":
        good = data["gap"] == "not_checked" and gap is None
        return None if good else ("gap not_checked where confirm is hashed", "a gap")
    if data["gap"] != "pass" or gap is None or gap < GAP_MIN:
        return "a checked gap of at least %d s" % GAP_MIN, str(gap)
    ordered = "t1" in data and "t2" in data and micros(data["t1"]) < micros(data["t2"])
    return None if ordered else ("t1 before t2", "another order")


def relabelled(state, e):
    """A rater gives one draw one label for calibration, whatever design it names."""
    row = row_of_draw(e.data["policy"], e.data["item"], e.data["draw"])
    said = state.said_of.get((e.experiment, row, e.data["rater"]), {})
    for design in sorted(said):
        if design != e.data["design"] and said[design] not in (None, e.data["value_micro"]):
            expected = "%d, as the same rater labelled the same draw under %s" % (said[design], design)
            return expected, str(e.data["value_micro"])


def rule_score_once(state, e):
    if e.kind == "label.recorded" and e.data["purpose"] == "calibrate" and e.experiment is not None:
        return relabelled(state, e) if state.asks("one_label") else None
    if e.kind != "score.conflict":
        return None
    if e.data["recorded_micro"] == e.data["score_micro"]:
        return "another score than the recorded one", str(e.data["score_micro"])
    parts = [e.data[name] for name in ("judge", "policy", "item", "draw")]
    scored, named = natural_key_of("score.recorded", e.experiment, *parts), bytes.fromhex(e.data["recorded"])
    if named in state.ids and state.scored.get(named) != e.data["recorded_micro"]:
        return "the score of the event it names", "%d" % e.data["recorded_micro"]
    return None if scored in state.natural_keys else ("an earlier score.recorded of that key", "none")


def rule_compared(state, e):
    """Numbers of a comparison of judges fit each other, and a plan named it before the first label."""
    if e.kind != "judge.compared" or e.experiment is None or not state.asks("compared_judges"):
        return None
    data, pair = e.data, (e.data["first"], e.data["second"])
    if pair[0] == pair[1]:
        return "two judges", "%s twice" % pair[0]
    for judge in pair:
        if not state.scored_at.get(e.experiment, {}).get(judge):
            return "scores of %s" % judge, "none"
    if data["through_seq"] >= e.position:
        return "entries below %d" % e.position, "entries through %d" % data["through_seq"]
    if not 1 <= data["items"] <= data["rows"]:
        return "1 to %d items, as there are rows" % data["rows"], str(data["items"])
    problem = doubts_problem(state, e) if state.asks("doubted_judges") else None
    problem = problem or (tainted_judges_problem(state, e) if state.asks("tainted_judges") else None)
    problem = problem or compared_problem(data, pair, state.asks("doubted_judges"))
    return problem or ("plan" in data and comparison_plan_problem(state, e, pair)) or None


def late_beside_labels(state, e):
    """Rows of labelled prompts that a judge scored once a label of the policy could be read."""
    found = 0
    for (experiment, policy), judges in state.judged_rows.items():
        if experiment == e.experiment:
            labelled = state.row_labels.get((experiment, policy), ())
            rows = {row for judge in (e.data["first"], e.data["second"]) for row in judges.get(judge, (0, {}))[1]}
            found += sum(item in labelled for item, _ in rows)
    return found


def doubts_problem(state, e):
    """What stands against a claim is as many late rows as the record has, and at least what they could move."""
    data, said = e.data, e.data.get("doubts")
    if said is None:
        return "doubts: what late and missing scores could change", "none"
    late = late_beside_labels(state, e)
    if said["late"] != late:
        return "%d late rows, which a judge scored once labels could be read" % late, str(said["late"])
    low, high = state.label_scales.get(e.experiment, (0, 1000000))
    missing, span = said["unscored"] + data["unpaired"], (high - low) / 1e6
    least = span * span * (2 * late + missing) / max(data["rows"], 1)
    if said["worst"] < least * (1 - 1e-9):
        return "worst %s, by %d late rows and %d without a score of both" % (least, late, missing), str(said["worst"])


def compared_problem(data, pair, asks_doubts):
    one, other, difference = data["first_error"], data["second_error"], data["difference"]
    if one < 0 or other < 0:
        return "errors of at least 0", "others"
    if abs(difference - (one - other)) > 1e-9 * max(one, other):
        return "the error of the first less that of the second", str(difference)
    if not data["low"] <= difference <= data["high"]:
        return "a difference within its interval", str(difference)
    # Of what no plan named nobody may claim anything.
    doubts = data.get("doubts") if "plan" in data and asks_doubts else None
    worst = 0 if doubts is None else float("inf") if doubts["chosen"] else doubts["worst"]
    better = pair[1] if data["low"] - worst > 0 else pair[0] if data["high"] + worst < 0 else None
    if data.get("better") != better:
        return "better %s, as the interval says" % (better or "none"), data.get("better") or "none"


def comparison_plan_problem(state, e, pair):
    plan, named = e.data["plan"], "judge compare "
    record_ = state.manifests.get(plan["manifest"])
    version = record_.in_force() if record_ else None
    if version is None or version.manifest["experiment"] != e.experiment:
        return "a plan of this experiment that is in force", "none"
    pairs = version.manifest.get("compare", {}).get("pairs", [])
    texts = version.manifest.get("analysis", {}).get("secondary", [])
    all_named = ["%(first)s %(second)s" % of for of in pairs]
    all_named += [text[len(named):] for text in texts if text.startswith(named)]
    if "%s %s" % pair not in all_named and "%s %s" % pair[::-1] not in all_named:
        return "%s%s %s among its secondary analyses, or in its section compare" % ((named,) + pair), "none"
    if plan["comparisons"] != len(all_named):
        return "%d comparisons, as it names" % len(all_named), str(plan["comparisons"])
    first = min(state.calibrated.get(e.experiment, {}).values(), default=None)
    if first is not None and version.since >= first:
        expected = "a plan from before the first label for calibration, at seq %d" % first
        return expected, "one in force since seq %d" % version.since
    if (e.experiment, frozenset(pair)) in state.compared:
        return "no plan: a comparison of these judges that a plan named was seen before", plan["manifest"]


def rule_judge(state, e):
    if e.kind not in ("battery.evaluated", "evidence.recorded", "score.replayed"):
        return None
    if e.kind == "evidence.recorded" and e.data["records_count"] == 0:
        return "at least one record", "none"
    if e.kind == "score.replayed" and e.data["keys"] < REPLAYED_MIN:
        return "at least %d keys" % REPLAYED_MIN, str(e.data["keys"])
    if e.kind == "score.replayed" and e.data["mismatches"] > e.data["keys"]:
        return "no more mismatches than keys", "%(mismatches)d of %(keys)d" % e.data
    registered = natural_key_of("judge.registered", e.experiment, e.data["judge"])
    return None if registered in state.natural_keys else ("an earlier judge.registered of that judge", "none")
