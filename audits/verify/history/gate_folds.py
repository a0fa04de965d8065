"""Folds of families, manifests, units, gates and promotions into the state."""

from formats.limits import SAFE_INTEGER
from formats.tree import Tree, sha256
from formats.fields import micros
from events.shapes import HOLDS, JUDGE_PATH
from events.commitments import labelled, length_prefixed
from history.records import Family, Gate, Record, Version, alpha_of


def family_opened(state, _entry, data):
    state.families.setdefault(data["family"], Family(data))


def family_closed(state, entry, data):
    state.closed.setdefault(data["family"], (entry.position, data["rejected"]))


def family_membership(state, manifest):
    of = manifest.get("multiplicity")
    if of and of["family"] in state.families:
        joined = state.families[of["family"]].joined          # in order of registration; the largest alpha counts
        alpha = alpha_of(manifest)
        joined[manifest["manifest"]] = max(alpha, joined.get(manifest["manifest"], alpha))


def manifest_registered(state, entry, data):
    manifest = data["manifest"]
    if manifest["manifest"] in state.manifests:
        return
    old = state.of_digest(manifest.get("supersedes"))
    if old:
        old.superseded_by = old.superseded_by or manifest["manifest"]
    record_ = Record(entry.experiment, Version(entry, data, None))
    if "transport" in manifest:
        open_ones = [seq for (of, _), seq in state.probes.items() if of == manifest["experiment"] and seq is not None]
        record_.first_probe = min(open_ones, default=None)
    state.manifests[manifest["manifest"]] = record_
    family_membership(state, manifest)


def manifest_amended(state, entry, data):
    record_ = state.manifests.get(data["manifest"]["manifest"])
    if record_:
        record_.versions.append(Version(entry, data, data["class"]))
        family_membership(state, data["manifest"])


def manifest_countersigned(state, _entry, data):
    record_ = state.of_digest(data["digest"])
    version = record_ and record_.version(data["digest"])
    if version and not version.countersigned:
        version.countersigned, version.since = True, _entry.position
        version.countersigned_by = _entry.author


def manifest_deviated(state, _entry, data):
    record_ = state.of_digest(data["digest"])
    if record_:
        record_.deviations.append((data["outcome_seen"], _entry.position))
        if data["rule_path"] == JUDGE_PATH:
            record_.handled.append((_entry.position, data["known_at_seq"] - 1))


def plan_sealed(state, _entry, data):
    record_ = state.manifests.get(data["manifest"])
    if record_ and record_.plan is None:
        record_.plan, record_.reveal_by = data["commitment"], micros(data["reveal_by"])


def plan_revealed(state, entry, data):
    record_ = state.manifests.get(data["manifest"])
    if record_ and record_.plan is not None and record_.revealed_at is None:
        record_.revealed_at = entry.recorded_at


def exposure_opened(state, entry, data):
    state.exposed.setdefault(data["confirm_root"], entry.position)
    record_ = state.of_digest(data["digest"])
    if record_:
        record_.exposures += 1
        record_.units = max(record_.units, min(data["last_unit"] + 1, SAFE_INTEGER))
        record_.exposed.append((record_.units, entry.position))
        record_.through = data.get("through")
        record_.look(entry.position)


def units_listed(state, entry, data):
    if entry.experiment is None:
        return
    key, strata = (entry.experiment, data["confirm_root"]), data.get("strata")
    listed = state.units.setdefault(key, [Tree(), None])
    counts = None if strata is None else state.strata.setdefault(key, {})
    for unit, stratum in zip(data["units"], (strata or []) + [None] * len(data["units"])):
        leaf = length_prefixed(unit)
        if stratum is not None:
            leaf += length_prefixed(stratum)
            counts[stratum] = counts.get(stratum, 0) + 1
            state.stratum_of[key + (unit,)] = stratum
        listed[0].append(sha256(b"\0", leaf))
        listed[1] = unit
        state.unit_names.add(key + (unit,))


def order_listed(state, entry, data):
    listed = state.orders.setdefault(data["digest"], [Tree(), None])
    for place, unit in enumerate(data["units"], data["first"]):
        listed[0].append(sha256(b"\0", length_prefixed(unit)))
        listed[1] = unit
        state.placed_units.add((data["digest"], place, unit))
        state.ordered.setdefault(unit, entry.position)


def order_drawn(state, entry, data):
    state.drawn.setdefault(data["digest"], (entry.position, data))


def gate_opened(state, entry, data):
    state.gates_by_id.setdefault(data["gate"], Gate(entry, data))


def gate_observed(state, _entry, data):
    gate = state.gates_by_id.get(data["gate"])
    if gate:
        deltas = [reading["delta_micro"] for reading in data["readings"]]
        gate.n += 1
        gate.state = labelled(b"clover/gate-state/v1", [gate.state, data["t"], data["unit"], deltas])
        for stream, delta in zip(gate.streams, deltas):
            stream.append(delta)
        for reading in data["readings"][:1]:
            gate.absent.append(len(reading.get("baseline_missing", [])) + len(reading.get("candidate_missing", [])))
        gate.strata.append(data.get("stratum"))


def gate_looked(state, entry, data):
    gate = state.gates_by_id.get(data["gate"])
    if gate:
        gate.last = data
        if gate.first_look is None:
            gate.first_look = entry.position


def gate_decided(state, entry, data):
    gate = state.gates_by_id.get(data["gate"])
    if gate and gate.decided is None:
        gate.decided = (entry.position, data)
    if data["outcome"] in HOLDS:
        names = sorted(state.families)
        family = next((state.families[name] for name in names if data["gate"] in state.families[name].joined), None)
        if family and data["gate"] not in family.held:
            family.held.append(data["gate"])


def gate_continued(state, _entry, data):
    gate, parent = state.gates_by_id.get(data["gate"]), state.gates_by_id.get(data["parent"])
    if parent:
        parent.child = parent.child or data["gate"]
    if gate:
        gate.carried, gate.parent = data["carried"], data["parent"]


def promotion_issued(state, entry, _data):
    state.promotions.setdefault(entry.id.hex(), False)


def promotion_revoked(state, _entry, data):
    if data["promotion"] in state.promotions:
        state.promotions[data["promotion"]] = True
