"""Rulebooks: a ledger names the one that judges it.

`QUESTIONS` has each question that not all of them ask, with the first that does.
"""

RULEBOOK_UNNAMED, RULEBOOK_NEWEST = 17, 29
QUESTIONS = {
    "confirm_rows": 18, "sealed_before": 18, "peek_account": 18, "one_order": 18, "deviation_signers": 18,
    "beacon_place": 18, "scored_in_order": 18, "finite_claims": 18, "one_family": 18, "known_outcomes": 18,
    "tainted_evidence": 18, "one_charge": 18, "sealed_plan": 18, "carried_grade": 18, "assigned_ids": 18,
    "one_spelling": 18, "checked_claims": 18, "end_after_peek": 18, "evaluated_judge": 18,
    "protocol_steps": 19, "governed_steps": 19,
    "derived_judge": 20, "rescored_anew": 20, "rescored_before": 20, "judged_prompt": 20,
    "capped_alpha": 20, "judged_peek": 20, "effective_later": 20, "lasting_contradiction": 20,
    "roles_ever_held": 20, "sealed_when_charged": 20, "planned_probes": 20,
    "tainted_peek": 21, "first_plan": 21, "usual_audit": 21, "weighted_labels": 21,
    "claimed_environments": 21, "charged_patches": 21, "found_of_each": 21,
    "scored_before": 22, "timely_probes": 22, "said_before": 22,
    "planned_estimates": 22, "reported_slope": 22,
    "one_probe": 22, "even_probes": 22, "one_label": 22, "patch_account": 22,
    "answered_failure": 23, "scaled_margin": 23, "one_prompt": 23, "all_probes": 23, "fitted_before": 23,
    "whole_family": 23,
    "rows_before": 23, "plan_in_force": 23, "first_thresholds": 23, "reads_ever_held": 23, "one_of_orders": 23,
    "missing_prompts": 23,
    "labels_on_scale": 23, "scores_on_scale": 23, "compared_judges": 23, "answered_battery": 23,
    "reported_kinship": 23, "label_shares": 23, "label_read_once": 23,
    "doubted_judges": 24, "common_prompts": 24, "reported_worth": 24,
    "own_prompt": 24, "rendered_prompt": 24, "both_answers": 24, "reads_before": 24,
    "newest_read": 24, "confirmed_rows": 24, "inside_probes": 24, "declared_margin": 24, "tainted_claims": 24,
    "answered_breach": 24, "answered_prompts": 24,
    "tainted_audits": 25, "tainted_judges": 25, "formed_confirm": 25,
    "openable_rows": 25,
    "dev_calls_of_plan": 26, "run_ends_first": 26, "model_of_run": 26, "own_names": 26,
    "text_of_judge": 26, "one_ask": 26, "held_bounds": 26, "same_text": 26,
    "sgd_gate": 27, "salted_rows": 27, "earlier_looks": 27,
    "one_value": 28, "order_once": 28, "own_labels": 28,
    "asked_scores": 29, "value_elsewhere": 29, "opened_arms": 29,
}


def questions_not_asked(state):
    """Questions that some entry of this ledger was not asked."""
    oldest = state.rulebooks[0][1] if state.rulebooks else RULEBOOK_UNNAMED
    return [name for name, since in QUESTIONS.items() if since > oldest]


def rulebooks_in_words(state):
    """Which rulebooks judged, as the verdict line says it."""
    words = "rules %d" % (state.rulebooks[0][1] if state.rulebooks else RULEBOOK_UNNAMED)
    words += "".join(" through seq %d, %d since" % adopted for adopted in state.rulebooks[1:])
    unasked = questions_not_asked(state)
    return words + (" \u00b7 not asked: " + ", ".join(unasked) if unasked else "")
