"""Rules of pre-registration: manifests, countersignatures, exposures and plans (`schema/MANIFEST.md`)."""

from formats.fields import decode_base64, micros
from events.commitments import h0_digest, manifest_digest, plan_commitment, unit_order
from history.records import draw_of_row
from rules.betting import horizon_problem
from rules.manifests import FIXED, amendment_class, changes, manifest_fault, signer_problem, supersession


def rule_manifest(state, e):
    if e.kind == "manifest.deviated":
        record_ = state.of_digest(e.data["digest"])
        known = record_ and record_.experiment == e.experiment
        return None if known else ("the digest of a manifest of this experiment", e.data["digest"])
    if e.kind not in ("manifest.registered", "manifest.amended"):
        return None
    manifest = e.data["manifest"]
    if e.experiment != manifest["experiment"]:
        return "an event of experiment %s" % manifest["experiment"], str(e.experiment)
    for name, digest in (("digest", manifest_digest(manifest)), ("h0_digest", h0_digest(manifest))):
        if e.data[name] != digest:
            return "%s %s" % (name, digest), e.data[name]
    problem = manifest_fault(manifest) or signer_problem("registrar", manifest, e.author)
    if problem or e.kind == "manifest.amended":
        return problem or noise_problem(state, manifest)
    if manifest["version"] != 1 or "parent_digest" in manifest:
        return "version 1 without parent_digest", "version %d" % manifest["version"]
    if manifest["manifest"] in state.manifests:
        return "a manifest id that is not used yet", manifest["manifest"]
    if "supersedes" in manifest:
        old = state.of_digest(manifest["supersedes"])
        if old is None:
            return "supersedes: the digest of a registered version", manifest["supersedes"]
        if old.superseded_by:
            return "a manifest that is not superseded yet", "one that %s superseded" % old.superseded_by
    return horizon_problem(state, manifest) or noise_problem(state, manifest)


def noise_problem(state, manifest):
    """A claim about exactly its own units is one about scores without noise."""
    test, noise = manifest.get("test"), manifest.get("metric", {}).get("noise")
    if state.asks("finite_claims") and test and test["without_replacement"] and noise is None:
        return "metric.noise none, or test.without_replacement false", "scores that may be noisy (E_UNIT)"


def rule_manifest_first(state, e):
    if e.kind in ("score.recorded", "label.recorded"):
        gates = state.gates(e.experiment)
        if gates and not any(gate.exposures for gate in gates):
            return "exposure.opened under a gate manifest before any score or open label", "none (E_EXPOSURE)"
    elif e.kind == "exposure.opened":
        record_ = state.of_digest(e.data["digest"])
        if not record_ or record_.experiment != e.experiment:
            return "a manifest of this experiment, registered before its exposure", e.data["digest"]
    elif e.kind == "manifest.registered" or (
            e.kind == "manifest.amended" and e.data["class"] in (1, 3) and not amendment_problem(state, e)):
        return looked_at(state, e.experiment, e.data["manifest"])
    elif e.kind == "manifest.countersigned":
        record_ = state.of_digest(e.data["digest"])
        version = record_ and record_.version(e.data["digest"])
        if version and version.needs and not version.countersigned:
            return looked_at(state, record_.experiment, version.manifest)


def looked_at(state, experiment, manifest):
    """What was seen of an experiment or a confirm set before a manifest binds it."""
    if manifest["template"] == "gate" and experiment in state.first_outcome:
        return ("a gate's manifest before any score or readable label of its experiment",
                "one at seq %d (E_ADAPTIVE_REUSE)" % state.first_outcome[experiment])
    root = manifest.get("data", {}).get("confirm_root")
    if root in state.exposed:
        return ("a confirm root whose units nobody has seen",
                "%s, exposed at seq %d (E_ADAPTIVE_REUSE)" % (root, state.exposed[root]))


def rule_amendment(state, e):
    if e.kind != "manifest.amended":
        return None
    problem, new = amendment_problem(state, e), e.data["manifest"]
    gate = state.gates_by_id.get(new["manifest"])
    if not problem and gate is not None and e.data["class"] >= 3:
        return ("no change of what is tested after gate.opened at seq %d" % gate.opened,
                "class %d (E_ORDER)" % e.data["class"])
    if not problem and gate is not None and "test" in new and new["test"]["bettor"] != gate.test["bettor"]:
        return "the bettor that the gate was opened with; another one takes a continuation", "another (E_BETTOR)"
    return problem or (None if rule_manifest(state, e) else horizon_problem(state, new))


def amendment_problem(state, e):
    """What keeps a version from following the one in force."""
    new = e.data["manifest"]
    record_ = state.manifests.get(new["manifest"])
    if record_ is None:
        return "a registered manifest", new["manifest"]
    parent = record_.in_force()
    if parent is None:
        return "a version in force", e.data["parent_digest"]
    if e.data["parent_digest"] != parent.digest or new.get("parent_digest") != parent.digest:
        return "parent_digest %s, in force" % parent.digest, e.data["parent_digest"]
    if new["version"] != len(record_.versions) + 1:
        return "version %d" % (len(record_.versions) + 1), "version %d" % new["version"]
    fixed = [path for path in changes(parent.manifest, new) if path in FIXED]
    if fixed:
        return "%s, which no amendment changes" % fixed[0], "another"
    expected = amendment_class(parent.manifest, new)
    if e.data["class"] != expected:
        return "class %d" % expected, "class %d" % e.data["class"]
    if record_.first_look is not None and expected == 3:
        return ("no change of what is tested after the first look at seq %d; a new manifest with supersedes %s would "
                "be accepted" % (record_.first_look, parent.digest), "class 3")
    if state.asks("one_order") and expected == 3:
        if any(version.countersigned for version in record_.versions):
            return "no change of what is tested after a countersignature", "class 3 (E_ORDER)"
    if record_.first_look is not None and expected == 1:
        return "an amendment of class 0 or 2 after the first look at seq %d" % record_.first_look, "class 1"


def rule_stale_version(state, e):
    if e.kind == "manifest.amended":
        record_ = state.manifests.get(e.data["manifest"]["manifest"])
        return record_ and supersession(record_)
    if e.kind not in ("manifest.countersigned", "manifest.deviated", "exposure.opened", "gate.opened",
                      "gate.observed", "gate.looked"):
        return None
    digest = e.data["digest"]
    record_ = state.of_digest(digest)
    if record_ is None or record_.superseded_by:
        return record_ and supersession(record_)
    due = record_.versions[-1] if e.kind == "manifest.countersigned" else record_.in_force()
    if due and due.digest != digest:
        return "version %d, %s" % (due.manifest["version"], due.digest), "%s (E_STALE_VERSION)" % digest


def rule_countersign(state, e):
    if e.kind == "exposure.opened":
        record_ = state.of_digest(e.data["digest"])
        if record_ and not record_.in_force():
            return "a manifest that its custodian has countersigned", "one that is not"
    if e.kind != "manifest.countersigned":
        return None
    record_ = state.of_digest(e.data["digest"])
    if record_ is None:
        return "the digest of a registered version", e.data["digest"]
    version = record_.version(e.data["digest"])
    if not version.needs:
        return "a version that binds confirm data", "one that needs no countersignature"
    problem = signer_problem("custodian", version.manifest, e.author)
    if problem:
        return problem
    if e.author == version.author:
        return "another key than the registrar's", e.author
    if version.amendment is not None and record_.first_look is not None:
        return ("an amendment that comes into force before the first look at seq %d" % record_.first_look,
                "one of class %d (E_STALE_VERSION)" % version.amendment)
    keys = [state.keys.get(e.author), state.keys.get(version.author)]
    if state.strict and all(keys) and keys[0].holder == keys[1].holder:
        return "another holder than the registrar's, under strict", keys[0].holder
    gate = state.gates_by_id.get(version.manifest["manifest"])
    if gate is not None and (version.amendment or 0) >= 3:
        return ("a version of what is tested that comes into force before gate.opened at seq %d" % gate.opened,
                "one of class %d (E_ORDER)" % version.amendment)


def rule_exposure(state, e):
    if e.kind in ("score.recorded", "label.revealed") and state.asks("scored_in_order"):
        return early_problem(state, e)
    record_ = state.of_digest(e.data["digest"]) if e.kind == "exposure.opened" else None
    current = record_ and record_.in_force()
    if not current:
        return None
    data, manifest = current.manifest.get("data"), current.manifest
    if data is None:
        return "a manifest that binds confirm data", "none (E_DATA_ROOT)"
    if e.data["confirm_root"] != data["confirm_root"]:
        return "confirm_root %s" % data["confirm_root"], "%s (E_DATA_ROOT)" % e.data["confirm_root"]
    number, first, last = e.data["exposure"], e.data["first_unit"], e.data["last_unit"]
    if number != record_.exposures + 1 or number > data["exposure_cap"]:
        return ("exposure %d of at most %d" % (record_.exposures + 1, data["exposure_cap"]),
                "exposure %d (E_EXPOSURE)" % number)
    if first != record_.units or last < first or last >= data["n_units"]:
        return ("units from %d to at most %d" % (record_.units, data["n_units"] - 1),
                "units %d to %d (E_EXPOSURE)" % (first, last))
    problem, expiry = signer_problem("custodian", manifest, e.author), manifest.get("expiry")
    problem = problem or through_problem(state, e, record_)
    if problem or expiry is None:
        return problem
    if "embargo_until" in expiry and e.recorded_at < micros(expiry["embargo_until"]):
        return "not before the embargo ends at %s" % expiry["embargo_until"], e.recorded_text
    if record_.exposures:
        return None
    if "must_start_before" in expiry and e.recorded_at >= micros(expiry["must_start_before"]):
        return "a start before %s" % expiry["must_start_before"], e.recorded_text
    if "must_start_before_seq" in expiry and e.position >= expiry["must_start_before_seq"]:
        return "a start below seq %d" % expiry["must_start_before_seq"], "seq %d" % e.position


def through_problem(state, e, record_):
    """The exposure of a gate's units names the last of them, at its place of the order."""
    through, bound = e.data.get("through"), record_.bound()
    if state.asks("scored_in_order") and record_.versions[0].manifest["template"] == "gate" and through is None:
        return "through: the name of the last unit exposed", "none (E_EXPOSURE)"
    drawn = bound and state.drawn.get(bound.digest)
    if through is not None and drawn and (bound.digest, e.data["last_unit"], through) not in state.placed_units:
        return "the unit at this place of the order drawn (E_ORDER)", through


def early_problem(state, e):
    """No unit of a gate is scored before it is exposed, nor off the scale of the gate that reads the score."""
    data = e.data
    draw = (data["policy"], data["item"]) if e.kind == "score.recorded" else draw_of_row(data["row"])
    if draw is None:
        return None
    arm, unit, roots = draw[0], draw[1], {}
    for name, record_ in state.manifests.items():
        bound, gate = record_.bound(), state.gates_by_id.get(name)
        if record_.experiment != e.experiment or record_.versions[0].manifest["template"] != "gate" or bound is None:
            continue
        if all(one["id"] != arm for one in bound.manifest.get("arms", [])):
            continue
        metric, decided = bound.manifest.get("metric"), gate is not None and gate.decided
        judges = [source.get("judge") for source in gate.sources] if gate else []
        if e.kind == "score.recorded" and metric and not decided and data["judge"] in judges:
            if not metric["scale_lo_micro"] <= data["score_micro"] <= metric["scale_hi_micro"]:
                return "a score on the scale of gate %s" % name, "%d (E_SCALE)" % data["score_micro"]
        if "data" in bound.manifest:
            waits, exposed = roots.get(bound.manifest["data"]["confirm_root"], (False, False))
            drawn = state.drawn.get(bound.digest)
            # Exposures from before rulebook 18 name no unit.
            seen = record_.exposures > 0 and record_.through is None
            seen = seen or record_.through is not None and drawn is not None and (
                unit_order(drawn[1]["seed"], unit) <= unit_order(drawn[1]["seed"], record_.through))
            roots[bound.manifest["data"]["confirm_root"]] = (
                waits or not decided and not record_.superseded_by, exposed or seen)
    for root, (waits, exposed) in roots.items():
        if waits and not exposed and (e.experiment, root, unit) in state.unit_names:
            return "a unit that is exposed first: a gate's confirm set lists it (E_EXPOSURE)", unit


def rule_plan(state, e):
    if e.kind == "exposure.opened" and state.asks("sealed_plan"):
        record_ = state.of_digest(e.data["digest"])
        current = record_ and record_.in_force()
        bound = current and current.manifest.get("analysis", {}).get("plan_commitment")
        if bound and not record_.exposures and record_.plan != bound:
            return "plan.sealed of analysis.plan_commitment %s before units are exposed" % bound, record_.plan or "none"
    if e.kind not in ("plan.sealed", "plan.revealed"):
        return None
    record_ = state.manifests.get(e.data["manifest"])
    record_ = record_ if record_ and record_.experiment == e.experiment else None
    if e.kind == "plan.revealed":
        if record_ is None or record_.plan is None:
            return "a sealed plan of this manifest", "none"
        opened = plan_commitment(e.ledger, e.data["manifest"], decode_base64(e.data["salt"]), e.data["plan"]["blake3"])
        return None if opened == record_.plan else ("what opens to %s" % record_.plan, opened)
    if record_ is None:
        return "a manifest of this experiment", e.data["manifest"]
    if record_.first_look is not None:
        return "a plan before the first look", "a first look at seq %d" % record_.first_look
    current = record_.in_force()
    bound = current and current.manifest.get("analysis", {}).get("plan_commitment")
    if bound and bound != e.data["commitment"]:
        return "commitment %s, as registered" % bound, e.data["commitment"]
