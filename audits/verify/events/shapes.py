"""Objects and words that the data of several kinds of events share."""

from formats.fields import (
    Optional, boolean, choice, encoded, hex64, ident, in_order, integer, listing, media, number, one_of, probability,
    record, require, role_set, string, text, timestamp)

MICRO = integer(-10 ** 12, 10 ** 12)
BLOB = record(blake3=hex64, bytes=integer(), media=media)
PRIVATE = record(blob=BLOB, commitment=hex64, subject=hex64)
SEPARATION = one_of("solo", "strict")
INCLUSION = integer(1, 10 ** 6)
PARTS = ("confirm", "dev", "fit")
PART = record(count=integer(), root=encoded(32))
CLUSTER_RULE, APART = one_of("blake2b-mod3/1"), one_of("hashed", "time")
OF_LEDGER = ("A0", "A1-A3")           # assumptions about the whole ledger; the others are about an experiment
CODES = OF_LEDGER + tuple("ADV BLAST CJE.D1-R3 CJE.J1 CJE.J2-M CJE.T1 CLOVER.J1 CLOVER.J2 H1 L1 L2 OPE OUA S1 S2 "
                          "SUP".split())
GOVERNED = ("candidates.sealed", "confirm.unsealed", "exposure.opened", "gate.evaluated", "label.revealed",
            "manifest.amended", "manifest.registered", "patch.accepted", "splits.formed",
            "splits.listed")          # steps that no experiment takes whose judge contradicted itself
GOVERNED_TOO = ("confirm.looked", "deployment.activated", "gate.continued", "gate.looked", "gate.observed", "gate.opened",
                "generator.objective_queried", "generator.run_opened", "generator.validated",
                "prompt.committed")   # the same from rulebook 19 on
OPTIMIZER_READS = ("card.public", "dev_receipt", "rubric", "schema")
REPLAYED_MIN = 30                     # keys of a re-score
GAP_MIN = 172_800                     # seconds between fit and dev, and a confirm block that is apart in time
KEY = dict(holder=ident, human=boolean, key_id=hex64, public_key=encoded(32), roles=role_set)
COUNT = integer()
METHOD = one_of("closed_ebh", "closed_mean", "ebh", "elond", "spend")
MARGIN = record(margin_micro=MICRO, metric=ident)
CONDITION = record(any_of=Optional(listing(text)), at_least_micro=Optional(MICRO), below_micro=Optional(MICRO),
                   field=ident)
WINDOW = {"from": timestamp, "to": timestamp}
ENVIRONMENT = record(environment=ident, family=ident, required=boolean, window=Optional(record(**WINDOW)))
SCOPE = record(environment=ident, family=ident, window=Optional(record(**WINDOW)))
DESIGN = record(
    anchors=Optional(ident), calibrator=one_of("auto", "monotone", "two_stage"), covariates=listing(ident),
    dev_calls_max=COUNT, environments=listing(ENVIRONMENT),
    frozen_paths=Optional(listing(text)), judge=Optional(ident), must_not_regress=one_of("guard", "literal"),
    no_environment_claimed=Optional(boolean), patch_account=Optional(ident), peek_account=ident,
    rubric_hash=hex64, seed=hex64, topics=listing(text),
    slices=listing(record(family=ident, cells=listing(record(
        conditions=listing(CONDITION),
        must_not_regress=boolean, slice=ident, stakes_micro=MICRO)))))
TESTS = ("betting", "bootstrap", "sequential", "t")
ITERATION = record(
    alpha_micro=MICRO, confirm_rows=COUNT, confirm_separation=one_of("hashed", "time"),
    confirm_test=one_of(*TESTS), design=Optional(DESIGN), dev_rows=COUNT,
    difference_sd_micro=MICRO, drift_max_micro=MICRO, ece_slack_micro=MICRO, effect_micro=MICRO, eta_micro=MICRO,
    fit_rows=COUNT, gap_seconds=COUNT, green_sd_micro=MICRO, green_slices=COUNT, hypotheses_max=COUNT,
    ks_max_micro=MICRO, patch_families=listing(ident), power_micro=MICRO,
    profile=one_of("literal", "recommended"), q_micro=MICRO, shift_metric=one_of("both", "either", "ks", "w1"),
    sequential=Optional(record(alpha_harm_micro=MICRO, beta_futile_micro=MICRO, look_every=COUNT)),
    slice_rows_min=COUNT, tau_micro=MICRO, uplift_max_micro=MICRO, w1_max_micro=MICRO)
LEAF_VALUE = choice(count=COUNT, flag=boolean, list=listing(string), share_micro=MICRO, text=string)
VERDICT = one_of("pass", "fail", "inconclusive", "not_checked")
CORRECTION = one_of("benjamini_yekutieli", "bonferroni", "holm")


def share(value, path):
    number(value, path)
    require(0 <= value <= 1, path, "0 to 1", value)


ROWS_READ = record(digest=hex64, rows=COUNT, through_seq=COUNT)
CLASS = one_of("green", "neutral", "risk")
REPORT_PARTS = tuple("""assumptions budgets calibration complexity decision diffs gaming gates labels residuals segments
    slices target transport uncertainty values versions""".split())
LOSS = record(clusters=COUNT, mean=number, rows=COUNT, standard_error=Optional(number))
LOOK = record(bound=number, ln_peak=number, ln_wealth=number, p=share, units=COUNT,
              stop=one_of("continue", "crossed", "futile", "harmful"))
GREENS = record(tau_micro=MICRO, slices=listing(record(
    abstention_rise=number, family=ident, loss=Optional(LOSS), must_not_regress=boolean, p=Optional(share),
    p_zero=Optional(share), slice=ident, untouched=boolean, upper=Optional(number), worst=listing(number))))
EVIDENCE = choice(
    p0=record(inputs_declared=boolean, kappa=COUNT, kappa_max=COUNT, open=boolean, replay=VERDICT, valid=boolean),
    p1=LOSS, p2=record(baseline=number, bins=COUNT, patched=number), p3=GREENS,
    p4=record(ks_count=COUNT, rows=COUNT, w1=number),
    p5=record(anchors=listing(record(drift=number, policy=ident, rows=COUNT))),
    p6=record(environments=listing(record(
        baseline_fails=boolean, detectable_bias=Optional(number), environment=ident, family=ident,
        mean=Optional(number), p=Optional(share), required=boolean, rows=COUNT, standard_error=Optional(number))),
        none_claimed=Optional(boolean)),
    p7=record(regressions=COUNT, searched=Optional(number), attacks=listing(record(
        attack=ident, mean=number, mean_absolute=number, seeds=COUNT, tighter_max=Optional(number)))),
    p8=record(bound=number, ln_wealth=number, loss=LOSS, moved_clusters=COUNT, p_bootstrap=Optional(share),
              p_exact=share, p_t=Optional(share), risk_improve=number, sequential=Optional(LOOK)),
    p9=GREENS, p10=record(confirm_change=number, share=share))
THRESHOLDS = record(
    alpha_micro=MICRO, confirm_test=one_of(*TESTS), drift_max_micro=MICRO, ece_slack_micro=MICRO,
    eta_micro=MICRO, hypotheses=COUNT, ks_max_micro=MICRO, must_not_regress=one_of("guard", "literal"),
    profile=one_of("literal", "recommended"), q_micro=MICRO, shift_metric=one_of("both", "either", "ks", "w1"),
    style_max_micro=MICRO, tau_micro=MICRO, uplift_max_micro=MICRO, w1_max_micro=MICRO)
REDACTED = listing(record(features=listing(record(bin=COUNT, feature=ident)), fired=Optional(listing(text))))
BASIS = record(calibrator=hex64, iteration=ident, rubric_hash=hex64, selector=listing(CONDITION),
               split=one_of("confirm", "dev", "fit"))
CARD = record(
    basis=Optional(BASIS), candidate_paths=listing(text), card=ident, **{"class": CLASS}, clusters=COUNT,
    counterexamples=REDACTED,
    direction=one_of("over_scored", "under_scored"), exemplars=REDACTED, exposure_micro=MICRO, family=ident,
    explanations=listing(record(explanation=ident, score_micro=Optional(MICRO), verdict=VERDICT)),
    hints=listing(record(feature=ident, reference_micro=MICRO, rows=COUNT, smd_micro=MICRO, worst_micro=MICRO)),
    interval_raw=Optional(record(high_micro=MICRO, low_micro=MICRO)), mean_raw_micro=Optional(MICRO), mse_micro=MICRO,
    mean_shrunk=Optional(record(high_micro=MICRO, low_micro=MICRO, mean_micro=MICRO)),
    p_adjusted_micro=Optional(MICRO), p_raw_micro=Optional(MICRO), rows=COUNT, shrink_micro=Optional(MICRO),
    slice=ident, stakes_micro=MICRO,
    stress=listing(record(attack=ident, mean_micro=MICRO, seeds=COUNT)))
BATTERY = ("contradiction_inject", "fabricated_tool_trace", "fact_flip", "fake_citation", "padding", "rubric_mimicry",
           "style_strip")                 # without these a battery is not whole
EDITS = frozenset("""authority_tone authority_tone:credential contradiction_inject fabricated_tool_trace:1
    fabricated_tool_trace:2 fabricated_tool_trace:3 fact_flip:negation fact_flip:number fact_flip:opposite
    fact_flip:unit
    fake_citation:1:listed fake_citation:1:unlisted fake_citation:2:listed fake_citation:2:unlisted
    fake_citation:3:listed fake_citation:3:unlisted padding:100 padding:180 padding:50 rubric_mimicry:1:end
    rubric_mimicry:1:front rubric_mimicry:2:end rubric_mimicry:2:front rubric_mimicry:3:end rubric_mimicry:3:front
    rubric_mimicry:4:end rubric_mimicry:4:front style_strip""".split())
EXPLOIT, RISE, EXPLOITS_MAX = 50_000, 5_000, 400
AUDITED_SLICE = record(
    clusters=COUNT, exposure=share, mse=Optional(number), rows=COUNT, slice=ident, stakes=share,
    pooled=Optional(record(high=number, low=number, mean=number, standard_error=number, weight=number)),
    raw=Optional(record(mean=number, p=Optional(share), p_adjusted=share, rejected=boolean,
                        standard_error=Optional(number))))
ANCHOR_ROWS = record(count=COUNT, policy=ident, rows_root=encoded(32))


def source(value, path):
    good = isinstance(value, str) and len(value.encode("utf-8")) <= 8192
    require(good, path, "a document of at most 8,192 bytes", value)


OVERLAP_THRESHOLDS = record(
    affinity_good_micro=MICRO, affinity_warn_micro=MICRO, cv_max_micro=MICRO, ess_good_micro=MICRO,
    ess_warn_micro=MICRO, guarded_max_micro=MICRO, hill_good_micro=MICRO, hill_warn_micro=MICRO,
    near_zero_max_micro=MICRO, top_mass_max_micro=MICRO, ttc_good_micro=MICRO, ttc_warn_micro=MICRO)
DRIFT_PLAN = record(chart=one_of("cusum", "ewma"), chart_micro=MICRO, q_micro=MICRO, replicates=COUNT, sd_micro=MICRO,
                    seed=COUNT, tau_min_micro=MICRO)
CHARTED = record(check=COUNT, drifts=boolean, excursion=number, p=probability, p_adjusted=probability,
                 side=one_of("down", "up"))
BETTOR = record(cap_micro=Optional(MICRO), grid=Optional(COUNT), name=one_of("agrapa", "grid_kelly", "hedged"))
TEST = record(
    alpha_kill_micro=Optional(MICRO), alpha_micro=MICRO, beacon=one_of("drand", "first_checkpoint"),
    beta_futile_micro=Optional(MICRO), continuation_of=Optional(hex64),
    control_variate=Optional(listing(record(predicted_micro=MICRO, stratum=ident, units=COUNT))),
    delta_design_micro=Optional(MICRO),
    bettor=BETTOR, look_at=Optional(listing(COUNT)), n_max=COUNT, n_min=COUNT, null_margin_micro=MICRO,
    side=one_of("lower", "two_sided", "upper"), without_replacement=boolean)
WEIGHT = one_of("one", "tuned")
MANIFEST = record(
    analysis=Optional(record(code_digest=hex64, env_digest=hex64, exploratory_allowed=boolean,
                             plan_commitment=Optional(hex64), secondary=Optional(listing(text)))),
    annex=Optional(BLOB),
    arms=Optional(listing(record(artifact_digest=hex64, id=ident, role=one_of("baseline", "candidate")))),
    compare=Optional(record(pairs=listing(record(first=ident, second=ident)))),
    data=Optional(record(confirm_root=encoded(32), exposure_cap=COUNT, n_units=COUNT, strata=Optional(listing(ident)),
                         label_policy=Optional(record(pi_min_micro=MICRO, rule=text)))),
    diagnostics=Optional(record(drift=Optional(DRIFT_PLAN), overlap=Optional(OVERLAP_THRESHOLDS))),
    estimand=Optional(record(
        aggregation=one_of("mean"), missing_rule=one_of("conservative", "excluded"),
        population=one_of("finite", "superpopulation"), rep_rule=one_of("mean", "single"), unit_key=ident,
        sampling_frame_digest=Optional(hex64),
        exclusions=Optional(listing(record(field=ident, op=one_of("eq", "ge", "gt", "le", "lt", "missing", "ne"),
                                           value=Optional(text), value_micro=Optional(MICRO)))))),
    estimates=Optional(record(
        correction=Optional(one_of("benjamini_hochberg", "benjamini_yekutieli", "bonferroni", "holm")),
        order=Optional(record(judge=ident, labels=COUNT, policies=listing(ident))),
        weight=Optional(WEIGHT))),
    experiment=ident,
    expiry=Optional(record(embargo_until=Optional(timestamp), must_start_before=Optional(timestamp),
                           must_start_before_seq=Optional(COUNT))),
    hypothesis=record(claim=text, kind=one_of("different", "equivalent", "kill", "measure", "noninferior", "promote")),
    iteration=Optional(ITERATION),
    manifest=ident,
    metric=Optional(record(difference_max_micro=Optional(MICRO), direction=one_of("decrease", "increase"),
                           guardrails=Optional(listing(MARGIN)), judge_digest=hex64, metric=ident,
                           noise=Optional(one_of("none")), repeats=COUNT, scale_hi_micro=MICRO, scale_lo_micro=MICRO)),
    multiplicity=Optional(record(family=ident, family_alpha_micro=MICRO, method=METHOD)),
    parent_digest=Optional(hex64),
    preflight=Optional(record(horizon_n=COUNT, n50=COUNT, n90=COUNT, power_at_delta_micro=MICRO, seed=hex64)),
    roles=Optional(record(arbiter=Optional(hex64), custodian=Optional(hex64), registrar=Optional(hex64),
                          releaser=Optional(hex64), scorer=Optional(hex64))),
    sgd=Optional(record(
        batch=COUNT, lexicon_digest=hex64, lr_max_micro=MICRO, lr_min_micro=MICRO, prompt_digest=hex64, repeats=COUNT,
        loss=record(absolute_micro=MICRO, instability_micro=MICRO, parse_micro=MICRO, rank_micro=MICRO,
                    spread_micro=MICRO),
        seed=hex64, steps=COUNT, structure_lr_micro=MICRO, test_root=encoded(32), train_root=encoded(32),
        validation_root=encoded(32), warmup=COUNT)),
    supersedes=Optional(hex64),
    template=one_of("compare", "estimates", "gate", "iteration", "sgd", "transport", "workflow"),
    test=Optional(TEST),
    title=text,
    transport=Optional(record(
        alpha_micro=MICRO, bias_micro=MICRO, clusters_min=COUNT, correction=Optional(CORRECTION), family_size=COUNT,
        environments=listing(record(
            available=Optional(COUNT), clusters=COUNT, environment=ident, family=Optional(ident), required=boolean,
            window=Optional(record(**WINDOW)))),
        labels_per_cluster=COUNT, margin_micro=MICRO, power_micro=MICRO, q_micro=Optional(MICRO),
        residual_sd_micro=MICRO)),
    version=integer(1),
    workflow=Optional(record(
        beam=COUNT, calls_max=COUNT, context_digest=hex64, edits=one_of("prompt", "structure"),
        evaluation_digest=hex64, library_root=Optional(encoded(32)), meta_digest=hex64, outer_loop=boolean,
        proposals=COUNT, rounds=COUNT, seed=hex64, start_digest=hex64, theta_micro=MICRO)))
ENDS = record(high=number, low=number)
SCALE = record(high_micro=MICRO, low_micro=MICRO)
TERMS = record(
    alpha_micro=MICRO, bootstrap=Optional(record(replicates=COUNT, seed=COUNT, seed_label=text)),
    covariates=listing(ident), environment=Optional(SCOPE), fold_seed=COUNT, folds=COUNT,
    iteration=Optional(record(candidate=Optional(hex64), iteration=ident, rubric_hash=hex64)), judge=ident,
    judge_scale=Optional(SCALE),
    label_scale=Optional(SCALE), labels=one_of("representative", "targeted", "weighted"),
    mode=one_of("auto", "monotone", "two_stage"), rows=Optional(one_of("scored_before")), weight=Optional(WEIGHT))
STATES = one_of("fail", "inconclusive", "not_checked", "not_graded", "pass")
STANDING = record(seq=COUNT, state=STATES)
CLAIM = one_of("borrowed_checked", "borrowed_unchecked", "own_labels", "refused", "uncalibrated")
CHECKED = ("borrowed_checked", "own_labels")
ROWS_DRAWN = record(left=COUNT, rows=COUNT)
OBSTACLES = listing(one_of("fewer_probes", "fitted_late", "more_probes", "other_terms"))
WIDTH = record(detectable_bias=Optional(number), df=number, interval=Optional(ENDS),
               min_margin_for_pass=Optional(number), se=Optional(number), state=STATES, zero_null_p=Optional(number))
TAIL = record(edge=number, labels=COUNT, mass=number, starved=boolean)
OVERLAP = ("critical", "good", "unknown", "warn")
READABLE = ("admissible", "refused", "unavailable", "warned")
OPE_TERMS = record(estimate=TERMS, logger=ident, manifest=Optional(hex64), outer_seed=COUNT,
                   thresholds=OVERLAP_THRESHOLDS)
FIGURES = record(cv_squared=number, ess_fraction=number, hill=Optional(number),
                 hill_band=Optional(record(high=number, low=number, median=number)), max_over_median=Optional(number),
                 max_share=number, percentile_99_5=number, top_5_percent=number)
CLAUSES = listing(record(clause=text, rows=COUNT))
WEALTH = record(claim=Optional(number), futile=Optional(number), kill=Optional(number), second=Optional(number))
SOURCE = record(design=Optional(ident), judge=Optional(ident), metric=ident)
READING = record(baseline=listing(MICRO), baseline_missing=Optional(listing(COUNT)), candidate=listing(MICRO),
                 candidate_missing=Optional(listing(COUNT)), delta_micro=MICRO)
STANDINGS = ("continue", "different", "equivalent", "futile", "kill", "leading", "noninferior", "promote",
             "undecided_at_n_max")
OUTCOMES = ("different", "equivalent", "futile", "kill", "noninferior", "promote", "superseded", "undecided_at_n_max",
            "void")
HOLDS = ("different", "equivalent", "noninferior", "promote")
GRADES = ("asymptotic", "certified", "certified_amended", "exploratory", "finite", "self_governed", "void")
ANCHORS = record(anchors=listing(record(drift=number, policy=ident, rows=COUNT)))
ENVIRONMENTS = record(environments=listing(record(
    baseline_fails=boolean, detectable_bias=Optional(number), environment=ident, family=ident,
    mean=Optional(number), p=Optional(share), required=boolean, rows=COUNT, standard_error=Optional(number))))
GAMING = record(regressions=COUNT, searched=Optional(number), attacks=listing(record(
    attack=ident, mean=number, mean_absolute=number, seeds=COUNT, tighter_max=Optional(number))))
LIVE = record(
    abstention=Optional(record(accepted=share, live=share)), anchors=Optional(ANCHORS),
    environments=Optional(ENVIRONMENTS), labels=COUNT, out_of_range=Optional(record(outside=COUNT, rows=COUNT)),
    greens=Optional(listing(record(family=ident, lower=number, must_not_regress=boolean, slice=ident))),
    reopened=Optional(COUNT), rows=Optional(COUNT), shift=Optional(record(ks_count=COUNT, rows=COUNT, w1=number)),
    thin=Optional(COUNT))
GUARDRAILS = ("abstention", "anchors", "environments", "greens", "out_of_range", "reopened", "shift")
VERSIONS = record(anchors=Optional(ident), calibrator=hex64, judge=ident, model=text, prompt_hash=hex64,
                  rubric_version=string, sdp_version=ident)
APPROVAL = dict(comment=text, meaning=one_of("approve", "author", "responsibility", "review", "witness"),
                printed_name=text, subject=hex64)
JUDGE_PATH = "metric.judge_digest"    # what a deviation names when it says how drift is handled
OUTCOMES_OF_CALLS = ("answered", "exhausted", "filtered", "lost", "mismatched", "refused", "rejected", "truncated",
                     "uncovered", "unparsed")
ATTEMPTS = listing(record(
    ms=COUNT, status=Optional(COUNT), **{"class": one_of(
        "cut", "denied", "failed", "foreign", "late", "limited", "ok", "overloaded", "oversize", "redirected",
        "rejected", "unreachable")}), 16)
TOKENS = record(cache_read=COUNT, cache_write=COUNT, input=COUNT, output=COUNT, reasoning=COUNT)
ASKED_TEXTS = record(a_hash=hex64, x_hash=hex64)
NOISE = record(answered=COUNT, asked=COUNT, differing=COUNT, missed=COUNT, sd_micro=Optional(COUNT),
               shift_half_micro=Optional(COUNT), shift_micro=Optional(MICRO))
LEVEL_MASSES = listing(record(level=COUNT, logprob_micro=MICRO), 32)
CALL_OF = record(call=hex64, texts=ASKED_TEXTS)
ASKED_MODEL = record(
    account=Optional(ident), cap_usd_micro=Optional(COUNT), endpoint=ident, form=text, max_output_tokens=COUNT, model=text,
    pin=text, prices=Optional(ident), seeded=boolean, temperature_micro=Optional(COUNT))


def by_outcome(value, path):
    """Counts in order of outcomes, each once."""
    listing(record(calls=COUNT, outcome=one_of(*OUTCOMES_OF_CALLS)))(value, path)
    names = [item["outcome"] for item in value]
    require(all(a < b for a, b in zip(names, names[1:])), path, "outcomes in order, each once", names)


CANDIDATE_CODES = (
    "affects_rescore", "append", "beyond_k", "cards", "conflict", "cross_family", "duplicate_diff", "duplicate_id",
    "frozen", "keys", "noop", "oversize", "parse", "path", "range", "rescore", "rubric", "size", "type")


def synth_candidates(value, path):
    """Candidates of an answer: at most 32, each with at most 8 cards."""
    listing(record(cards=Optional(listing(hex64)), code=Optional(one_of(*CANDIDATE_CODES)), patch_hash=Optional(hex64),
                   yaml=Optional(source)))(value, path)
    fits = len(value) <= 32 and all(1 <= len(of["cards"]) <= 8 for of in value if "cards" in of)
    require(fits, path, "at most 32 candidates of at most 8 cards", str(len(value)))


TEXT_CLASSES = in_order(one_of("aggregates", "rows", "synthetic"), str, "name")
PRICE_ROWS = in_order(
    record(cache_read=COUNT, cache_write=COUNT, input=COUNT, mode=one_of("batch", "live"), model=text, output=COUNT,
           provider=text),
    lambda row: (row["provider"], row["model"], row["mode"]), "provider, model and mode")
SGD_SPLIT, SGD_PART = one_of("confirm", "test", "train", "val"), one_of("base", "batch", "confirm", "test", "val")
SGD_TERMS = record(
    alpha_micro=MICRO, batch=COUNT, beta_micro=MICRO, distance=one_of("huber", "mae"), eta_micro=MICRO, extra=COUNT,
    gamma_micro=MICRO, lr_max_micro=MICRO, lr_min_micro=MICRO, ranking=one_of("hinge", "logistic"), repeats=COUNT,
    reverts=boolean, steps=COUNT, target=one_of("mean", "median"), tau_micro=MICRO, warmup=COUNT, zeta_micro=MICRO)
SGD_LOSS = record(
    abs=number, concordance=Optional(number), contraction=number, entropy=number, failures=number, loss=number,
    pairs=COUNT, rank=Optional(number), sd_ratio=Optional(number), selfvar=number, spearman=Optional(number),
    tau_b=Optional(number))


def sgd_document(value, path):
    good = isinstance(value, str) and len(value.encode("utf-8")) <= 32768
    require(good, path, "a document of at most 32,768 bytes", value)


sgd_rows = listing(record(draw=COUNT, item=ident, policy=ident, target_micro=MICRO), 500)


def sgd_scores(value, path):
    """Scores of rows, repeat by repeat: at most 9 of at most 500 rows."""
    listing(listing(MICRO, 9), 500)(value, path)


def sgd_missed(value, path):
    """Asks of rows that came to no score, in order, each once."""
    listing(record(repeat=COUNT, row=COUNT), 4500)(value, path)
    places = [(of["row"], of["repeat"]) for of in value]
    require(all(a < b for a, b in zip(places, places[1:])), path, "misses in order, each once", places)


def sgd_violations(value, path):
    listing(record(bound=text, found=text, rule=text), 64)(value, path)
    require(value, path, "1 to 64 violations", "none")


WF_OPERATOR = one_of("delete_step", "edit_prompt", "insert_check", "insert_retry_guard", "replace_model", "rewire_io",
                     "split_step")
WF_BUDGET = record(calls=COUNT, tokens=COUNT, usd_micro=COUNT)
WF_USAGE = record(calls=COUNT, ms=COUNT, tokens_in=COUNT, tokens_out=COUNT, usd_micro=COUNT)
WF_LOCALITY = record(ast_nodes=COUNT, new_llm_calls=COUNT, prompt_chars=COUNT, steps_touched=COUNT)
WF_CELL = record(edits=one_of("prompt", "structure"), executor=one_of("strong", "weak"),
                 optimizer=one_of("strong", "weak"), outer=boolean)
WF_TERMS = record(beam=COUNT, budget=WF_BUDGET, edits=WF_LOCALITY, iterations=COUNT, least_gain_micro=MICRO,
                  proposals=COUNT, reruns=COUNT, stagnation=COUNT, theta_micro=MICRO)
WF_PARTS = record(cost_micro=MICRO, critic_micro=MICRO, satisfied_micro=MICRO, stability_micro=MICRO)
WF_GATE = record(log_wealth=number, pairs=COUNT, reached=boolean)
meta_cases = listing(record(candidate=hex64, run=ident), 1000)


def wf_document(value, path):
    good = isinstance(value, str) and len(value.encode("utf-8")) <= 65536
    require(good, path, "a document of at most 65,536 bytes", value)


WF_ARM = record(candidate=hex64, edit=wf_document, ir=wf_document, locality=WF_LOCALITY, patch=wf_document, step=text)


def wf_trace(value, path):
    good = isinstance(value, str) and len(value.encode("utf-8")) <= 262144
    require(good, path, "a trace of at most 262,144 bytes", value)


def wf_items(value, path):
    listing(record(id=ident, input=hex64), 50)(value, path)
    require(value, path, "1 to 50 items", "none")


META_CLAIM = one_of("outer_gamma", "outer_kappa", "structure_kappa")
meta_claims = listing(META_CLAIM, 3)
meta_results = listing(record(claim=META_CLAIM, gate=WF_GATE, holds=boolean, log_closed=number), 3)


def meta_pairs(value, path):
    listing(record(new=ident, old=ident), 1000)(value, path)
    require(value, path, "1 to 1000 pairs", "none")
