"""Folds of rubrics, iterations, patches, releases, deployments and generators into the state."""

from history.records import Acceptance, Attacked, Decisions, Iteration, Run, quarter_of


def list_as_set(value):
    """A value whose list, however it is written, is a set."""
    if "list" not in value:
        return value
    return {"list": sorted(set(value["list"]), key=lambda v: v.encode("utf-8"))}


def rubric_registered(state, entry, data):
    if entry.experiment is not None:
        leaves_ = {leaf["path"]: list_as_set(leaf["value"]) for leaf in data["leaves"]}
        of = state.rubrics.setdefault(entry.experiment, {})
        if data["rubric_hash"] not in of:
            of[data["rubric_hash"]] = (data["version"], leaves_)
            state.heads[entry.experiment] = (entry.id.hex(), data["rubric_hash"])
            state.rubric_ids[entry.experiment, entry.id.hex()] = (data["rubric_hash"], entry.position)


def anchor_set_registered(state, entry, data):
    state.first_anchors.setdefault(entry.experiment, entry.position)
    state.anchors.add((entry.experiment, data["anchors"]))


def iteration_opened(state, entry, data):
    state.decisions.setdefault(data["iteration"], Decisions()).published.add(data["rubric_hash"])
    if entry.experiment is not None:
        state.iterations.setdefault(data["iteration"], Iteration(entry, data))


def iteration_closed(state, entry, data):
    it = state.iterations.get(data["iteration"])
    if it and it.closed is None and entry.experiment is not None:
        it.closed = entry.position


def patch_proposed(state, entry, data):
    it = state.iterations.get(data["iteration"])
    state.patch_ids.add(data["patch"])
    of = state.decisions.setdefault(data["iteration"], Decisions())
    strange = next((name for name in data["inputs"] if name not in of.published), None)
    if strange and not of.tainted:
        of.tainted = "tainted at seq %d: %s was written from %s" % (entry.position, data["patch"], strange)
    if it and entry.experiment is not None:
        it.candidates.setdefault(data["patch"], [data["patch_hash"], True])
        it.patches.setdefault(data["patch"], data)
        it.authors.setdefault(data["patch"], entry.author)
        it.places.setdefault(data["patch"], entry.position)


def review_recorded(state, entry, data):
    it = entry.experiment is not None and "patch" in data and state.proposed_in(entry.experiment, data["patch"])
    if it:
        it.reviews.setdefault(data["patch"], {})[entry.author] = (data["outcome"], entry.position)


def patch_end(state, entry, data):
    it = state.iterations.get(data["iteration"])
    if it and entry.experiment is not None and data.get("patch") in it.candidates:
        it.candidates[data["patch"]][1] = False


def iteration_decision(state, entry, data):
    terms = data["terms"]["iteration"] if "terms" in data else data
    of = state.decisions.setdefault(terms["iteration"], Decisions())
    once = (entry.position, entry.id.hex())
    if entry.kind == "calibrator.fitted":
        of.calibrators.setdefault(terms.get("candidate"), data["calibrator"])
    elif entry.kind == "scores.recomputed":
        of.recomputed.setdefault(data["candidate"], entry.position)
        if "judge" in data:
            state.anew.setdefault((data["iteration"], data["candidate"]), data["judge"])
    elif entry.kind == "residuals.audited":
        of.audited = of.audited or once
    elif entry.kind == "slices.classified":
        of.classified = of.classified or (*once, data["classification_hash"])
    elif entry.kind == "iteration.paused_for_labels":
        of.paused = of.paused or once
    elif entry.kind == "candidates.sealed":
        of.sealed = of.sealed or (*once, data["hypotheses"])
    elif entry.kind == "confirm.unsealed":
        of.unsealed = of.unsealed or once
        state.spent_roots.setdefault(data["confirm_root"], entry.position)
        state.unsealings[quarter_of(entry.recorded_text)] += 1
        state.peek_charges.setdefault(data["charge"], entry.position)
        it = state.iterations.get(data["iteration"])
        if it and it.block and it.block.root is None:
            it.block.root = data["confirm_root"]
    elif entry.kind == "confirm.looked":
        it = state.iterations.get(data["iteration"])
        if it and it.block:
            it.block.looked = (entry.position, data)
    elif entry.kind == "patch.accepted":
        of.accepted.append(data["candidate"])
        if "charge" in data:
            state.paid_patches.setdefault(data["charge"], entry.position)
        it = state.iterations.get(data["iteration"])
        if entry.experiment is not None:
            patch = it and it.patches.get(data["patch"])
            state.acceptances.setdefault(entry.id.hex(), Acceptance(entry, data, patch))
    elif entry.kind == "card.published":
        of.published.add(data["public_digest"])
    elif entry.kind == "dev.objective_queried":
        of.receipts.append(entry.id.hex())
        of.published.add(entry.id.hex())
    else:
        verdict = data["verdicts"][data["thresholds"]["profile"]]
        key = (data["candidate"], data["split"], data["gate"])
        of.gates.setdefault(key, (*once, verdict, data["evidence"]))


def battery_evaluated(state, entry, data):
    if entry.experiment is None:
        return
    it = state.attacked.setdefault(data["iteration"], Attacked())
    ran = (entry.position, entry.id.hex(), data)
    if "candidate" in data:
        it.batteries.setdefault(data["candidate"], ran)
        return
    it.in_force, it.stress = ran, {}
    names = [attack["attack"] for attack in data["attacks"]]
    for of in data["slices"]:
        it.stress[of["family"], of["slice"]] = [
            {"attack": name, "mean_micro": mean, "seeds": seeds}
            for name, mean, seeds in zip(names, of["means_micro"], of["seeds"]) if seeds]


def exploit_discovered(state, entry, _data):
    state.exploits[entry.experiment] += 1


def approval_given(state, entry, data):
    accepted = state.acceptances.get(data["subject"])
    if accepted and accepted.experiment == entry.experiment:
        granted = entry.kind == "approval.granted"
        accepted.words[entry.author] = (granted, data["meaning"], entry.id.hex(), entry.position)


def prompt_committed(state, entry, data):
    accepted = state.acceptances.get(data["acceptance"])
    rubric_registered(state, entry, data)
    if accepted and accepted.experiment == entry.experiment:
        state.commits[entry.id.hex()] = (accepted.iteration, data["acceptance"])
        state.parents[entry.id.hex()] = data["parent"]


def deployment_activated(state, entry, data):
    if entry.experiment is not None:
        of = state.deploys_of(entry.experiment)
        of.all.append([entry.id.hex(), data, of.active, None, entry.position])
        of.active, of.checked = entry.id.hex(), None


def recalibration_completed(state, entry, data):
    if entry.experiment is not None:
        of = state.deploys_of(entry.experiment)
        of.recalibrations[entry.id.hex()] = data
        if "computed" in data:
            judge, _, rubrics = of.calibrators.get(data["calibrator"], (data["judge"], 0, set()))
            of.calibrators[data["calibrator"]] = (judge, entry.position, rubrics)
            own = of.fits.get((data["judge"], data["calibrator"]), (0, set()))[1]
            of.fits[data["judge"], data["calibrator"]] = (entry.position, own)


def guardrail_checked(state, entry, data):
    if entry.experiment is not None:
        breach = "fail" in data["verdicts"].values()
        state.deploys_of(entry.experiment).checked = (entry.id.hex(), breach, entry.position)


def deployment_rolled_back(state, entry, data):
    if entry.experiment is None:
        return
    of = state.deploys_of(entry.experiment)
    before, one = of.before(), of.get(data["deployment"])
    if one and one[3] is None:
        one[3] = entry.position
    if of.active == data["deployment"]:
        of.active = before[0] if before else None
    of.checked = None
    known = [(id_, hash_) for (name, id_), (hash_, _) in state.rubric_ids.items()
             if name == entry.experiment and hash_ == data.get("rubric_hash")]
    if known:
        state.heads[entry.experiment] = known[0]


def generator_run_opened(state, entry, data):
    if entry.experiment is not None:
        state.deploys_of(entry.experiment).runs.setdefault(data["run"], Run(entry, data))


def generator_step(state, entry, data):
    run = entry.experiment is not None and state.deploys_of(entry.experiment).runs.get(data["run"])
    if not run:
        return
    if entry.kind == "generator.objective_queried":
        run.used += 1
    elif entry.kind == "generator.rolled_back":
        run.rolled_back = True
    elif run.validated is None:
        run.validated = (entry.id.hex(), data["verdict"])
