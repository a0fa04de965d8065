"""Rules of deployments, recalibrations, guardrails and rollbacks (`schema/DEPLOYMENT.md`)."""

from formats.limits import Refused, show
from formats.tree import sha256
from events.shapes import GUARDRAILS
from history.records import Deploys
from rules.rubrics import rubric_hash
from rules.verdicts import held_under, judge_p4, judge_p5, judge_p6, pass_if, worst
from rules.iterations import thresholds_of
from rules.releases import approvals_problem, judge_prompt, leaves_after_diff, told_plan


def rule_deployment(state, e):
    if e.kind != "deployment.activated" or e.experiment is None:
        return None
    data, of, versions = e.data, state.deploys.get(e.experiment, Deploys()), e.data["versions"]
    commit = data["commit"]
    if (e.experiment, commit) not in state.rubric_ids:
        return "a prompt.committed or rubric.registered of %s" % e.experiment, commit
    hash_, _ = state.rubric_ids[e.experiment, commit]
    version, leaves_ = state.rubrics[e.experiment][hash_]
    back = [one[3] for one in of.all if one[1]["commit"] == commit and one[3] is not None]
    if back:
        return ("a commit that was not rolled back; accept the patch anew",
                "%s, rolled back at seq %d" % (version, max(back)))
    if state.heads[e.experiment][0] != commit:
        return "the head", version
    accepted = state.acceptances.get(state.commits[commit][1]) if commit in state.commits else None
    if accepted is None and of.all:
        return "a committed prompt; the first rubric is deployed first or never", version
    plan = told_plan(state, e.experiment, commit) or {}
    told = judge_prompt(leaves_, plan.get("design", {}).get("topics", ())).encode("utf-8")
    expected = (hash_, sha256(b"clover/prompt/v1\0judge_prompt/1\n", told).hex(), version,
                of.models.get(versions["judge"], versions["model"]))
    found = (data["rubric_hash"], versions["prompt_hash"], versions["rubric_version"], versions["model"])
    if expected != found:
        return "rubric_hash, prompt_hash, rubric_version and model %s" % show(expected), show(found)
    problem = accepted and (approvals_problem(state, accepted) or unwaived_problem(state, e, accepted))
    return problem or running_problem(state, e, of, leaves_)


def unwaived_problem(state, e, accepted):
    """What nobody could check before acceptance needs a waiver that was granted after it."""
    decided, it = state.decisions.get(accepted.iteration), state.iterations.get(accepted.iteration)
    patch = it and it.patches.get(accepted.patch)
    for gate, code in (("p0", "CLOVER.J2"), ("p7", "ADV")):
        said = decided and patch and decided.gates.get((patch["patch_hash"], "dev", gate))
        seq, end = state.granted.get((e.experiment, code), (-1, 0))
        if said and said[2] == "not_checked" and not (seq > accepted.seq and e.recorded_at < end):
            return "a waiver of %s by two keys after seq %d" % (code, accepted.seq), "one at seq %d" % seq


def judged_as(state, e, leaves_):
    """Hashes under which what is activated may have been judged.

    They are its own, and that under the version from which its iteration started.
    """
    it = state.iterations.get(state.commits.get(e.data["commit"], (None,))[0])
    base = it and state.rubrics.get(e.experiment, {}).get(it.rubric_hash)
    return {e.data["rubric_hash"]} | ({rubric_hash(leaves_after_diff(leaves_, [], base[0]))} if base else set())


def running_problem(state, e, of, leaves_):
    """Protocol, calibrator, recalibration and what ran before."""
    data, versions = e.data, e.data["versions"]
    if leaves_["sdp_version"] != {"text": versions["sdp_version"]}:
        return "sdp_version %s, as in the rubric" % leaves_["sdp_version"]["text"], versions["sdp_version"]
    force = state.sdp_in_force(e.recorded_at)
    if force and force[0] != versions["sdp_version"]:
        return "a rubric by protocol %s, in force since seq %d" % (force[0], force[2]), versions["sdp_version"]
    if any(state.bridge.get(kind, ("",))[0] == "fail" for kind in ("construct", "pte", "stability")):
        return "A0 that does not fail", "fail"
    judge = versions["judge"]
    if (judge, versions["calibrator"]) not in of.fits:
        return "a calibrator that was fitted for %s" % judge, versions["calibrator"]
    seq, rubrics = of.fits[judge, versions["calibrator"]][0], of.calibrators[versions["calibrator"]][2]
    if force and seq <= force[2]:
        return "a calibrator fitted after %s, which voids those before" % force[0], "one fitted at seq %d" % seq
    saw = judged_as(state, e, leaves_)
    registered = state.judges.get(e.experiment, {}).get(judge)
    own = set().union(*(fit[1] for (whose, _), fit in of.fits.items() if whose == judge))
    if state.asks("text_of_judge") and registered and "of" in registered[0] and not saw & own:
        return "a judge that is told the prompt of this version, with which its criteria were evaluated", judge
    any_judge = state.asks("evaluated_judge")
    evaluated = any(saw & set(known[2]) and (any_judge or known[0] == judge) for known in of.calibrators.values())
    accepted = data["commit"] in state.commits
    if accepted and evaluated and not saw & set(rubrics) and "recalibration" not in data:
        return "the calibrator with which its gates were evaluated, or a recalibration", versions["calibrator"]
    try:
        why, named = recalibration_needed(state, e, of, leaves_), data.get("recalibration")
    except Refused as refused:
        return refused.expected, refused.found
    if why and named is None:
        return "a recalibration, because %s" % why, "none"
    said = of.recalibrations.get(named)
    fits = said and (said["commit"], said["calibrator"], said["judge"]) == (
        data["commit"], versions["calibrator"], versions["judge"])
    if named is not None and not fits:
        return "a recalibration.completed of this commit, judge and calibrator", named
    if data.get("previous") != of.active:
        return "previous %s" % of.active, show(data.get("previous"))


def recalibration_needed(state, e, of, leaves_):
    running, commit = of.get(of.active), e.data["commit"]
    if running and running[1]["versions"]["model"] != e.data["versions"]["model"]:
        return "the model was %s" % running[1]["versions"]["model"]
    before = running[1]["commit"] if running else state.parents.get(commit)
    if before is None:
        return None
    if (e.experiment, before) not in state.rubric_ids:
        raise Refused("what it follows", "none")
    old = state.rubrics[e.experiment][state.rubric_ids[e.experiment, before][0]][1]
    return next(("%s changes" % path for path in sorted(leaves_) if leaves_[path] != old.get(path) and (
        path.startswith(("guards.", "abstention.")) or path.endswith(".required"))), None)


def rule_recalibration(state, e):
    if e.kind != "recalibration.completed" or e.experiment is None:
        return None
    data, of = e.data, state.deploys.get(e.experiment, Deploys())
    if (e.experiment, data["commit"]) not in state.rubric_ids:
        return "a prompt.committed or rubric.registered of %s" % e.experiment, data["commit"]
    since, design = state.rubric_ids[e.experiment, data["commit"]][1], (e.experiment, data["design"])
    if data["labels"] < 100:
        return "at least 100 fresh labels", str(data["labels"])
    given = state.open_of.get(design, 0) + state.revealed_of.get(design, 0)
    if state.design_seqs.get(design, -1) <= since or state.designs.get(design) == "confirm":
        given = 0
    if given < data["labels"]:
        return "%d open labels of %s, registered after seq %d" % (data["labels"], data["design"], since), str(given)
    if ("computed" in data) == ("transport" in data):
        return "what it was computed from, or a transport.tested", "both" if "computed" in data else "neither"
    problem = computed_problem(state, e, data) if "computed" in data else audited_problem(of, data, since)
    if problem:
        return problem
    anchors = data["anchors"]["anchors"]
    if len(anchors) < 2:
        return "2 anchor policies", str(len(anchors))
    for anchor in anchors:
        if anchor["rows"] < 200 or anchor["drift"] > 0.01:
            return "a drift of at most 0.01 on 200 rows of %s" % anchor["policy"], show(anchor)


def computed_problem(state, e, data):
    said, plan = data["computed"], told_plan(state, e.experiment, data["commit"])
    if not plan:
        return "a rubric with the plan of an iteration", "none"
    if said["thresholds"] != {**thresholds_of(plan), "profile": "recommended", "shift_metric": "either"}:
        return "the thresholds of the plan", "others"
    if not said["transport"]["environments"] or not said["transport"]["environments"][0]["required"]:
        return "residuals of all fresh labels first, which must pass", "none"
    verdict = judge_p6(said["transport"], held_under(said["thresholds"], "recommended"))
    if verdict != "pass":
        return "residuals on fresh labels that pass", verdict


def audited_problem(of, data, since):
    if (data["judge"], data["calibrator"]) not in of.fits:
        return "a calibrator that was fitted for %s" % data["judge"], data["calibrator"]
    calibrator, seq, said = of.transports.get(data["transport"], (None, -1, "none"))
    if calibrator != data["calibrator"] or seq <= since or said != "pass":
        return "a transport.tested of this calibrator after seq %d that passed" % since, said


def guardrail_verdicts(found, thresholds):
    held = held_under(thresholds, "recommended")
    said = dict.fromkeys(GUARDRAILS, "not_checked")
    if "abstention" in found:
        said["abstention"] = pass_if(found["abstention"]["live"] - found["abstention"]["accepted"] <= 0.05)
    if "anchors" in found:
        said["anchors"] = judge_p5(found["anchors"], held)
    if "environments" in found:
        said["environments"] = judge_p6(found["environments"], held)
    if "greens" in found:
        said["greens"] = worst([pass_if(green["lower"] <= (0.0 if green["must_not_regress"] else held["tau"]))
                                for green in found["greens"]] + ["inconclusive"] * bool(found.get("thin", 0)))
    if "out_of_range" in found:
        outside, rows = found["out_of_range"]["outside"], found["out_of_range"]["rows"]
        said["out_of_range"] = pass_if(outside * 20 < rows) if rows else "inconclusive"
    if "reopened" in found:
        said["reopened"] = pass_if(found["reopened"] == 0)
    if "shift" in found:
        said["shift"] = judge_p4(found["shift"], held)
    least = {"environments": (found["labels"], 40), "greens": (found["labels"], 40)}
    if "rows" in found:
        least.update(abstention=(found["rows"], 40), out_of_range=(found["rows"], 40), shift=(found["rows"], 400))
    for name, (given, needed) in least.items():
        if given < needed and said[name] != "not_checked":
            said[name] = "inconclusive"
    return said


def rule_guardrail(state, e):
    if e.kind != "guardrail.checked" or e.experiment is None:
        return None
    data, of = e.data, state.deploys.get(e.experiment, Deploys())
    if of.active is None or data["deployment"] != of.active:
        return "the running deployment, %s" % of.active, data["deployment"]
    running = of.get(of.active)
    if (e.experiment, running[1]["commit"]) not in state.rubric_ids:
        return "the rubric of what runs", "none"
    plan = told_plan(state, e.experiment, running[1]["commit"])
    if not plan:
        return "a rubric with the plan of an iteration", "none"
    if data["thresholds"] != {**thresholds_of(plan), "profile": "recommended", "shift_metric": "either"}:
        return "the thresholds of the plan", "others"
    first, last = data["window"]["from_seq"], data["window"]["through_seq"]
    if first <= running[4] or last < first or last >= e.position:
        return "a window from above seq %d to below %d" % (running[4], e.position), "%d to %d" % (first, last)
    if "inputs" in data:
        starts = [running[4] + 1] + ([of.checked[2] + 1] if of.checked else [])
        if "by_hand" in data:
            return "evidence from rows or by hand", "both"
        if first not in starts or data["inputs"]["through_seq"] != last:
            return "live rows from seq %s on, through the window" % show(starts), "%d to %d" % (first, last)
    verdicts = guardrail_verdicts(data["evidence"], data["thresholds"])
    for name in GUARDRAILS:
        if verdicts[name] != data["verdicts"][name]:
            return "%s %s" % (name, verdicts[name]), data["verdicts"][name]


def rule_rollback(state, e):
    for name in sorted(state.deploys) if state.asks("answered_breach") else ():
        checked = state.deploys[name].checked
        if checked and checked[1] and not (e.kind == "deployment.rolled_back" and e.data.get("breach") == checked[0]):
            return "deployment.rolled_back of %s next, after the breach at seq %d" % (name, checked[2]), e.kind
    if e.experiment is None:
        return None
    data, of = e.data, state.deploys.get(e.experiment, Deploys())
    breached = of.checked and of.checked[1]
    if breached and not (e.kind == "deployment.rolled_back" and data.get("breach") == of.checked[0]):
        return "deployment.rolled_back of %s next, after the breach at seq %d" % (e.experiment, of.checked[2]), e.kind
    if e.kind != "deployment.rolled_back":
        return None
    if of.active is None or of.active != data["deployment"]:
        return "the running deployment, %s" % of.active, data["deployment"]
    breach = of.checked[0] if of.checked and of.checked[1] else None
    if "breach" in data and data["breach"] != breach:
        return "the breach of it, %s" % breach, data["breach"]
    before = of.before()
    if data.get("restored") != (before[0] if before else None):
        return "restored %s, which ran before" % (before[0] if before else "none"), show(data.get("restored"))
    if data.get("rubric_hash") != (before[1]["rubric_hash"] if before else None):
        return "the rubric_hash of what ran before", show(data.get("rubric_hash"))
