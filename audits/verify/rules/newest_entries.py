"""Through which entry an arbiter reads, and whose entries a claim rests on (`schema/ESTIMATES.md`, `schema/KEYS.md`)."""

from history.environments import scope_key

COMPUTED = ("calibrator.fitted", "contrast.recorded", "coverage.checked", "environments.tested", "estimate.recorded",
            "judge.compared", "judge.drift_checked", "ope.diagnosed", "ope.estimated",
            "oua.estimated", "plan.recorded", "transport.tested")


def rule_newest(state, e):
    """What an arbiter computes reads every entry of its kinds that stands before it, and none that does not."""
    if e.kind not in COMPUTED or e.experiment is None or not state.asks("newest_read"):
        return None
    data, through, of = e.data, e.data["through_seq"], state.entries(e.experiment)
    terms = data.get("terms", {}).get("estimate", data.get("terms", {}))
    if "iteration" in terms:
        return None                               # its first step says what all the others read
    if through >= e.position:
        return "through_seq below %d, its own entry" % e.position, "through_seq %d" % through
    if e.kind == "judge.drift_checked":
        newest = of.drifts.get(data["judge"], 0)
        words = "through_seq %d or later, where the newest check of drift stands" % newest
        return (words, "through_seq %d" % through) if newest > through else None
    judges = (data["first"], data["second"]) if e.kind == "judge.compared" else (terms["judge"],)
    fields = "environment" in terms or e.kind == "environments.tested" or \
        any(field != "response_length" for field in terms.get("covariates", ()))
    audited = e.kind == "estimate.recorded" or "first_transport" in data or "second_transport" in data
    logged = of.logged.get(data["terms"]["logger"], 0) if e.kind.startswith("ope.") else 0
    for what, newest in (
            ("score", max(map(of.newest_score, judges))), ("label for calibration", of.newest_label()),
            ("import", of.imports if fields else 0),
            ("audit", max(of.audits.get(judge, 0) for judge in judges) if audited else 0), ("logged response", logged)):
        if newest > through:
            return "through_seq %d or later, where the newest %s stands" % (newest, what), "through_seq %d" % through


def tainted_problem(state, e):
    """An estimate that rests on entries of a compromised key claims nothing, and a comparison tells nothing apart."""
    data = e.data
    for policy in (data[name] for name in ("policy", "first", "second") if name in data):
        why = tainted_words(state, e, policy)
        if why and data.get("claim", "refused") != "refused":
            return "claim refused: %s %s" % (policy, why), "claim %s" % data["claim"]
        if why and data.get("told_apart"):
            return "nothing told apart: %s %s" % (policy, why), "told apart"


def tainted_words(state, e, policy):
    """What a claim of a policy rests on that is tainted, as the rulebook in force asks, or None."""
    of, judge = state.entries(e.experiment), e.data["terms"]["judge"]
    key = of.tainted(state, judge, policy, e.data.get("calibrator")) if state.asks("tainted_claims") else None
    if key:
        return "rests on entries of key %s from its compromise on" % key
    scope = scope_key(e.data["terms"].get("environment"))
    found = of.tainted_audit(state, judge, policy, scope) if state.asks("tainted_audits") else None
    return "passed its audit at seq %d by entries of key %s from its compromise on" % found if found else None


def tainted_judges_problem(state, e):
    """A comparison of judges that rests on entries of a compromised key names no better one."""
    key = state.entries(e.experiment).tainted_judges(state, (e.data["first"], e.data["second"]))
    if key and "better" in e.data:
        return "no better judge: it rests on entries of key %s from its compromise on" % key, "a better judge"


def rule_prompts(state, e):
    """A fit says of how many prompts its labels are, by which it answers failed audits."""
    if e.kind != "calibrator.fitted" or e.experiment is None or not state.asks("answered_prompts"):
        return None
    for of in e.data["labels_by_policy"]:
        if "prompts" not in of:
            return "prompts: how many of %s have a label" % of["policy"], "none"
        if not 1 <= of["prompts"] <= of["labels"]:
            return "1 to %d prompts of %s, as there are labels" % (of["labels"], of["policy"]), str(of["prompts"])
