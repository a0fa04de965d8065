"""Rules of calibrators, estimates, comparisons and audits of transport (`schema/ESTIMATES.md`, `schema/CLAIMS.md`)."""

from formats.limits import SAFE_INTEGER
from events.shapes import CHECKED
from history.environments import scope_key, scope_words
from history.records import draw_of_row
from rules.earlier_looks import look_problem
from rules.missing_prompts import missing_problem
from rules.newest_entries import tainted_problem
from rules.obstacles import family_problem, obstacle_problem
from rules.standing_plans import planned_estimate, replaced_seq, stands_since

LOCAL_LABELS_MIN = 200
BY_TERMS = ("calibrator.fitted", "contrast.recorded", "coverage.checked", "environments.tested", "estimate.recorded",
            "ope.diagnosed", "ope.estimated", "oua.estimated", "plan.recorded", "transport.tested")


def rule_calibrator(state, e):
    if e.kind == "calibrator.fitted" and e.experiment is not None:
        return local_problem(e)
    needs = ("environments.tested", "estimate.recorded", "contrast.recorded", "oua.estimated", "coverage.checked",
             "transport.tested")
    if e.kind not in needs or "calibrator" not in e.data:
        return None
    key = (e.experiment, e.data["terms"]["judge"], e.data["calibrator"])
    return None if key in state.fitted else ("a calibrator of this judge, fitted before", e.data["calibrator"])


def local_problem(e):
    """A local calibrator rests on enough labels of its environment, and is no calibrator of an iteration."""
    scope = e.data["terms"].get("environment")
    if scope is not None and e.data["labels"] < LOCAL_LABELS_MIN:
        return "at least %d labels of %s" % (LOCAL_LABELS_MIN, scope_words(scope)), "%d labels" % e.data["labels"]
    if scope is not None and "iteration" in e.data["terms"]:
        return "a calibrator of an iteration without an environment", scope_words(scope)


def rule_transport(state, e):
    if e.kind == "transport.tested":
        return audit_problem(state, e)
    if e.kind in ("label.recorded", "label.sealed"):
        return probe_problem(state, e) if state.asks("all_probes") else None
    if e.kind == "environments.tested" and e.experiment is not None:
        passes = any(of["verdict"] == "pass" for of in e.data["environments"])
        return probes_problem(state, e, passes) or whole_problem(e.data["terms"]) or all_timely_problem(state, e)
    if e.kind == "regime.selected" and e.experiment is not None:
        return regime_problem(state, e)
    if e.kind == "contrast.recorded" and e.experiment is not None:
        failed = None
        for which in ("first", "second"):
            standing = state.standing(e, e.data[which])
            standing = standing if standing and standing["state"] == "fail" else None
            said = e.data.get(which + "_transport")
            if said != standing:
                return "the audit that stands against %s: %s" % (e.data[which], standing), str(said)
            failed = failed or standing
        if failed and e.data["told_apart"]:
            return "nothing told apart after the failed audit at seq %d" % failed["seq"], "told apart"
        problem = contrast_claims(state, e) if state.asks("checked_claims") else None
        problem = problem or tainted_problem(state, e)
        problem = problem or (missing_problem(state, e) if state.asks("missing_prompts") else None)
        return problem or (look_problem(state, e) if state.asks("earlier_looks") else None)
    if e.kind == "ope.diagnosed" and e.experiment is not None:
        return direct_claim(state, e) if state.asks("checked_claims") else None
    if e.kind == "ope.estimated" and e.experiment is not None:
        problem = whole_problem(e.data["terms"]["estimate"])
        if problem:
            return problem
        standing = state.against(e, e.data["terms"]["estimate"]["judge"], e.data["policy"])
        if e.data.get("transport") != standing:
            return "the audit that stands against it: %s" % standing, str(e.data.get("transport"))
        if standing and e.data["verdict"] != "refused":
            return "verdict refused after the failed audit at seq %d" % standing["seq"], e.data["verdict"]
        return None
    if e.kind != "estimate.recorded" or e.experiment is None:
        return None
    standing = state.standing(e)
    if e.data.get("transport") != standing:
        return "the audit that stands: %s" % standing, str(e.data.get("transport"))
    if standing and standing["state"] == "fail" and e.data["claim"] != "refused":
        return "claim refused after the failed audit at seq %d" % standing["seq"], e.data["claim"]
    problem = estimate_claims(state, e) if state.asks("checked_claims") else None
    return problem or tainted_problem(state, e)


def probe_problem(state, e):
    """A design takes no probe of a policy that it audited."""
    draw = draw_of_row(e.data["row"]) if e.kind == "label.sealed" else (e.data["policy"],)
    seq = state.audited.get((e.experiment, e.data["design"], draw[0], ())) if draw else None
    if seq is not None and e.experiment is not None:
        return "a probe of a policy that %s has not audited" % e.data["design"], "an audit at seq %d" % seq


def claim_problem(state, e, policy, claim):
    """A claim stands on what the log holds: a passed audit, own labels in the fit, and no failed audit."""
    standing = state.standing(e, policy)
    found, calibrator = standing and standing["state"], e.data.get("calibrator")
    if found == "fail" and claim != "refused":
        return "claim refused of %s" % policy, "claim %s" % claim
    if claim == "borrowed_checked" and found != "pass":
        return "a passed audit of %s by this calibrator" % policy, "claim %s" % claim
    scope = scope_key(e.data["terms"].get("environment"))
    fit = (e.experiment, e.data["terms"]["judge"], calibrator, policy, scope)
    if claim == "own_labels" and calibrator is not None and fit not in state.labelled:
        return "a calibrator with labels of %s" % policy, "claim %s" % claim


def weighted_problem(state, e):
    """Labels that a design draws by stratum are weighted or correct nothing, and no others are weighted."""
    if not state.asks("weighted_labels"):
        return None
    labels = e.data["terms"]["labels"]
    if e.experiment in state.stratified:
        expected, other = "labels weighted or targeted, since a design for calibrate has strata", "representative"
    else:
        expected, other = "labels that are not weighted, since no design for calibrate has strata", "weighted"
    return (expected, "labels %s" % labels) if labels == other else None


def contrast_claims(state, e):
    """A comparison says what each side rests on, and tells apart only what is checked."""
    problem = weighted_problem(state, e)
    if problem:
        return problem
    first, second, reading = (e.data.get(name) for name in ("first_claim", "second_claim", "reading"))
    if None in (first, second, reading):
        return "the claims of both sides, and a reading", "a comparison without them"
    for policy, claim in ((e.data["first"], first), (e.data["second"], second)):
        problem = claim_problem(state, e, policy, claim)
        if problem:
            return problem
    if (first in CHECKED and second in CHECKED) == (reading == "unchecked"):
        return "reading unchecked where a side is, and only there", "%s for %s and %s" % (reading, first, second)
    if e.data["told_apart"] != (reading == "told_apart"):
        return "told_apart as reading %s says" % reading, str(e.data["told_apart"])


def estimate_claims(state, e):
    """An estimate claims what the log supports, says how far its labels vary, and has no interval of width zero."""
    problem = claim_problem(state, e, e.data["policy"], e.data["claim"]) or weighted_problem(state, e)
    if problem:
        return problem
    if "off_mode" not in e.data:
        return "off_mode: how far its labels vary", "none"
    ends = (e.data.get("interval"), e.data.get("labels_only", {}).get("interval"))
    if any(of and of["low"] >= of["high"] for of in ends):
        return "an interval with a width, or none", "a width of zero"


def direct_claim(state, e):
    """A diagnosis of logged responses says what the direct level rests on, and refuses one that is withheld."""
    problem = whole_problem(e.data["terms"]["estimate"])
    if problem or not e.data["draws"]:
        return problem
    claim = e.data.get("direct_claim")
    if claim is None:
        return "direct_claim: what the direct level rests on", "none"
    if state.against(e, e.data["terms"]["estimate"]["judge"], e.data["policy"]) and claim != "refused":
        return "direct_claim refused after the failed audit of %s" % e.data["policy"], claim
    verdict = "admissible" if claim in CHECKED else "warned" if claim == "borrowed_unchecked" else "refused"
    found = next((row["verdict"] for row in e.data["guide"] if row["estimator"] == "direct"), None)
    if found != verdict:
        return "direct %s for claim %s" % (verdict, claim), str(found)


def probes_problem(state, e, passes):
    """Probes belong to a registered design for audit; sealed ones were opened all together, under a charge."""
    key, design = (e.experiment, e.data["design"]), e.data["design"]
    if state.designs.get(key) != "audit":
        return "a registered label design for audit", design
    sealed, revealed = state.sealed_of.get(key, 0), state.revealed_of.get(key, 0)
    if sealed > revealed:
        return "all %d sealed labels of %s open" % (sealed, design), "%d open" % revealed
    if key in state.uneven and passes and state.asks("even_probes"):
        return "no pass by %s, which draws by stratum" % design, "a pass"
    if (sealed > 0) != ("charge" in e.data):
        return "a charge where probes were sealed, and only there", e.data.get("charge", "none")


def whole_problem(terms):
    """Terms of what is computed over all rows."""
    return ("terms without an environment", scope_words(terms["environment"])) if "environment" in terms else None


def regime_problem(state, e):
    """A regime is selected after a failed test: 1 and 2 while it stands, 3 once a later test passed.

    Regime 2 names a calibrator that was fitted on at least 200 labels there alone."""
    words, regime, calibrator = scope_words(e.data["scope"]), e.data["regime"], e.data.get("calibrator")
    of = state.environments.get((e.experiment, e.data["judge"]), {}).get(scope_key(e.data["scope"]))
    if of is None or not of.has_failed:
        return "a failed test of %s" % words, "none"
    if e.data["tested_seq"] != of.newest:
        return "the newest test of %s, at seq %d" % (words, of.newest), "seq %d" % e.data["tested_seq"]
    if (regime == "2") != (calibrator is not None):
        return "a local calibrator for regime 2, and for no other", str(calibrator)
    if (regime == "3") != (of.failed is None):
        return "regime 3 once a later test passed, and 1 or 2 before", "regime %s" % regime
    labels = state.local.get((e.experiment, e.data["judge"], scope_key(e.data["scope"]), calibrator))
    if regime == "2" and labels is None:
        return "a calibrator that was fitted on labels of %s alone" % words, "none"
    if regime == "2" and labels < LOCAL_LABELS_MIN:
        return "at least %d labels of %s" % (LOCAL_LABELS_MIN, words), "%d labels" % labels


def audit_problem(state, e):
    scope = scope_key(e.data["terms"].get("environment"))
    earlier = state.audited.get((e.experiment, e.data["design"], e.data["policy"], scope))
    if e.experiment is not None:
        problem = probes_problem(state, e, e.data["state"] == "pass")
        if problem:
            return problem
        if earlier is not None:
            return "a policy that these probes have not audited", "an audit at seq %d" % earlier
    problem = audit_width(e) if e.experiment is not None and state.asks("checked_claims") else None
    asks = e.experiment is not None and (state.asks("timely_probes") or "environment" in e.data["terms"])
    problem = problem or (timely_problem(state, e) if asks else None)
    return problem or (obstacle_problem(state, e) if e.experiment is not None and state.asks("all_probes") else None)


def timely_problem(state, e):
    """An audit counts every probe of its policy, and passes nothing where one has no score from before its label."""
    data = e.data
    late, design, policy = data.get("late"), data["design"], data["policy"]
    if late is None:
        return "late: how many probes have no score from before their label", "none"
    probes = state.open_probes.get(e.experiment, {}).get(policy, {}).get(design, ())
    # An environment holds some of the probes; those that are late count against it wherever they are.
    counted = data["rows"] + late
    if counted > len(probes) or (counted < len(probes) and "environment" not in data["terms"]):
        return "all %d probes of %s, counted or late" % (len(probes), policy), "%d and %d" % (data["rows"], late)
    known = state.late_scores.get((e.experiment, policy, design, data["terms"]["judge"]), 0)
    if late < known:
        return "%d probes late, which were scored once their labels could be read" % known, "%d late" % late
    if late and data["state"] == "pass":
        return "no pass where %d probes have no score from before their label" % late, "a pass"


def rule_rows(state, e):
    """Rows count that were scored before the first label of their policy; estimates and comparisons say how many do not."""
    if e.kind not in BY_TERMS or e.experiment is None or not state.asks("rows_before"):
        return None
    terms = e.data["terms"].get("estimate", e.data["terms"])
    if "iteration" not in terms and terms.get("rows") != "scored_before":
        return "rows scored_before: only those that were scored before the first label of their policy", "rows of any time"
    sides = {"estimate.recorded": (("policy", "late"),),
             "contrast.recorded": (("first", "first_late"), ("second", "second_late"))}
    for policy, late in ((e.data[policy], e.data.get(late)) for policy, late in sides.get(e.kind, ())):
        timely, others = state.judged_rows.get((e.experiment, policy), {}).get(terms["judge"], (0, ()))
        in_part = "environment" in terms          # of one environment nobody here knows which rows are in it
        if late is None or late > len(others) or late < len(others) and not in_part:
            return "%d rows of %s that were scored once its labels could be read" % (len(others), policy), str(late)
        rows = e.data.get("rows", timely)
        if rows > timely or rows < timely and not in_part:
            return "the %d rows of %s that were scored before its labels" % (timely, policy), str(e.data["rows"])


def all_timely_problem(state, e):
    """A family of environments is tested by every probe of its design, or the probe is late; beside one none passes."""
    data, design, judge = e.data, e.data["design"], e.data["terms"]["judge"]
    policies = state.open_probes.get(e.experiment, {})
    every = sum(len(designs.get(design, ())) for designs in policies.values())
    if data["probes"] + data["late"] != every:
        return "all %d probes of %s, counted or late" % (every, design), "%d and %d" % (data["probes"], data["late"])
    known = sum(state.late_scores.get((e.experiment, policy, design, judge), 0) for policy in policies)
    if data["late"] < known:
        return "%d probes late, which were scored once their labels could be read" % known, "%d late" % data["late"]
    problem = family_problem(state, e) if state.asks("inside_probes") else None
    if problem:
        return problem
    if data["late"] and any(of["verdict"] == "pass" for of in data["environments"]):
        return "no pass beside %d probes that are late" % data["late"], "a pass"


def rule_window(state, e):
    """A window of time is read alone only where a family with it was tested, as a plan named it."""
    if e.kind not in BY_TERMS or e.experiment is None:
        return None
    terms = e.data["terms"].get("estimate", e.data["terms"])
    scope = terms.get("environment", {})
    tested = state.environments.get((e.experiment, terms["judge"]), {})
    if "window" in scope and scope_key(scope) not in tested:
        return "a test of %s, which a plan named" % scope_words(scope), "none"


def rule_said(state, e):
    """Covariates, and strata that weight labels, were said before the labels could be read."""
    if e.kind not in BY_TERMS or e.experiment is None or not state.asks("said_before"):
        return None
    terms = e.data["terms"].get("estimate", e.data["terms"])
    if "iteration" in terms:
        return None
    named, unnamed = state.late_fields.get(e.experiment, {}), state.late_unnamed.get(e.experiment)
    for field in terms["covariates"]:
        late = named.get(field, unnamed) if field != "response_length" else None
        if late:
            return "covariate %s said before the first label, at seq %d" % (field, late[0]), "some at seq %d" % late[1]
    strata = state.late_strata.get(e.experiment, {})
    late = min(strata.values()) if strata else unnamed if state.calibrated.get(e.experiment) else None
    if terms["labels"] == "weighted" and late:
        return "strata said before the first label of their policy, at seq %d" % late[0], "some at seq %d" % late[1]


def audit_width(e):
    """An audit reaches as far as the bound of nearly constant labels, and passes nothing by a width of zero."""
    if e.data["algorithm"] != "transport/2":
        return "algorithm transport/2", e.data["algorithm"]
    ends = (e.data[name].get("interval") for name in ("narrow", "wide"))
    if any(of and of["low"] >= of["high"] for of in ends):
        return "an interval with a width, or none", "a width of zero"


DRIFT_USUAL = dict(chart="cusum", chart_micro=500_000, q_micro=10_000, replicates=9999, sd_micro=50_000, seed=42,
                   tau_min_micro=800_000)
TABLE_9 = dict(
    affinity_good_micro=850_000, affinity_warn_micro=500_000, cv_max_micro=2_000_000, ess_good_micro=300_000,
    ess_warn_micro=100_000, guarded_max_micro=500_000, hill_good_micro=2_000_000, hill_warn_micro=1_000_000,
    near_zero_max_micro=850_000, top_mass_max_micro=300_000, ttc_good_micro=700_000, ttc_warn_micro=300_000)
GRADED = ("alpha_micro", "clusters_min", "family_size", "margin_micro")


def opened_probe(state, e):
    """The entry by which a probe of an audit's design was open, after which no plan counts; None where nobody asks."""
    asks = e.kind == "transport.tested" and state.asks("planned_probes")
    return state.opened(e.experiment, e.data["design"]) if asks else None


def stood(version, seq):
    """Whether a version was in force before an entry."""
    signed = version.countersigned or not version.needs
    return version.since is not None and version.since < seq and signed


def plans_before(record_, opened):
    """Whether a plan of audits was in force before an entry, as it is now."""
    current = record_.in_force()
    then = next((version for version in reversed(record_.versions) if stood(version, opened)), None)
    return bool(then and current and then.manifest.get("transport") == current.manifest.get("transport"))


def is_replaced(state, record_):
    """Whether another manifest has the place of this one."""
    return replaced_seq(state, record_) is not None if state.asks("plan_in_force") else bool(record_.superseded_by)


def first_plan(state, e, opened):
    """(record, still in force) of the plan that was in force first before an entry; (None, False) where there was none."""
    found = []
    for name in sorted(state.manifests, key=lambda name: name.encode("utf-8")):
        record_ = state.manifests[name]
        version = next((version for version in reversed(record_.versions) if stood(version, opened)), None)
        replaced = replaced_seq(state, record_)
        if record_.experiment != e.experiment or version is None or "transport" not in version.manifest:
            continue
        if replaced is not None and replaced <= opened:
            continue
        plans = (of for of in record_.versions if "transport" in of.manifest and of.since is not None)
        found.append((min(of.since for of in plans if of.countersigned or not of.needs), record_))
    if not found:
        return None, False
    record_ = min(found, key=lambda pair: pair[0])[1]
    return record_, not is_replaced(state, record_) and plans_before(record_, opened)


def audit_grades(state, e):
    """An audit is graded by the plan that was in force first, before a probe of its design was open, else as is usual."""
    opened, audit = state.opened(e.experiment, e.data["design"]), e.data["audit"]
    if opened is None:
        return "a label of the design that is open", "none"
    record_, stands = first_plan(state, e, opened)
    if record_ is not None and stands:
        current = record_.in_force()
        if audit.get("manifest") != current.digest:
            return "the digest %s of the plan that was in force first" % current.digest, str(audit.get("manifest"))
        numbers = {name: current.manifest["transport"][name] for name in GRADED}
        same = numbers == {name: audit.get(name) for name in GRADED}
        return families_problem(state, e, current) if same else ("the thresholds that it registers", "others")
    if audit.get("manifest") is not None:
        return "no manifest: none that is in force planned audits before a probe was open", audit["manifest"]
    if record_ is not None:
        passes = e.data["state"] == "pass"
        return ("no pass: its plan was changed after a probe was open", "a pass") if passes else None
    least = len(state.probed.get((e.experiment, e.data["design"]), ()))
    if state.asks("whole_family"):
        scored = len(state.scores_of.get(e.experiment, {}))
        least = max(least, state.families_probed.get((e.experiment, e.data["design"]), scored))
    most = usual_margin(state, e)
    if audit.get("margin_micro") is None:
        return "a margin", "none"
    usual = audit["margin_micro"] <= most and audit["alpha_micro"] <= 50_000 and audit["clusters_min"] >= 20
    if not usual or audit["family_size"] < least:
        return "the usual numbers or stricter ones, and a family of at least %d" % least, "others"


def usual_margin(state, e):
    """A twentieth of the declared scale of labels, else of the scale that terms name, from rulebook 24 on of one at most."""
    named, declared = e.data["terms"].get("label_scale"), state.label_scales.get(e.experiment)
    scale = declared or (named and (named["low_micro"], named["high_micro"]))
    if not scale or not state.asks("scaled_margin"):
        return 50_000
    width = (scale[1] - scale[0]) // 20
    return min(width, 50_000) if declared is None and state.asks("declared_margin") else width


def families_problem(state, e, current):
    """A policy is audited by probes that tested every family of the plan before: who drops a family drops the audit."""
    named = (of["family"] for of in current.manifest["transport"]["environments"] if "family" in of)
    tested = ((e.experiment, e.data["design"], family) in state.families_tested for family in named)
    if "environment" not in e.data["terms"] and not all(tested):
        return "a test of every family that the plan names, before this audit", "none of one"


def environments_grades(state, e):
    """A family of environments is tested as the plan has it that was in force first: all of it, at its level."""
    opened = state.opened(e.experiment, e.data["design"])
    if opened is None:
        return "a label of the design that is open", "none"
    record_, stands = first_plan(state, e, opened)
    if record_ is None or not stands:
        return "a plan of audits that was in force before a probe was open and still is", "none"
    current = record_.in_force()
    if e.data["manifest"] != current.digest:
        return "the digest %s of the plan that was in force first" % current.digest, e.data["manifest"]
    plan, names = current.manifest["transport"], ("environment", "family", "window")
    planned = [({name: of[name] for name in names if name in of}, of["required"])
               for of in plan["environments"] if of.get("family") == e.data["family"]]
    if not planned or planned != [(of["scope"], of["required"]) for of in e.data["environments"]]:
        return "all %d environments of %s that the plan names" % (len(planned), e.data["family"]), "others"
    found = (e.data["q_micro"], e.data.get("correction"))
    same = found == (plan.get("q_micro", 100_000), plan.get("correction"))
    return None if same else ("level and correction of environments that the plan registers", "others")


def planned_problem(state, e):
    """Policies are compared by the correction, and estimated by the weight, of the plan that was in force first."""
    if e.kind == "contrast.recorded":
        correction = planned_estimate(state, e.experiment, "correction")
        said = e.data.get("correction", "benjamini_hochberg")
        if correction is not None and said != correction:
            return "correction %s, as the plan in force first says" % correction, "correction %s" % said
    weight, said = planned_estimate(state, e.experiment, "weight"), e.data["terms"].get("weight", "one")
    if weight is not None and said != weight:
        return "weight %s, as the plan in force first says" % weight, "weight %s" % said


def first_numbers(state, e, of, said):
    """Drift and overlap are judged by the plan that was in force before the result could be seen, else by the usual numbers."""
    usual, found, digest = said
    looks = state.first_anchors if of == "drift" else state.first_outcome
    look, plans = looks.get(e.experiment, SAFE_INTEGER + 1), []
    for name in sorted(state.manifests, key=lambda name: name.encode("utf-8")):
        record_ = state.manifests[name]
        replaced = replaced_seq(state, record_)
        then = next((version for version in reversed(record_.versions) if stood(version, look)), None)
        if record_.experiment != e.experiment or then is None or replaced is not None and replaced < look:
            continue
        has = [version for version in record_.versions if of in version.manifest.get("diagnostics", {})]
        if then in has:
            since = min(seq for seq in map(stands_since, has) if seq is not None)
            plans.append((since, then.digest, then.manifest["diagnostics"][of]))
    if not plans:
        same = digest is None and found == usual
        return None if same else ("the usual thresholds: no plan was in force before the result could be seen", "others")
    _, first, numbers = min(plans, key=lambda plan: plan[0])
    if digest != first or found != numbers:
        return "the thresholds of the plan that was in force before the result could be seen, %s" % first, str(digest)


def rule_thresholds(state, e):
    """Diagnostics are judged by the numbers that a manifest of the experiment registers, else by the usual ones.

    Estimates and comparisons are computed as it says."""
    if e.experiment is None:
        return None
    if e.kind in ("estimate.recorded", "contrast.recorded"):
        return planned_problem(state, e) if state.asks("planned_estimates") else None
    if e.kind == "transport.tested" and state.asks("first_plan"):
        return audit_grades(state, e)
    if e.kind == "environments.tested":
        return environments_grades(state, e)
    if e.kind == "judge.drift_checked":
        of, usual = "drift", DRIFT_USUAL
        found, digest = e.data["terms"]["plan"], e.data["terms"].get("manifest")
    elif e.kind in ("ope.diagnosed", "ope.estimated"):
        of, usual = "overlap", TABLE_9
        found, digest = e.data["terms"]["thresholds"], e.data["terms"].get("manifest")
    elif e.kind == "transport.tested":
        of, usual, digest = "transport", None, e.data["audit"].get("manifest")
        found = {name: e.data["audit"].get(name) for name in GRADED}
    else:
        return None
    if usual is not None and state.asks("first_thresholds"):
        return first_numbers(state, e, of, (usual, found, digest))
    opened = opened_probe(state, e)
    named = state.of_digest(digest) if opened is not None else None
    if named and not plans_before(named, opened):
        return "a plan of audits in force before the first probe was open, at seq %d" % opened, "one in force later"
    planned = {}
    for name in sorted(state.manifests, key=lambda name: name.encode("utf-8")):
        record_ = state.manifests[name]
        current = record_.in_force()
        if record_.experiment != e.experiment or is_replaced(state, record_) or current is None:
            continue
        if opened is not None and not plans_before(record_, opened):
            continue
        sections = current.manifest if of == "transport" else current.manifest.get("diagnostics", {})
        if of in sections:
            numbers = sections[of]
            planned[current.digest] = {n: numbers[n] for n in GRADED} if of == "transport" else numbers
    if digest is not None:
        if digest not in planned:
            return "the digest of a manifest version in force that registers the thresholds", digest
        return None if planned[digest] == found else ("the thresholds that it registers", "others")
    if planned:
        return "the thresholds that a manifest registers, and its digest", "those of no manifest"
    return None if usual is None or usual == found else ("the usual thresholds", "others")
