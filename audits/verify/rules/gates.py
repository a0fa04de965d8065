"""Rules of orders that are drawn, and of gates that are opened or continued (`schema/GATES.md`)."""

from formats.tree import Tree, sha256
from formats.fields import b64, decode_base64
from events.commitments import unit_order
from history.records import alpha_of
from rules.betting import terms
from rules.manifests import STRATA_MAX, candidates, family_name, family_of, shares_candidate, signer_problem


def order_ground(state, e):
    """(problem, version that bound the units, beacon, seed) of an order that is being drawn."""
    record_ = state.of_digest(e.data["digest"])
    if not record_ or record_.experiment != e.experiment or record_.versions[0].manifest["template"] != "gate":
        return ("the digest of a gate's manifest of this experiment", e.data["digest"]), None, None, None
    bound = record_.bound()
    if bound is None or bound.digest != e.data["digest"]:
        return ("the version that bound the units", "%s (E_STALE_VERSION)" % e.data["digest"]), None, None, None
    if "data" not in bound.manifest or "test" not in bound.manifest:
        return ("a manifest that binds confirm data", "none (E_DATA_ROOT)"), None, None, None
    if record_.first_look is not None:
        return ("an order before any unit is exposed", "a first look at seq %d (E_ORDER)" % record_.first_look), \
            None, None, None
    if bound.manifest["test"]["beacon"] != "first_checkpoint":
        return ("test.beacon first_checkpoint", "drand (E_ORDER)"), None, None, None
    beacon = state.beacons.get(bound.since)
    if beacon is None and e.seen and e.seen[0] > bound.since:
        beacon = {"root": b64(e.seen[1]), "size": e.seen[0]}
    if beacon is None:
        return ("a checkpoint above seq %d" % bound.since, "none (E_ORDER)"), None, None, None
    seed = sha256(bytes.fromhex(bound.digest), decode_base64(bound.manifest["data"]["confirm_root"]),
                  decode_base64(beacon["root"])).hex()
    return None, bound, beacon, seed


def rule_order(state, e):
    """The entry after one that fixes what is tested names the checkpoint between them, from which an order is drawn."""
    if state.asks("beacon_place") and state.fixed is not None and e.position == state.fixed + 1:
        if not e.seen or e.seen[0] != e.position:
            return ("an entry that has seen the checkpoint of size %d" % e.position,
                    "one that has seen size %d (E_ORDER)" % (e.seen[0] if e.seen else 0))
    if e.kind == "units.listed":
        tree, last = state.units.get((e.experiment, e.data["confirm_root"]), (Tree(), None))
        if tree.size and b64(tree.root(tree.size)) == e.data["confirm_root"]:
            return "a confirm root whose units are not all listed", "%d units, all of them" % tree.size
        if e.data["first"] != tree.size:
            return "first %d" % tree.size, "first %d" % e.data["first"]
        names = ([] if last is None else [last]) + e.data["units"]
        ascending = all(a.encode("utf-8") < b.encode("utf-8") for a, b in zip(names, names[1:]))
        if not e.data["units"] or not ascending:
            return "units in ascending order, each once, at least one", "another order (E_DUP_UNIT)"
        before, strata = state.strata.get((e.experiment, e.data["confirm_root"])), e.data.get("strata")
        if tree.size and (before is None) != (strata is None):
            return "a stratum of every unit of a listing, or of none", "strata of some"
        if strata is not None and len(strata) != len(e.data["units"]):
            return "%d strata, one for each unit" % len(e.data["units"]), str(len(strata))
        if len(set(strata or ()) | set(before or ())) > STRATA_MAX:
            return "at most %d strata" % STRATA_MAX, "more"
    if e.kind not in ("order.listed", "order.drawn"):
        return None
    problem, bound, beacon, seed = order_ground(state, e)
    if problem:
        return problem
    tree, last = state.orders.get(bound.digest, (Tree(), None))
    if e.kind == "order.listed":
        if bound.digest in state.drawn:
            return "an order that is not drawn yet", "one drawn at seq %d (E_ORDER)" % state.drawn[bound.digest][0]
        if e.data["first"] != tree.size:
            return "first %d" % tree.size, "first %d" % e.data["first"]
        keys = [unit_order(seed, unit) for unit in ([] if last is None else [last]) + e.data["units"]]
        if not e.data["units"] or not all(a < b for a, b in zip(keys, keys[1:])):
            return "units in the order that seed %s gives" % seed, "another order (E_ORDER)"
        return listed_problem(state, e)
    data, units = bound.manifest["data"], e.data["n_units"]
    if (e.data["confirm_root"], units) != (data["confirm_root"], data["n_units"]):
        return "%d units under %s" % (data["n_units"], data["confirm_root"]), "others (E_DATA_ROOT)"
    if (e.data["beacon"], e.data["seed"]) != (beacon, seed):
        return "the checkpoint of size %d, seed %s" % (beacon["size"], seed), "another (E_ORDER)"
    known = state.units.get((e.experiment, data["confirm_root"]), (Tree(), None))[0]
    if known.size != units or b64(known.root(known.size)) != data["confirm_root"]:
        return "%d listed units under %s" % (units, data["confirm_root"]), "%d (E_DATA_ROOT)" % known.size
    predicted = bound.manifest["test"].get("control_variate")
    listed = state.strata.get((e.experiment, data["confirm_root"]), {})
    if predicted is not None and listed != {one["stratum"]: one["units"] for one in predicted}:
        return "units by stratum as test.control_variate has them", "others (E_DATA_ROOT)"
    if tree.size != units or b64(tree.root(tree.size)) != e.data["permutation_root"]:
        return "all %d units, under the root of those listed in order" % units, "%d (E_ORDER)" % tree.size


def listed_problem(state, e):
    """Units of an order are of its confirm set, and stood in no order before their manifest came into force."""
    record_ = state.of_digest(e.data["digest"])
    version = record_ and record_.version(e.data["digest"])
    if not version or "data" not in version.manifest:
        return None
    for unit in e.data["units"]:
        if (e.experiment, version.manifest["data"]["confirm_root"], unit) not in state.unit_names:
            return "a unit that an earlier units.listed of this confirm root named", unit
        if state.ordered.get(unit, version.since) < version.since:
            return ("units whose order was not drawn before the manifest came into force (E_ADAPTIVE_REUSE)",
                    "%s, in an order since seq %d" % (unit, state.ordered[unit]))


def arbiter_problem(record_, author):
    current = record_.in_force()
    if current is None:
        return "a version in force", "none"
    return signer_problem("arbiter", current.manifest, author)


def acting(state, e):
    """(problem, gate, its manifest) of an event on an opened gate; an estimate may follow the family's closing."""
    gate, record_ = state.gates_by_id.get(e.data["gate"]), state.manifests.get(e.data["gate"])
    if gate is None or record_ is None or gate.experiment != e.experiment:
        return ("an opened gate of this experiment", e.data["gate"]), None, None
    if record_.version(e.data["digest"]) is None:
        return ("the digest of a version of %s" % e.data["gate"], e.data["digest"]), None, None
    problem = arbiter_problem(record_, e.author)
    if problem:
        return problem, None, None
    if family_name(record_) in state.closed and e.kind != "gate.estimated":
        seq = state.closed[family_name(record_)][0]
        return ("a gate of a family that is not closed", "closed at seq %d (E_AFTER_TERMINAL)" % seq), None, None
    return None, gate, record_


def rule_gate(state, e):
    if e.kind == "gate.opened":
        return opening_problem(state, e)
    if e.kind == "gate.continued":
        return continuing_problem(state, e)
    return acting(state, e)[0] if e.kind in (
        "gate.observed", "gate.looked", "gate.decided", "gate.estimated") else None


def opening_problem(state, e):
    record_ = state.manifests.get(e.data["gate"])
    if not record_ or record_.experiment != e.experiment or record_.versions[0].manifest["template"] != "gate":
        return "a gate's manifest of this experiment", e.data["gate"]
    current = record_.in_force()
    if current is None:
        return "a manifest that its custodian has countersigned", "one that is not"
    if record_.version(e.data["digest"]) is None:
        return "the digest of a version of %s" % e.data["gate"], e.data["digest"]
    problem = arbiter_problem(record_, e.author)
    if problem:
        return problem
    if record_.first_look is not None:
        return "a gate that is opened before any unit is exposed", "a first look (E_EXPOSURE)"
    if record_.bound() is None or record_.bound().digest not in state.drawn:
        return "order.drawn before the gate is opened", "none (E_ORDER)"
    manifest = current.manifest
    if e.data["test"] != manifest.get("test"):
        return "the test as registered", "another"
    metric = manifest.get("metric")
    names = metric and [metric["metric"]] + [one["metric"] for one in metric.get("guardrails", [])]
    if metric and [source["metric"] for source in e.data["sources"]] != names:
        return "sources for %s" % ", ".join(names), "others (E_JUDGE_DIGEST)"
    if metric and not all(("judge" in source) != ("design" in source) for source in e.data["sources"]):
        return "a judge or a design for each metric", "both, or neither (E_JUDGE_DIGEST)"
    if metric and len({(s.get("judge"), s.get("design")) for s in e.data["sources"]}) < len(e.data["sources"]):
        return "a judge or a design of its own for each metric", "one for two (E_JUDGE_DIGEST)"
    if len(candidates(manifest)) != 1:
        return "one candidate", "%d (E_ARM_DIGEST)" % len(candidates(manifest))
    if manifest.get("estimand", {}).get("exclusions"):
        return "an estimand without exclusions", "exclusions (E_UNREGISTERED_RULE)"
    if manifest.get("data", {}).get("strata") and "control_variate" not in manifest["test"]:
        return "test.control_variate, which says what counts of strata", "data.strata alone (E_UNREGISTERED_RULE)"
    if manifest["test"]["without_replacement"] and "continuation_of" in manifest["test"]:
        return "a continuation about what its units were drawn from", "test.without_replacement (E_DATA_ROOT)"
    side = {"promote": "upper", "noninferior": "upper", "kill": "lower", "equivalent": "two_sided",
            "different": "two_sided"}.get(
        manifest["hypothesis"]["kind"])
    if side and manifest["test"]["side"] != side:
        return "test.side %s" % side, "%s (E_DIRECTION)" % manifest["test"]["side"]
    elsewhere = tested_elsewhere(state, e, record_)
    if elsewhere:
        return elsewhere
    bound = manifest.get("analysis", {}).get("plan_commitment")
    if bound and record_.plan is None:
        return "plan.sealed of analysis.plan_commitment %s" % bound, "none (E_UNREGISTERED_RULE)"
    return terms(manifest, e.data["test"], family_of(state, record_), {})[0]


def tested_elsewhere(state, e, record_):
    """One candidate's values are evidence in one family, wherever; before `one_family` in one experiment and order."""
    own, bound, wide = family_name(record_), record_.bound(), state.asks("one_family")
    for name, gate in state.gates_by_id.items():
        other = state.manifests.get(name)
        version = other and other.bound()
        drawn = version and state.drawn.get(version.digest)
        theirs, mine = gate.sources[:1], e.data["sources"][:1]
        if not drawn or not theirs or not mine or own is not None and own == family_name(other):
            continue
        values = gate.experiment == record_.experiment and shares_candidate(version.manifest, bound.manifest) and all(
            theirs[0].get(field) == mine[0].get(field) for field in ("judge", "design"))
        if values and (wide or bound.seq <= drawn[0]):
            return "the family of %s, in which it tests this candidate" % name, "%s (E_FAMILY_BUDGET)" % own
    # An order is known once its manifest is countersigned, whether it is opened or not.
    for name, other in state.manifests.items() if wide else ():
        version = other.bound()
        if name == e.data["gate"] or version is None or own is not None and own == family_name(other):
            continue
        if is_one_test(version.manifest, bound.manifest):
            return "the family of %s, in which it tests this candidate" % name, "%s (E_FAMILY_BUDGET)" % own


def is_one_test(one, other):
    """Whether two manifests ask the same of one candidate: by what it is, and by the metric, judge or confirm set."""
    digests = [{arm["artifact_digest"] for arm in candidates(of)} for of in (one, other)]
    metrics, data = [[of.get(section) for of in (one, other)] for section in ("metric", "data")]
    same = all(metrics) and any(metrics[0][field] == metrics[1][field] for field in ("metric", "judge_digest"))
    gates = one["template"] == other["template"] == "gate"
    return gates and bool(digests[0] & digests[1]) and (
        same or all(data) and data[0]["confirm_root"] == data[1]["confirm_root"])


def continuing_problem(state, e):
    gate, record_ = state.gates_by_id.get(e.data["gate"]), state.manifests.get(e.data["gate"])
    if gate is None or record_ is None or gate.experiment != e.experiment:
        return "an opened gate of this experiment", e.data["gate"]
    parent, origin_ = state.gates_by_id.get(e.data["parent"]), state.manifests.get(e.data["parent"])
    if parent is None or origin_ is None:
        return "a parent that was opened", e.data["parent"]
    if gate.n or gate.parent is not None:
        return "a gate without observations that continues no other yet", "one with %d" % gate.n
    current, other = record_.in_force(), origin_.in_force()
    if current is None or "test" not in current.manifest:
        return "a version in force", "none"
    named = current.manifest["test"].get("continuation_of")
    if named is None or origin_.version(named) is None:
        return "test.continuation_of a version of %s" % e.data["parent"], "%s (E_UNREGISTERED_RULE)" % named
    if parent.child:
        return "a parent that no other gate continues", "one that %s continues" % parent.child
    if not parent.decided or parent.decided[1]["outcome"] != "undecided_at_n_max":
        return "a parent that ended undecided_at_n_max", "another end, or none"
    if other is None:
        return "a version of the parent in force", "none"
    if not current.h0 == other.h0 == e.data["h0_digest"]:
        return "h0_digest %s of both" % other.h0, current.h0
    if current.manifest.get("arms") != other.manifest.get("arms"):
        return "the arms of the parent", "others (E_ARM_DIGEST)"
    if alpha_of(current.manifest) > alpha_of(other.manifest):
        return "test.alpha_micro of at most the parent's %d" % alpha_of(other.manifest), "more (E_ALPHA)"
    tests = [of.manifest["test"] for of in (current, other) if "test" in of.manifest]
    if len({test.get("delta_design_micro") for test in tests}) > 1 and "futile" in e.data["carried"]:
        return "test.delta_design_micro of the parent, whose wealth against it is carried", "another (E_MARGIN)"
    if record_.bound().seq < parent.opened:
        return ("a manifest registered after seq %d, where the parent was opened" % parent.opened,
                "seq %d (E_ADAPTIVE_REUSE)" % record_.bound().seq)
    if gate.sources != parent.sources:
        return "the sources of the parent", "others (E_JUDGE_DIGEST)"
    if e.data["carried"] != (parent.last["log_wealth"] if parent.last else {}):
        return "the wealth of the parent's last look", "another"
    return terms(current.manifest, gate.test, family_of(state, record_), e.data["carried"])[0]
