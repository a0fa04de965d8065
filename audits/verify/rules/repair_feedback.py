"""Feedback and scores of a repair, counted again from executions and rules on record (`schema/REPAIR.md`)."""

import json
from decimal import Decimal

from formats.canonical import encode
from formats.limits import ONE
from rules.repair_workflows import labelled


def rules_of(run):
    """Rules of context and verifier in order: (id, hard, weight in millionths)."""
    both = []
    for text in (run.data["context"], run.data["verifier"]):
        both += json.loads(text, parse_float=Decimal, parse_int=Decimal).get("rules", [])
    return [(of["id"], of.get("hard", True), int(of.get("weight", Decimal(1)) * ONE)) for of in both]


def parts_of(verifier, items, data):
    """What a score is made of."""
    weights = sum(flag["weight_micro"] for flag in data["flags"])
    satisfied = cost = reruns = same = 0
    for at, executions in enumerate(items):
        first = executions[0]
        if "output" in first:
            kept = sum(flag["weight_micro"] for flag in data["flags"] if flag["kept"][at:at + 1] == "1")
            satisfied += kept * ONE // max(1, weights) if data["flags"] else ONE
        tokens = first["cost"]["tokens_in"] + first["cost"]["tokens_out"]
        cost += min(ONE, tokens * ONE // max(1, verifier["cost_reference"]))
        reruns += len(executions) - 1
        same += sum(1 for of in executions[1:] if of.get("output") == first.get("output"))
    count = max(1, len(items))
    return {"cost_micro": cost // count, "critic_micro": sum(data["critic"]) // count,
            "satisfied_micro": satisfied // count, "stability_micro": same * ONE // reruns if reruns else ONE}


def score_of(verifier, items, data):
    """(1 - w) satisfied + w critic - 0.1 cost - 0.1 (1 - stability); None where the filter leaves none."""
    breaks = any(flag["hard"] and not flag["ok"] for flag in data["flags"])
    crashed = data["crashed"]
    if crashed == items if verifier["filter"] == "crashes" else crashed > 0 or breaks:
        return None
    parts, weight = data["parts"], min(verifier["critic_weight"], ONE)
    gain = (ONE - weight) * parts["satisfied_micro"] + weight * parts["critic_micro"]
    loss = 100_000 * (parts["cost_micro"] + ONE - parts["stability_micro"])
    return (gain - loss) // ONE


def document(data, score):
    """What feedback says, as its digest is taken."""
    renamed = [{"confidence": of["confidence_micro"], "kind": of["kind"], "operator": of["operator"],
                "rule": of["rule"], "step": of["step"]} for of in data["blame"]]
    flags = [{"hard": of["hard"], "held": of["kept"].count("1"), "id": of["id"], "items": len(of["kept"]),
              "ok": of["ok"], "weight": of["weight_micro"]} for of in data["flags"]]
    parts = {name[:-len("_micro")]: value for name, value in data["parts"].items()}
    return encode({"blame": renamed, "crashed": data["crashed"], "flags": flags, "observations": data["observations"],
                   "parts": parts, "score": score, "suggestion": data.get("suggestion")})


def flags_problem(run, items, data, held_share):
    rules = rules_of(run)
    if len(rules) != len(data["flags"]):
        return "%d rules" % len(rules), str(len(data["flags"]))
    for (name, hard, weight), flag in zip(rules, data["flags"]):
        kept = flag["kept"]
        if (flag["id"], flag["hard"], flag["weight_micro"]) != (name, hard, weight):
            return "rule %s of context and verifier" % name, flag["id"]
        if len(kept) != len(items) or set(kept) - {"0", "1"}:
            return "1 or 0 for each of %d items" % len(items), kept
        if any(bit == "1" and "output" not in of[0] for bit, of in zip(kept, items)):
            return "nothing that keeps %s where nothing returned" % name, kept
        ok = kept.count("1") * ONE // len(items) >= held_share
        if flag["ok"] != ok:
            return "%s as %s" % (name, str(ok).lower()), str(flag["ok"]).lower()
    return None


def feedback_problem(run, data):
    if run.due() != ("feedback", data["candidate"]):
        return "%s first" % " ".join(map(str, run.due())), "feedback on %s" % data["candidate"]
    if data["verifier_digest"] != run.data["verifier_digest"]:
        return "the verifier of the run, %s" % run.data["verifier_digest"], data["verifier_digest"]
    of = run.candidates[data["candidate"]]
    traces = encode([one["trace_digest"] for one in of.executions])
    evidence = labelled("clover/wf-evidence/v1", traces)
    if data["evidence"] != evidence:
        return "the digest of its traces, %s" % evidence, data["evidence"]
    verifier, each = json.loads(run.data["verifier"]), run.each()
    items = [of.executions[at:at + each] for at in range(0, len(of.executions), each)]
    problem = flags_problem(run, items, data, verifier["held_share"])
    if problem:
        return problem
    crashed = sum(1 for one in items if "crash" in one[0])
    if data["crashed"] != crashed:
        return "%d items that returned nothing" % crashed, str(data["crashed"])
    if len(data["critic"]) not in (0, len(items)) or any(not 0 <= one <= ONE for one in data["critic"]):
        return "what a critic says of each item, or of none", str(len(data["critic"]))
    parts = parts_of(verifier, items, data)
    if data["parts"] != parts:
        return "parts %s" % encode(parts), encode(data["parts"])
    digest = labelled("clover/wf-feedback/v1", document(data, score_of(verifier, len(items), data)))
    if data["feedback_digest"] != digest:
        return "the digest of what it says, %s" % digest, data["feedback_digest"]
    return None


def scored_problem(run, data):
    if run.due() != ("score", data["candidate"]):
        return "%s first" % " ".join(map(str, run.due())), "the score of %s" % data["candidate"]
    said = run.candidates[data["candidate"]].feedback
    if data["feedback_digest"] != said["feedback_digest"]:
        return "the feedback %s" % said["feedback_digest"], data["feedback_digest"]
    score = score_of(json.loads(run.data["verifier"]), len(run.data["items"]), said)
    if data.get("score_micro") != score:
        return str(score), str(data.get("score_micro"))
    hard = all(flag["ok"] or not flag["hard"] for flag in said["flags"])
    reaches = score is not None and score >= run.data["terms"]["theta_micro"]
    passes = hard and said["crashed"] == 0 and reaches
    if data["passes"] != passes:
        return "a pass" if passes else "no pass", str(data["passes"]).lower()
    return None
