"""Which look at an order came before a comparison: from it on the order is exploratory (`schema/CLAIMS.md`)."""

from rules.obstacles import usual_terms
from rules.standing_plans import planned_order


def look_problem(state, e):
    """A comparison names the first look that saw its order otherwise."""
    wanted, said = said_look(state, e.experiment, e.data), e.data.get("exploratory_since")
    if said != wanted:
        return "exploratory_since, the first look at this order before: %s" % look_words(wanted), look_words(said)


def look_words(seq):
    return "none" if seq is None else "seq %d" % seq


def said_look(state, experiment, data):
    """The first earlier look. One whose like is on record since before looks were counted says what that did: nothing."""
    same = next((look for look in state.looks.contrasts if look.same(experiment, data)), None)
    if same and not same.counted:
        return None
    found, counts = [], lambda look: True
    plan = planned_order(state, experiment)
    if plan and follows(state, experiment, data, plan[1]):
        counts = counted_beside(state, experiment, plan)
    elif plan:
        found.append(plan[0])
    found += [differing(state, experiment, data, counts), differing_values(state, experiment, data, counts),
              elsewhere(state, experiment, data, counts)]
    return min((seq for seq in found if seq is not None and (same is None or seq < same.seq)), default=None)


def follows(state, experiment, data, said):
    """Whether a comparison is the one that a plan names, once there are as many labels as it asks for."""
    order, terms = said["order"], data["terms"]
    usual = terms["alpha_micro"] == 50_000 and not {"bootstrap", "environment"} & set(terms)
    named = terms["judge"] == order["judge"] and set(data["family"]) == set(order["policies"])
    how = data.get("correction", "benjamini_hochberg"), terms.get("weight", "one")
    return usual and named and usual_terms(state, experiment, terms) and \
        how == (said.get("correction", "benjamini_hochberg"), said.get("weight", "one")) and \
        due(state, experiment, order) is not None


def due(state, experiment, order):
    """A test of whether a look came when there were as many labels as an order asks for; None where there are not."""
    if not state.asks("own_labels"):
        enough = state.looks.labels.get(experiment, 0) >= order["labels"]
        return (lambda look: look.labels >= order["labels"]) if enough else None
    scored = state.scored_at.get(experiment, {}).get(order["judge"], {})
    rows = state.looks.own_labels(scored, experiment, order["policies"])
    if len(rows) < order["labels"]:
        return None
    since = rows[order["labels"] - 1] if order["labels"] else 0
    return lambda look: look.seq > since


def counted_beside(state, experiment, plan):
    """Which looks stand against a planned order: those before the plan, and those since it was due, but not by
    the same rows."""
    (since, said), now = plan, state.looks.labels.get(experiment, 0)
    newest = state.entries(experiment).newest_score(said["order"]["judge"])
    is_due = due(state, experiment, said["order"])

    def counts(look):
        other = look.labels != now or look.seq < newest
        late = look.experiment == experiment and is_due(look) and other
        return look.seq < since or late

    return counts


def differing(state, experiment, data, counts):
    """Differences of the experiment: by any judge, of a family that this one does not hold, or on other terms."""
    return next((look.seq for look in state.looks.contrasts if look.experiment == experiment and not look.within(data)
                 and (look.counted or look.judge == data["terms"]["judge"]) and counts(look)), None)


def differing_values(state, experiment, data, counts):
    """Values of two policies, of which one is none of the family, or was computed through something else; where that is asked, one
    value of the family through something else."""
    policies, other, enough = set(), False, state.asks("one_value")
    for look in state.looks.values:
        if look.experiment == experiment and counts(look):
            policies.add(look.policy)
            differs = not look.within(data)
            other = other or differs
            if other and len(policies) > 1 or enough and differs and look.policy in data["family"]:
                return look.seq
    return None


def elsewhere(state, experiment, data, counts):
    """Two of its policies, seen in another experiment that has rows of theirs; where that is asked, a value of one."""
    seen, shared, once = {}, {}, state.asks("order_once")
    enough = 1 if state.asks("value_elsewhere") else 2

    def stands(look):
        """Whether it counts, or could be claimed where it was made: who has several plans for the same rows chooses among them."""
        return counts(look) or once and (look.claimed or planned_order(state, look.experiment) is not None)

    def is_shared(other, policy):
        if (other, policy) not in shared:
            shared[other, policy] = policy in data["family"] and shares_rows(state, (experiment, other), policy)
        return shared[other, policy]

    others = [look for look in state.looks.contrasts if look.counted and look.experiment != experiment and stands(look)]
    found = [look.seq for look in others if sum(is_shared(look.experiment, policy) for policy in look.family) > 1][:1]
    for look in state.looks.values:
        if look.experiment != experiment and stands(look) and is_shared(look.experiment, look.policy):
            policies = seen.setdefault(look.experiment, set())
            policies.add(look.policy)
            if len(policies) >= enough:
                found.append(look.seq)
                break
    return min(found, default=None)


def shares_rows(state, experiments, policy):
    """Whether two experiments have rows of a policy with the same item, among the first of each judge."""
    here, there = ({item for (name, _), items in state.entries(experiment).items.items() if name == policy for item in items}
                   for experiment in experiments)
    return bool(here & there)
