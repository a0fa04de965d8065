"""Folds of keys, budgets, labels, splits, fits, protocols and waivers into the state."""

from formats.canonical import encode
from formats.fields import decode_base64, micros, parse_vkey
from events.shapes import OF_LEDGER
from events.commitments import key_id_of
from history.rulebooks import RULEBOOK_NEWEST, RULEBOOK_UNNAMED
from history.records import Account, Key, Seal, Split, draw_of_row, row_of_draw
from history.environments import scope_key
from history.labels import matching_seals, shown_of
from history.iteration_folds import iteration_decision
from history.model_folds import call_named


def ledger_created(state, entry, data):
    if entry.position == 0:
        owner = data["owner"]
        public = decode_base64(owner["public_key"])
        state.origin, state.format = data["origin"], data["format"]
        state.strict = state.was_strict = data["policy"]["separation"] == "strict"
        state.keys[key_id_of(public)] = Key(public, owner)
        state.log_keys.append((0, parse_vkey(data["log_vkey"])))
        rulebook_in_force(state, 0, data.get("rulebook", RULEBOOK_UNNAMED))


def rulebook_in_force(state, seq, version):
    version = min(version, RULEBOOK_NEWEST)
    if not state.rulebooks or version > state.rulebook():
        state.rulebooks.append((seq, version))


def rulebook_adopted(state, entry, data):
    rulebook_in_force(state, entry.position, data["version"])


def key_added(state, _entry, data):
    key = Key(decode_base64(data["public_key"]), data)
    state.keys.setdefault(data["key_id"], key)
    if state.strict and state.asks("reads_before") and "optimizer" in data["roles"]:
        for (holder, name), known in state.known.items():
            if holder == data["holder"]:
                state.taints.setdefault(name, known)


def key_retired(state, entry, data):
    key = state.keys.get(data["key_id"])
    if key and not key.ended:
        key.ended = ("retired", entry.position)


def key_compromised(state, entry, data):
    key = state.keys.get(data["key_id"])
    if key:
        key.ended = key.ended or ("compromised", entry.position)
        since = state.compromised.get(data["key_id"], data["since_seq"])
        state.compromised[data["key_id"]] = min(since, data["since_seq"])


def policy_adopted(state, _entry, data):
    state.strict = data["separation"] == "strict"
    state.was_strict = state.was_strict or state.strict


def budget_opened(state, _entry, data):
    state.accounts.setdefault(data["account"], Account(data))


def budget_charged(state, entry, data):
    account = state.accounts.get(data["account"])
    state.charges.setdefault(entry.id.hex(), entry.position)
    if account:
        period = account.period_of(entry.recorded_text)
        account.spent[period] = account.spent.get(period, 0) + data["amount"]
        if account.unit == "peek":
            state.peeks[entry.id.hex()] = data["account"]
        if account.unit == "patch":
            state.patch_charges[entry.id.hex()] = period, data["account"]


def log_key_rotated(state, entry, data):
    state.log_keys.append((entry.position, parse_vkey(data["vkey"])))


def audit_attested(state, entry, data):
    state.attestations.append((entry.position, data["size"], data["root"]))


def experiment_registered(state, entry, _data):
    state.experiments.setdefault(entry.experiment, None)


def experiment_closed(state, entry, _data):
    if state.experiments.get(entry.experiment, 0) is None:
        state.experiments[entry.experiment] = entry.position


def label_design_registered(state, entry, data):
    if entry.experiment is not None:
        is_new = (entry.experiment, data["design"]) not in state.designs
        state.inclusions.setdefault((entry.experiment, data["design"]), data["inclusion_micro"])
        state.designs.setdefault((entry.experiment, data["design"]), data["purpose"])
        if is_new and data["purpose"] == "calibrate" and data.get("strata"):
            state.stratified.add(entry.experiment)
        if is_new and data["purpose"] == "audit" and data.get("strata"):
            state.uneven.add((entry.experiment, data["design"]))
        state.protocols.setdefault((entry.experiment, data["design"]), data["protocol"])
        if data["purpose"] == "audit":
            state.probes.setdefault((entry.experiment, data["design"]))
        state.design_seqs.setdefault((entry.experiment, data["design"]), entry.position)
        state.governed.add(entry.experiment)
        if data["purpose"] == "confirm":
            state.blocks.setdefault(entry.experiment, [0, 0, 0])


def label_service(state, entry, row, purpose):
    if entry.experiment is not None:
        state.first_label.setdefault((entry.experiment, entry.data["design"]), entry.position)
    if row is not None:
        state.draws.setdefault((entry.experiment, row), set()).add(purpose)


def readable_outcome(state, entry, _data):
    if entry.experiment is not None:
        state.first_outcome.setdefault(entry.experiment, entry.position)


def open_probe(state, entry):
    """A label could be seen; of probes that no audit used yet it is what a plan of audits comes before, or after."""
    key = (entry.experiment, entry.data["design"])
    if entry.experiment is None:
        return
    state.first_open.setdefault(key, entry.position)
    if key not in state.probes:
        return
    state.probes[key] = entry.position if state.probes[key] is None else state.probes[key]
    for record_ in state.manifests.values():
        plans = any("transport" in version.manifest for version in record_.versions)
        if plans and record_.experiment == entry.experiment and record_.first_probe is None:
            record_.first_probe = entry.position


def probe(state, key, policy):
    """A design for audits has a label of a policy, open or sealed."""
    if policy is not None and key[0] is not None and state.designs.get(key) == "audit":
        state.probed.setdefault(key, set()).add(policy)


def share_probe(state, key, row):
    """Two designs that share an open probe count from the first one of both; from rulebook 22 on no more can share."""
    designs = state.probe_designs.setdefault((key[0], row), [])
    if not state.asks("one_probe") and designs and designs[0] != key[1]:
        both = (key[0], designs[0]), key
        seqs = [of[one] for one in both for of in (state.first_open, state.shared_open) if one in of]
        state.shared_open[both[0]] = state.shared_open[both[1]] = min(seqs)
    if key[1] not in designs:
        designs.append(key[1])


def readable_probe(state, position, experiment, design, policy, row):
    """A probe of a design for audits whose label can be read from here on, and what it was drawn from."""
    scores = state.scores_of.get(experiment, {})
    state.families_probed.setdefault((experiment, design), len(scores))
    key = (experiment, policy, design)
    if key not in state.first_probe:
        calibrated = len(state.calibrated_rows.get((experiment, policy), ()))
        state.first_probe[key] = position, dict(scores.get(policy, {})), calibrated
    designs = state.open_probes.setdefault(experiment, {}).setdefault(policy, {})
    designs.setdefault(design, set()).add(row)


def probe_prompt(state, entry, prompt):
    """A prompt of a policy is a probe of a design, open or sealed."""
    designs = state.prompt_designs.setdefault((entry.experiment,) + tuple(prompt), set())
    designs.add(entry.data["design"])


def label_readable(state, entry, policy, item):
    """A label of a policy can be read from here on: rows of it that are scored later do not count."""
    state.row_labels.setdefault((entry.experiment, policy), set()).add(item)


def row_scored(state, entry, data):
    """A row counts if it is scored before the first label of its policy can be read."""
    labels = state.row_labels.get((entry.experiment, data["policy"]))
    rows = state.judged_rows.setdefault((entry.experiment, data["policy"]), {}).setdefault(data["judge"], [0, {}])
    if labels is None:
        rows[0] += 1
    else:
        rows[1][data["item"], data["draw"]] = (entry.position, data["item"] not in labels)


def row_drawn(state, entry, data):
    """A late row of a new prompt counts once its label names a design that was registered after its score."""
    registered = state.design_seqs.get((entry.experiment, data["design"]))
    if data["purpose"] != "calibrate" or registered is None:
        return
    for rows in state.judged_rows.get((entry.experiment, data["policy"]), {}).values():
        seq, is_new = rows[1].get((data["item"], data["draw"]), (registered, False))
        if is_new and seq < registered:
            del rows[1][data["item"], data["draw"]]
            rows[0] += 1


def data_ingested(state, entry, data):
    """Fields that an import says first, once a label could be read: whoever said them could know labels."""
    experiment = entry.experiment
    if experiment is None or not state.asks("said_before"):
        return
    first, calibrated = state.first_readable.get(experiment), state.calibrated.get(experiment, {})
    if "fields" not in data:
        if first is not None:
            state.late_unnamed.setdefault(experiment, (first, entry.position))
        return
    for of in data["fields"]:
        if "stratum" in of["fields"] and of["policy"] in calibrated:
            late = state.late_strata.setdefault(experiment, {})
            late.setdefault(of["policy"], (calibrated[of["policy"]], entry.position))
        for field in of["fields"] if first is not None else ():
            state.late_fields.setdefault(experiment, {}).setdefault(field, (first, entry.position))


def label_recorded(state, entry, data):
    row = row_of_draw(data["policy"], data["item"], data["draw"])
    if entry.experiment is not None:
        state.first_readable.setdefault(entry.experiment, entry.position)
        label_readable(state, entry, data["policy"], data["item"])
        row_drawn(state, entry, data)
        if data["purpose"] == "calibrate":
            state.calibrated.setdefault(entry.experiment, {}).setdefault(data["policy"], entry.position)
            state.calibrated_rows.setdefault((entry.experiment, data["policy"]), set()).add(row)
        else:
            state.held_back.add(entry.experiment)
            readable_probe(state, entry.position, entry.experiment, data["design"], data["policy"], row)
            probe_prompt(state, entry, (data["policy"], data["item"]))
    label_seen(state, entry, data)
    key = (entry.experiment, data["design"])
    state.open_of[key] = state.open_of.get(key, 0) + 1
    probe(state, key, data["policy"])
    open_probe(state, entry)
    if data["purpose"] == "audit" and entry.experiment is not None:
        share_probe(state, key, row)
    said = data["value_micro"] if data["purpose"] == "calibrate" else None
    state.said_of.setdefault((entry.experiment, row, data["rater"]), {}).setdefault(data["design"], said)
    readable_outcome(state, entry, data)
    label_service(state, entry, row, data["purpose"])
    state.open_clusters.add((entry.experiment, data["item"]))


def label_seen(state, entry, data):
    """A label that can be seen widens the range of those of its experiment."""
    value = data["value_micro"]
    low, high = state.label_ranges.get(entry.experiment, (value, value))
    state.label_ranges[entry.experiment] = min(low, value), max(high, value)


def label_scale_declared(state, entry, data):
    if data["low_micro"] < data["high_micro"]:
        state.label_scales.setdefault(entry.experiment, (data["low_micro"], data["high_micro"]))


def score_scale_declared(state, entry, data):
    if data["low_micro"] < data["high_micro"]:
        scale = data["low_micro"], data["high_micro"]
        state.score_scales.setdefault((entry.experiment, data["judge"]), scale)


def judge_compared(state, entry, data):
    if "plan" in data:
        state.compared.add((entry.experiment, frozenset((data["first"], data["second"]))))


def label_sealed(state, entry, data):
    key = (entry.experiment, data["design"])
    block = state.in_block(*key)
    if block:
        block[0], block[2] = block[0] + 1, max(block[2], micros(data["reveal_by"]))
    state.sealed_of[key] = state.sealed_of.get(key, 0) + 1
    draw = draw_of_row(data["row"])
    probe(state, key, (draw or (None,))[0])
    if draw is not None and entry.experiment is not None and state.designs.get(key) == "audit":
        probe_prompt(state, entry, draw[:2])
    label_service(state, entry, data["row"], "sealed")
    state.seals.setdefault((entry.experiment, data["design"], data["row"]), []).append(Seal(entry.position, data))


def seal_accepted(state, entry, data):
    label_service(state, entry, None, None)
    state.accepted.add((entry.experiment, data["design"], data["row"]))


def label_revealed(state, entry, data):
    if entry.experiment is not None:
        state.held_back.add(entry.experiment)
    label_seen(state, entry, data)
    key = (entry.experiment, data["design"])
    of_block, draw = state.in_block(*key), draw_of_row(data["row"])
    if draw is not None and entry.experiment is not None:
        state.first_readable.setdefault(entry.experiment, entry.position)
        label_readable(state, entry, draw[0], draw[1])
        if state.designs.get(key) == "audit":
            readable_probe(state, entry.position, entry.experiment, data["design"], draw[0], data["row"])
    state.paid_for.setdefault(data["charge"], state.labels_of(*key))
    if of_block:
        of_block[1] += 1
    state.revealed_of[key] = state.revealed_of.get(key, 0) + 1
    open_probe(state, entry)
    label_service(state, entry, None, None)
    for seal in matching_seals(state, entry):
        seal.revealed = True
    for record_ in state.manifests.values():
        if record_.experiment == entry.experiment:
            record_.look(entry.position)
    readable_outcome(state, entry, data)
    block, item = shown_of(state, entry)
    if block and block.last != item:
        block.units, block.last = block.units + 1, item
    for it in state.iterations.values():
        if it.experiment == entry.experiment and it.closed is None and it.unsealed is None:
            it.unsealed = entry.position


def splits_listed(state, entry, data):
    split = Split(data["split"], data.get("by"))
    if entry.experiment is not None:
        split = state.splits.setdefault(entry.experiment, split)
    for cluster in data["clusters"]:
        split.push(data["part"], cluster)
        state.placed.add((entry.experiment, data["split"], cluster))
        if data["part"] == "confirm":
            state.confirm.add((entry.experiment, cluster))


def splits_formed(state, entry, data):
    state.splits.pop(entry.experiment, None)
    if entry.experiment in state.blocks:
        state.blocks[entry.experiment] = [0, 0, 0]
        state.split_since[entry.experiment] = entry.position
    if entry.experiment is not None:
        state.formed.setdefault(entry.experiment, {}).setdefault(data["split"], entry.position)
        if "t2" in data:
            state.windows.setdefault(entry.experiment, []).append((micros(data["t2"]), data["t2"]))
    state.confirm_roots.add((entry.experiment, data["confirm"]["root"]))
    if entry.experiment is not None:
        counts = tuple(data[part]["count"] for part in ("confirm", "dev", "fit"))
        state.split_counts.setdefault(entry.experiment, {}).setdefault(data["split"], counts)


def calibrator_fitted(state, entry, data):
    judge = data["terms"]["judge"]
    state.fitted.add((entry.experiment, judge, data["calibrator"]))
    scope = scope_key(data["terms"].get("environment"))
    if entry.experiment is not None and not scope:
        known, of = state.deploys_of(entry.experiment).calibrators, data["terms"].get("iteration")
        rubrics = known.get(data["calibrator"], (None, 0, set()))[2] | ({of["rubric_hash"]} if of else set())
        known[data["calibrator"]] = (judge, entry.position, rubrics)
        mine = state.deploys_of(entry.experiment).fits
        own = mine.get((judge, data["calibrator"]), (0, set()))[1] | ({of["rubric_hash"]} if of else set())
        mine[judge, data["calibrator"]] = (entry.position, own)
    if "iteration" in data["terms"]:
        iteration_decision(state, entry, data)
    if data["labels_by_policy"]:
        state.local[entry.experiment, judge, scope, data["calibrator"]] = data["labels"]
    if data["labels_by_policy"] and entry.experiment is not None:
        newest = max(of["newest_seq"] for of in data["labels_by_policy"])
        state.newest_label.setdefault((entry.experiment, judge, scope, data["calibrator"]), newest)
        state.on_terms.setdefault((entry.experiment, judge, scope, fit_terms(data["terms"])), entry.position)
    for labels in data["labels_by_policy"]:
        fit = (entry.experiment, judge, data["calibrator"], labels["policy"], scope)
        state.labelled.setdefault(fit, (labels["labels"], labels.get("prompts", labels["labels"])))
        key = (entry.experiment, judge, labels["policy"], scope)
        if key in state.failed and answers(state, key, labels):
            del state.failed[key]


def answers(state, key, labels):
    """Whether labels of a fit answer a failed audit: one that is newer, from rulebook 23 on as many as it had prompts, from
    24 on labels of as many prompts."""
    seq, prompts, (before, labelled) = state.failed[key]
    if state.asks("answered_prompts"):
        enough = labels.get("prompts", 0) - labelled >= prompts
    else:
        enough = labels["labels"] - before >= prompts or not state.asks("answered_failure")
    return seq < labels["newest_seq"] and enough


def fit_terms(terms):
    """What of its terms a fit may be chosen by."""
    return encode([terms["covariates"], terms["fold_seed"], terms["folds"], terms.get("label_scale"), terms["mode"]])


def transport_tested(state, entry, data):
    scope = scope_key(data["terms"].get("environment"))
    state.audited.setdefault((entry.experiment, data["design"], data["policy"], scope), entry.position)
    state.probes.pop((entry.experiment, data["design"]), None)
    if entry.experiment is not None:
        judge, clusters = data["terms"]["judge"], data["clusters"]
        key = (entry.experiment, judge, data["policy"], scope)
        state.newest[key] = (data["calibrator"], entry.position, data["state"])
        tested = (data["calibrator"], entry.position, data["state"])
        if not scope:
            state.deploys_of(entry.experiment).transports[entry.id.hex()] = tested
        standing = state.failed.get(key)
        if data["state"] == "fail":
            labels = state.labelled.get((entry.experiment, judge, data["calibrator"], data["policy"], scope), (0, 0))
            prompts = max(clusters, standing[1] if standing else 0)
            state.failed[key] = entry.position, prompts, labels
        elif data["state"] == "pass" and standing and standing[1] <= clusters and state.asks("answered_failure"):
            del state.failed[key]


def judge_drift_checked(state, entry, data):
    failed = "fail" in data["verdicts"].values()
    seq = entry.position if failed else state.drifts.get((entry.experiment, data["judge"]), (None,))[0]
    state.drifts[entry.experiment, data["judge"]] = seq, failed


def sdp_version_registered(state, entry, data):
    if all(version != data["sdp_version"] for version, _, _ in state.sdp):
        state.sdp.append((data["sdp_version"], micros(data["effective_at"]), entry.position))
        state.bridge = {}                      # what was said of the bridge is stale


def bridge_assessed(state, entry, data):
    state.bridge[data["kind"]] = (data["status"], entry.position)


def score_conflict(state, entry, _data):
    if entry.experiment is not None:
        state.conflicts.setdefault(entry.experiment, {}).setdefault("conflict", entry.position)
        state.contradictions.setdefault(entry.experiment, (entry.kind, entry.position))


def score_replayed(state, entry, data):
    """A re-score that comes out otherwise contradicts as a conflict does; the newest one counts."""
    if entry.experiment is not None:
        of = state.conflicts.setdefault(entry.experiment, {})
        of.pop("replay", None)
        if data["mismatches"]:
            of["replay"] = entry.position
            state.contradictions.setdefault(entry.experiment, (entry.kind, entry.position))


def assumption_waived(state, entry, data):
    scope = None if data["code"] in OF_LEDGER else entry.experiment
    if data["code"] in OF_LEDGER or scope is not None:
        state.waivers[scope, data["code"]] = (entry.id.hex(), entry.author, micros(data["expires_at"]))


def assumption_countersigned(state, _entry, data):
    for place in sorted(state.waivers, key=lambda place: (place[0] is not None, place)):
        if state.waivers[place][0] == data["waiver"]:
            state.granted[place] = (_entry.position, state.waivers.pop(place)[2])
            break


def data_read(state, entry, data):
    role = state.barred(data) if data["outcome"] == "allowed" else None
    open_ones = [name for name in state.experiments if state.experiments[name] is None]
    of, key = open_ones if entry.experiment is None else [entry.experiment], state.keys.get(data["reader"])
    if key is not None and data["outcome"] == "allowed" and (data["class"] == "label" or data["class"].startswith("label.")):
        for name in state.held_back.intersection(of):
            state.known.setdefault((key.holder, name), (entry.position, data["class"], "optimizer"))
    for name in [] if role is None else of:
        state.taints.setdefault(name, (entry.position, data["class"], role))


def judge_registered(state, entry, data):
    if entry.experiment is not None:
        state.deploys_of(entry.experiment).models.setdefault(data["judge"], data["model"])
        state.judges.setdefault(entry.experiment, {}).setdefault(data["judge"], (data, 0))


def score_recorded(state, entry, data):
    if entry.experiment is not None:
        row_scored(state, entry, data)
    if "call" in data:
        call_named(state, data["call"]["call"])
    readable_outcome(state, entry, data)
    rows = state.scored_at.setdefault(entry.experiment, {}).setdefault(data["judge"], {})
    row = row_of_draw(data["policy"], data["item"], data["draw"])
    if row not in rows and entry.experiment is not None:
        of = state.scores_of.setdefault(entry.experiment, {}).setdefault(data["policy"], {})
        of[data["judge"]] = of.get(data["judge"], 0) + 1
    rows.setdefault(row, entry.position)
    prompts = state.prompts.setdefault(entry.experiment, {}).setdefault(data["judge"], {})
    prompts.setdefault(data["policy"], {}).setdefault(data["draw"], set()).add(data["item"])
    for design, probes in state.open_probes.get(entry.experiment, {}).get(data["policy"], {}).items():
        if row in probes:
            key = (entry.experiment, data["policy"], design, data["judge"])
            state.late_scores[key] = state.late_scores.get(key, 0) + 1
    of = state.judges.get(entry.experiment, {})
    if data["judge"] in of:
        said, scores = of[data["judge"]]
        of[data["judge"]] = said, scores + 1
