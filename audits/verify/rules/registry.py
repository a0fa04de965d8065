"""Every rule once, in the order in which one entry is judged, with the functions that ask it.

A rule is a pure function (state before, entry) -> None | (expected, found). `schema/FINDINGS.md` says what each holds,
and what to do about a finding.
"""

from rules import (
    acceptance, asked, assumptions, batteries, custody, deployments, drift, endpoints, entries, estimates, families, gates, generators,
    grades, iterations, labels, looks, newest_entries, noise, observations, patches, plans, prompt_judges, releases, repairs, reports,
    rubrics, runs, sealing, sgd, synths, verdicts)


def rule(name, **asked):
    """A rule, and its functions by what of an entry they look at: line, kind, schema, header or data."""
    return name, {part: of if isinstance(of, tuple) else (of,) for part, of in asked.items()}


# Of two findings at one seq the earlier rule is first.
RULES = (
    rule("line_format"),                          # by the walk, which reads the line
    rule("seq", line=entries.rule_seq),
    rule("recorded_at", line=entries.rule_recorded_at),
    rule("body_format"),                          # by the walk, which reads the body
    rule("ledger", header=entries.rule_ledger),
    rule("kind", kind=entries.rule_kind),
    rule("schema", schema=entries.rule_schema, data=custody.rule_assigned),
    rule("keyid", header=entries.rule_keyid),
    rule("key", header=entries.rule_key),
    rule("signature", header=entries.rule_signature),
    rule("author_seq", header=entries.rule_author_seq),
    rule("seen", header=entries.rule_seen),
    rule("backdated", header=entries.rule_backdated),
    rule("role", data=custody.rule_role),
    rule("separation", data=(custody.rule_separation, custody.rule_spelling)),
    rule("possession", data=custody.rule_possession),
    rule("last_owner", data=custody.rule_last_owner),
    rule("experiment", data=custody.rule_experiment),
    rule("account", data=custody.rule_account),
    rule("overdraft", data=custody.rule_overdraft),
    rule("refs", header=entries.rule_refs),
    rule("natural_key", data=entries.rule_natural_key),
    rule("seal", data=labels.rule_seal),
    rule("charge", data=labels.rule_charge),
    rule("design", data=(labels.rule_design, labels.rule_label_scale)),
    rule("purpose", data=labels.rule_purpose),
    rule("split", data=labels.rule_split),
    rule("score_once", data=labels.rule_score_once),
    rule("manifest", data=plans.rule_manifest),
    rule("manifest_first", data=plans.rule_manifest_first),
    rule("amendment", data=plans.rule_amendment),
    rule("stale_version", data=plans.rule_stale_version),
    rule("countersign", data=plans.rule_countersign),
    rule("family", data=families.rule_family),
    rule("exposure", data=plans.rule_exposure),
    rule("plan", data=plans.rule_plan),
    rule("access", data=assumptions.rule_access),
    rule("sdp", data=assumptions.rule_sdp),
    rule("waiver", data=assumptions.rule_waiver),
    rule("blocked", data=assumptions.rule_blocked),
    rule("calibrator", data=estimates.rule_calibrator),
    rule("transport", data=(estimates.rule_said, estimates.rule_window, newest_entries.rule_newest,
                            newest_entries.rule_prompts, estimates.rule_transport, estimates.rule_rows)),
    rule("thresholds", data=estimates.rule_thresholds),
    rule("drift", data=drift.rule_drift),
    rule("iteration", data=iterations.rule_iteration),
    rule("rubric", data=rubrics.rule_rubric),
    rule("patch", data=patches.rule_patch),
    rule("order", data=gates.rule_order),
    rule("gate", data=gates.rule_gate),
    rule("observation", data=observations.rule_observation),
    rule("look", data=looks.rule_look),
    rule("decision", data=looks.rule_decision),
    rule("promotion", data=grades.rule_promotion),
    rule("predicate", data=(iterations.rule_predicate, prompt_judges.rule_rescored)),
    rule("sealing", data=(sealing.rule_sealing, prompt_judges.rule_answered)),
    rule("acceptance", data=acceptance.rule_acceptance),
    rule("approval", data=releases.rule_approval),
    rule("commit", data=releases.rule_commit),
    rule("deployment", data=(deployments.rule_deployment, prompt_judges.rule_runs)),
    rule("recalibration", data=deployments.rule_recalibration),
    rule("guardrail", data=deployments.rule_guardrail),
    rule("rollback", data=deployments.rule_rollback),
    rule("generator", data=generators.rule_generator),
    rule("endpoint", data=(endpoints.rule_endpoint, runs.rule_place, asked.rule_place)),
    rule("run", data=(runs.rule_run, asked.rule_run)),
    rule("ask", data=(runs.rule_ask, runs.rule_one_ask, asked.rule_ask)),
    rule("price", data=(runs.rule_price, asked.rule_price)),
    rule("hold", data=(runs.rule_hold, asked.rule_hold)),
    rule("source", data=(runs.rule_source, runs.rule_same_text)),
    rule("noise", data=noise.rule_noise),
    rule("synth", data=synths.rule_synth),
    rule("sgd", data=sgd.rule_sgd),
    rule("repair", data=repairs.rule_repair),
    rule("verdict", data=verdicts.rule_verdict),
    rule("battery", data=batteries.rule_battery),
    rule("report", data=reports.rule_report),
    rule("target", data=custody.rule_target),
    rule("genesis", header=entries.rule_genesis),
    rule("root"),                                 # of checkpoints, once the walk is over
    rule("checkpoint"),                           # likewise
    rule("size"),                                 # likewise
    rule("blob", data=entries.rule_blob),
    rule("judge", data=(labels.rule_judge, labels.rule_score_scale, labels.rule_compared, prompt_judges.rule_derived)),
    rule("rulebook", data=entries.rule_rulebook),
    rule("recompute"),                            # not checked here: it takes the program
    rule("bundle"),                               # of files beside the entries, once the walk is over
)
RANK = {name: rank for rank, (name, _) in enumerate(RULES)}


def asked_of(part):
    """(name, function) of the rules that are asked once a part of an entry is readable, in order."""
    return tuple((name, function) for name, asked in RULES for function in asked.get(part, ()))


LINE_RULES, KIND_RULES, SCHEMA_RULES = asked_of("line"), asked_of("kind"), asked_of("schema")
HEADER_RULES, DATA_RULES = asked_of("header"), asked_of("data")
# Of an entry whose neighbours are withheld.
PART_RULES = tuple(asked for asked in HEADER_RULES if asked[0] in (
    "ledger", "keyid", "key", "signature", "seen", "genesis")) + (("refs", entries.part_refs),)
# Of such an entry's data: roles; of those that move keys and policy, their effect too; and blobs.
PART_DATA_RULES = (("role", custody.part_role),)
CUSTODY_RULES = tuple(asked for asked in DATA_RULES if asked[0] in (
    "schema", "role", "separation", "possession", "last_owner", "target", "rulebook"))
BLOB_RULES = tuple(asked for asked in DATA_RULES if asked[0] == "blob")
BARS_FOLDING = frozenset(("signature", "key", "role"))
