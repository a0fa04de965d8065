"""Which plan stands, since when, and what it says of estimates (`schema/ESTIMATES.md`)."""


def replaced_seq(state, record_):
    """The entry from which another manifest has the place of this one; from rulebook 23 on it is in force itself."""
    by = state.manifests.get(record_.superseded_by)
    if not by or not by.versions:
        return None
    if not state.asks("plan_in_force"):
        return by.versions[0].seq
    return min((seq for seq in map(stands_since, by.versions) if seq is not None), default=None)


def stands_since(version):
    """The entry since which a version stands; None while it waits for its custodian."""
    if version.needs:
        return version.since if version.countersigned else None
    return version.seq


def planned_estimate(state, experiment, field):
    """What the plan in force first says of estimates, or None."""
    found = planned_versions(state, experiment, lambda estimates: estimates.get(field))
    return min(found)[1] if found else None


def planned_order(state, experiment):
    """(since, section) of the plan in force first that names an order, before the first score or label; or None."""
    found = planned_versions(state, experiment, lambda estimates: estimates if "order" in estimates else None)
    first = min(found, key=lambda pair: pair[0], default=None)
    outcome = state.first_outcome.get(experiment)
    return first if first and (outcome is None or first[0] < outcome) else None


def planned_versions(state, experiment, said):
    """(since, what it says) of each plan: as it stood at the first outcome, else the first version that came later."""
    outcome, found = state.first_outcome.get(experiment), []
    for record_ in state.manifests.values():
        by = replaced_seq(state, record_)
        early = by is not None and (outcome is None or by < outcome)
        if record_.experiment != experiment or early:
            continue
        standing = [(stands_since(of), said(of.manifest.get("estimates", {}))) for of in record_.versions]
        standing = [pair for pair in standing if pair[0] is not None]
        before = [pair for pair in standing if outcome is None or pair[0] < outcome][-1:]
        later = sorted((pair for pair in standing if pair not in before and pair[1] is not None
                        and outcome is not None and pair[0] >= outcome), key=lambda pair: pair[0])
        found += ([pair for pair in before if pair[1] is not None] or later)[:1]
    return found
