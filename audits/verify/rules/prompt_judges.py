"""Rules of patches that change what the judge is told, and of the judge that is told so (`schema/SCORING.md`)."""

import io

from formats.blake3 import blake3_stream
from formats.tree import sha256
from events.commitments import composite_of
from history.records import Decisions
from rules.releases import judge_prompt, leaves_after_diff

NOTHING = sha256(b"").hex()
SAME = ("asked", "decoding", "evidence_schema", "extractor", "known", "model", "port", "scale", "tool_snapshot")


def derived_name(root, prompt_hash):
    return "%s+%s" % (root, prompt_hash[:12])


def rule_derived(state, e):
    """A judge that is another but for what it is told is that judge indeed."""
    if e.kind != "judge.registered" or e.experiment is None or not state.asks("derived_judge"):
        return None
    data = e.data
    is_asked = data["port"] == "endpoint" and state.asks("asked_scores")
    if "repeat" in data and ("of" not in data or not is_asked):
        return "a repeat only of a judge behind HTTP that is told the prompt of a run", "one"
    if "of" not in data and state.asks("own_prompt"):
        return own_problem(data)
    if "of" not in data:
        return ("a prompt only of a judge that is another but for it", "one of its own") if "prompt" in data else None
    root, _ = state.judges.get(e.experiment, {}).get(data["of"], ({"of": None}, 0))
    if "of" in root:
        return "judge %s, registered before as one of its own" % data["of"], "none"
    if "repeat" in data and not 1 <= data["repeat"] <= 8:
        return "a repeat from 1 to 8", str(data["repeat"])
    name = derived_name(data["of"], data["prompt_hash"]) + (".%d" % data["repeat"] if "repeat" in data else "")
    if data["judge"] != name:
        return "the name %s" % name, data["judge"]
    if data["port"] != "command" and not is_asked:
        return "a program, which can be told something", data["port"]
    if "prompt" not in data:
        return "the prompt that it is told", "none"
    if any(data.get(name) != root.get(name) for name in SAME):
        return "the model, decoding, extractor and known data of %s" % data["of"], "others"


def own_problem(data):
    """A program that is told a text of its own keeps that text, and a prompt's hash without its text says nothing."""
    is_program, is_told = data["port"] in ("command", "endpoint"), data["prompt_hash"] != NOTHING
    if "prompt" not in data:
        return ("the text that has the prompt_hash %s" % data["prompt_hash"], "none") if is_program and is_told else None
    if not is_program:
        return "a program, which can be told something", data["port"]
    if not is_told or data["prompt"]["bytes"] == 0:
        return ("a prompt that holds a text, and its hash",
                "%d bytes, prompt_hash %s" % (data["prompt"]["bytes"], data["prompt_hash"]))


def prompt_of(leaves_, plan):
    """(text, hash) of what the judge is told."""
    told = judge_prompt(leaves_, plan.get("design", {}).get("topics", ())).encode("utf-8")
    return told, sha256(b"clover/prompt/v1\0judge_prompt/1\n", told).hex()


def diffs_of(it, candidate):
    """What the patches of a candidate change, in order of their names."""
    patches = [it.patches[name] for name in sorted(it.patches, key=lambda v: v.encode("utf-8"))]
    hashes = [patch["patch_hash"] for patch in patches]
    if candidate in hashes:
        return [patch["diff"] for patch in patches if patch["patch_hash"] == candidate]
    pairs = [{a, b} for a in hashes for b in hashes if a < b and composite_of([a, b]) == candidate]
    return [patch["diff"] for patch in patches if pairs and patch["patch_hash"] in pairs[0]]


def changed(state, e, iteration, candidate):
    """(text, hash, text before) of what a candidate tells the judge, where that is another than before, or None."""
    it = state.iterations.get(iteration)
    diffs = diffs_of(it, candidate) if it else []
    base = it and state.rubrics.get(e.experiment, {}).get(it.rubric_hash)
    if not diffs or not base:
        return None
    after, plan = base[1], state.plan_of(it) or {}
    for diff in diffs:
        after = leaves_after_diff(after, diff, base[0])
    told, before = prompt_of(after, plan), prompt_of(base[1], plan)
    return told + (before[0],) if told != before else None


def first_judge(state, e, iteration):
    """The judge of an iteration as it was registered, or None."""
    of = state.judges.get(e.experiment, {})
    named = (state.plan_of(state.iterations[iteration]) or {}).get("design", {}).get("judge")
    own = [data for data, _ in of.values() if "of" not in data]
    return of[named][0] if named in of else own[0] if named is None and len(own) == 1 else None


def judge_of(state, e, iteration, told):
    """The judge that a candidate is asked of, as it has to be registered, or None where nobody can be told."""
    judge = first_judge(state, e, iteration)
    if judge is None:
        return None
    root, (text, hash_, _) = judge.get("of", judge["judge"]), told
    blob, length = blake3_stream(io.BytesIO(text).read)
    prompt = {"blake3": blob.hex(), "bytes": length, "media": "text/plain"}
    return dict(judge, judge=derived_name(root, hash_), of=root, prompt=prompt, prompt_hash=hash_)


def rule_rescored(state, e):
    """Whatever is said of a candidate that changes what the judge is told is of the judge that was told so."""
    kinds = ("scores.recomputed", "calibrator.fitted", "gate.evaluated", "battery.evaluated")
    if e.kind not in kinds or e.experiment is None or not state.asks("rescored_anew"):
        return None
    data = e.data["terms"].get("iteration", {}) if e.kind == "calibrator.fitted" else e.data
    candidate, iteration = data.get("candidate"), data.get("iteration")
    if candidate is None or iteration is None:
        return None
    told = changed(state, e, iteration, candidate)
    if e.kind == "scores.recomputed":
        return recomputed_problem(state, e, told)
    if told is None or e.kind == "gate.evaluated" and e.data["evidence"].get("p0", {}).get("valid") is False:
        return None
    asked = state.anew.get((iteration, candidate))
    if asked is None:
        return "scores.recomputed of the judge that was told what the candidate changes", "none"
    judge = {"calibrator.fitted": e.data.get("terms", {}).get("judge"), "battery.evaluated": e.data.get("judge")}
    found = judge.get(e.kind, asked)
    return None if found == asked else ("%s of %s, which was asked anew" % (e.kind, asked), found)


def recomputed_problem(state, e, told):
    data = e.data
    if told is None:
        if "judge" in data or data["rescored"]:
            return ("no judge asked anew for a candidate that changes nothing that it is told",
                    "%d rescored, judge %s" % (data["rescored"], data.get("judge", "none")))
        return None
    judge = judge_of(state, e, data["iteration"], told)
    if judge is None:
        return "a registered judge of the iteration", "none"
    own = first_judge(state, e, data["iteration"])
    if state.asks("rendered_prompt") and "of" not in own and own["prompt_hash"] not in (NOTHING, sha256(told[2]).hex()):
        return ("a judge that was told nothing, or what the rubric of the iteration renders",
                "%s, which is told a text of its own" % own["judge"])
    name = judge["judge"]
    if data.get("judge") != name:
        return "scores of %s, which is told what the candidate changes" % name, data.get("judge", "none")
    known, scores = state.judges[e.experiment].get(name, (None, 0))
    if known != judge:
        return "judge %s registered as the candidate tells it" % name, "another" if known else "none"
    if data["recomputed"] or not data["rescored"]:
        return ("every row rescored, and none recomputed from old answers",
                "%(recomputed)d recomputed, %(rescored)d rescored" % data)
    if scores < data["rescored"]:
        return "%d scores of %s on record first" % (data["rescored"], name), str(scores)


def rule_answered(state, e):
    """A judge that was asked anew for a sealed candidate answers before confirm labels are shown."""
    if e.kind != "score.recorded" or e.experiment is None or not state.asks("rescored_before"):
        return None
    judge, name = e.data["judge"], state.open_iteration(e.experiment)
    known, _ = state.judges.get(e.experiment, {}).get(judge, ({}, 0))
    decided = state.decisions.get(name, Decisions()) if name is not None and "of" in known else None
    if not decided or not decided.sealed or not decided.unsealed:
        return None
    if any(state.anew.get((name, one["candidate"])) == judge for one in decided.sealed[2]):
        return "scores of %s before confirm was unsealed" % judge, "unsealed at seq %d" % decided.unsealed[0]


def rule_runs(state, e):
    """What runs is judged by the judge that is told its prompt."""
    if e.kind != "deployment.activated" or e.experiment is None or not state.asks("judged_prompt"):
        return None
    versions, commit = e.data["versions"], state.commits.get(e.data["commit"])
    hash_ = versions["prompt_hash"]
    told = [name for name, (data, _) in state.judges.get(e.experiment, {}).items()
            if "of" in data and data["prompt_hash"] == hash_]
    it = commit and state.iterations.get(commit[0])
    base = it and state.rubrics.get(e.experiment, {}).get(it.rubric_hash)
    is_changed = base and prompt_of(base[1], state.plan_of(it) or {})[1] != hash_
    if (told or is_changed) and versions["judge"] not in told:
        return "a judge that is told the prompt %s" % hash_, versions["judge"]
