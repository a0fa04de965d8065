"""The list of folds: what each kind of entry changes in the state, once it was judged.

A fold decides nothing. Of two events with one natural key the first counts.
"""

from array import array

from formats.fields import b64
from history import asked_folds, environments, evidence_folds, gate_folds, iteration_folds, model_folds, newest, repair_folds, sgd_folds, synth_folds

FOLDS = {
    "ledger.created": evidence_folds.ledger_created,
    "key.added": evidence_folds.key_added,
    "key.retired": evidence_folds.key_retired,
    "key.compromised": evidence_folds.key_compromised,
    "policy.adopted": evidence_folds.policy_adopted,
    "rulebook.adopted": evidence_folds.rulebook_adopted,
    "budget.opened": evidence_folds.budget_opened,
    "budget.charged": evidence_folds.budget_charged,
    "endpoint.registered": model_folds.endpoint_registered,
    "price_table.registered": model_folds.price_table_registered,
    "judge_run.opened": model_folds.judge_run_opened,
    "judge_run.resumed": model_folds.judge_run_resumed,
    "judge_run.closed": model_folds.judge_run_closed,
    "budget.reserved": model_folds.budget_reserved,
    "budget.settled": model_folds.budget_settled,
    "call.recorded": model_folds.call_recorded,
    "noise.measured": model_folds.noise_measured,
    "score.missed": model_folds.score_missed,
    "log_key.rotated": evidence_folds.log_key_rotated,
    "experiment.registered": evidence_folds.experiment_registered,
    "experiment.closed": evidence_folds.experiment_closed,
    "label.sealed": evidence_folds.label_sealed,
    "seal.accepted": evidence_folds.seal_accepted,
    "label.revealed": evidence_folds.label_revealed,
    "audit.attested": evidence_folds.audit_attested,
    "label.design_registered": evidence_folds.label_design_registered,
    "data.ingested": evidence_folds.data_ingested,
    "label.recorded": evidence_folds.label_recorded,
    "splits.listed": evidence_folds.splits_listed,
    "splits.formed": evidence_folds.splits_formed,
    "score.recorded": evidence_folds.score_recorded,
    "label.scale_declared": evidence_folds.label_scale_declared,
    "judge.compared": evidence_folds.judge_compared,
    "score.scale_declared": evidence_folds.score_scale_declared,
    "sdp.version_registered": evidence_folds.sdp_version_registered,
    "bridge.assessed": evidence_folds.bridge_assessed,
    "score.conflict": evidence_folds.score_conflict,
    "score.replayed": evidence_folds.score_replayed,
    "assumption.waived": evidence_folds.assumption_waived,
    "assumption.countersigned": evidence_folds.assumption_countersigned,
    "data.read": evidence_folds.data_read,
    "calibrator.fitted": evidence_folds.calibrator_fitted,
    "transport.tested": evidence_folds.transport_tested,
    "environments.tested": environments.environments_tested,
    "regime.selected": environments.regime_selected,
    "judge.registered": evidence_folds.judge_registered,
    "judge.drift_checked": evidence_folds.judge_drift_checked,
    "family.opened": gate_folds.family_opened,
    "manifest.registered": gate_folds.manifest_registered,
    "manifest.amended": gate_folds.manifest_amended,
    "manifest.countersigned": gate_folds.manifest_countersigned,
    "plan.sealed": gate_folds.plan_sealed,
    "plan.revealed": gate_folds.plan_revealed,
    "exposure.opened": gate_folds.exposure_opened,
    "units.listed": gate_folds.units_listed,
    "order.listed": gate_folds.order_listed,
    "order.drawn": gate_folds.order_drawn,
    "gate.opened": gate_folds.gate_opened,
    "gate.observed": gate_folds.gate_observed,
    "gate.looked": gate_folds.gate_looked,
    "gate.decided": gate_folds.gate_decided,
    "gate.continued": gate_folds.gate_continued,
    "family.closed": gate_folds.family_closed,
    "promotion.issued": gate_folds.promotion_issued,
    "promotion.revoked": gate_folds.promotion_revoked,
    "manifest.deviated": gate_folds.manifest_deviated,
    "rubric.registered": iteration_folds.rubric_registered,
    "anchor_set.registered": iteration_folds.anchor_set_registered,
    "iteration.opened": iteration_folds.iteration_opened,
    "iteration.closed": iteration_folds.iteration_closed,
    "patch.proposed": iteration_folds.patch_proposed,
    "patch.rejected": iteration_folds.patch_end,
    "patch.withdrawn": iteration_folds.patch_end,
    "review.recorded": iteration_folds.review_recorded,
    "scores.recomputed": iteration_folds.iteration_decision,
    "residuals.audited": iteration_folds.iteration_decision,
    "slices.classified": iteration_folds.iteration_decision,
    "gate.evaluated": iteration_folds.iteration_decision,
    "iteration.paused_for_labels": iteration_folds.iteration_decision,
    "candidates.sealed": iteration_folds.iteration_decision,
    "confirm.unsealed": iteration_folds.iteration_decision,
    "confirm.looked": iteration_folds.iteration_decision,
    "patch.accepted": iteration_folds.iteration_decision,
    "approval.granted": iteration_folds.approval_given,
    "approval.refused": iteration_folds.approval_given,
    "prompt.committed": iteration_folds.prompt_committed,
    "deployment.activated": iteration_folds.deployment_activated,
    "recalibration.completed": iteration_folds.recalibration_completed,
    "guardrail.checked": iteration_folds.guardrail_checked,
    "deployment.rolled_back": iteration_folds.deployment_rolled_back,
    "generator.run_opened": iteration_folds.generator_run_opened,
    "generator.objective_queried": iteration_folds.generator_step,
    "generator.validated": iteration_folds.generator_step,
    "generator.rolled_back": iteration_folds.generator_step,
    "card.published": iteration_folds.iteration_decision,
    "dev.objective_queried": iteration_folds.iteration_decision,
    "battery.evaluated": iteration_folds.battery_evaluated,
    "exploit.discovered": iteration_folds.exploit_discovered,
}


def apply(state, entry):
    """Fold one accepted entry. Of two events with one natural key the first counts."""
    if state.waiting and entry.seen:
        size, root = entry.seen
        named = [seq for seq in state.waiting if seq < size <= entry.position]
        state.beacons.update({seq: {"root": b64(root), "size": size} for seq in named})
        state.waiting = [seq for seq in state.waiting if seq not in named]
    if entry.kind in ("manifest.registered", "manifest.amended", "manifest.countersigned", "candidates.sealed",
                      "gate.decided"):
        state.waiting.append(entry.position)
    if entry.kind in ("manifest.countersigned", "candidates.sealed", "gate.decided"):
        state.fixed = entry.position
    if entry.kind == "judge_run.opened" and "rescore" in entry.data:
        state.waiting.append(entry.position)
        state.fixed = entry.position
    if entry.kind in ("gate.observed", "gate.looked", "gate.decided"):
        of = [state.gates_by_id[entry.data["gate"]]] if entry.data["gate"] in state.gates_by_id else []
    else:
        of = [gate for gate in state.gates_by_id.values() if gate.reads(entry)]
    for gate in of:
        gate.rests[entry.author] = entry.position
    fold = FOLDS.get(entry.kind)
    if fold:
        fold(state, entry, entry.data)
    newest.take(state, entry, entry.data)
    state.looks.take(state, entry)
    synth_folds.take(state, entry, entry.data)
    asked_folds.take(state, entry, entry.data)
    sgd_folds.take(state, entry, entry.data)
    repair_folds.take(state, entry, entry.data)


def track(state, entry):
    """What even an entry with a bad signature moves: numbers and `seen` of known keys, ids, natural keys."""
    if entry.author in state.keys:
        state.next_number[entry.author] = entry.author_seq + 1
        if entry.seen and 1 <= entry.seen[0] <= entry.position:
            state.last_seen[entry.author] = max(entry.seen[0], state.last_seen.get(entry.author, 0))
    state.seqs_of.setdefault(entry.author, array("Q")).append(entry.position)
    state.ids.add(entry.id)
    if entry.decoded:
        if entry.kind == "score.recorded":
            state.scored.setdefault(entry.id, entry.data["score_micro"])
        if entry.kind == "patch.proposed":
            state.patch_ids.add(entry.data["patch"])
        natural = entry.natural_key()
        if natural:
            state.natural_keys.add(natural)
            if entry.kind in ("score.recorded", "label.revealed"):
                read = any(gate.experiment == entry.experiment for gate in state.gates_by_id.values())
                value = entry.data["score_micro" if entry.kind == "score.recorded" else "value_micro"]
                state.values.setdefault(natural, (entry.position, value if read else None))
