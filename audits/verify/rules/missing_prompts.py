"""Which prompts the two sides of a comparison have scores of (`schema/ESTIMATES.md`)."""


def prompts_of(state, e, policy):
    """Items of a policy with a score; None where they have not all the same draws, so that nobody counts them."""
    draws = list(state.prompts.get(e.experiment, {}).get(e.data["terms"]["judge"], {}).get(policy, {}).values())
    return None if any(items != draws[0] for items in draws) else (draws or [set()])[0]


def missing_problem(state, e):
    """A comparison says which prompts its sides have, and tells apart only what the worst scores there could not undo."""
    data, said = e.data, e.data.get("prompts")
    if said is None:
        return "prompts: which of them both policies have scores of", "none"
    both, alone = said["both"], said["first_only"] + said["second_only"]
    basis = None if not both else "prompt_cluster_partial_overlap" if alone else "prompt_cluster_paired"
    named = data["basis"] if data["basis"] in ("prompt_cluster_paired", "prompt_cluster_partial_overlap") else None
    if basis != named:
        return "basis %s" % (basis or "of no prompt in common"), data["basis"]
    problem = None if "environment" in data["terms"] else counted_problem(state, e)
    if problem:
        return problem
    scale = data["terms"].get("label_scale")
    if scale and both:
        span = scale["high_micro"] / 1e6 - scale["low_micro"] / 1e6
        least = span * alone / (both + alone)
        if said["worst"] < least - 1e-9:
            return "worst %s: %d of %d prompts lack a score" % (least, alone, both + alone), str(said["worst"])
    if data["told_apart"] and not both and state.asks("common_prompts"):
        return ("nothing told apart: %(first)s and %(second)s have scores of no prompt in common" % data), "told apart"
    if data["told_apart"] and said["uneven"]:
        return ("nothing told apart: on %d prompts one policy has more draws, against the other, than on the rest"
                % said["uneven"]), "told apart"
    ends = data.get("conservative") or data["interval"]
    low, high = ends["low"] - said["worst"], ends["high"] + said["worst"]
    if data["told_apart"] and low <= 0 <= high:
        return "nothing told apart: with the worst missing scores it lies in [%s, %s]" % (low, high), "told apart"


def counted_problem(state, e):
    """As many prompts of each side as have a score, and the same ones where none is said to lack."""
    said, sides = e.data["prompts"], []
    for which in ("first", "second"):
        # Of a policy with rows that do not count its prompts are computed again.
        items = None if e.data.get(which + "_late") else prompts_of(state, e, e.data[which])
        stated = said["both"] + said[which + "_only"]
        if items is not None and len(items) != stated:
            return "%d prompts of %s, which have scores" % (len(items), e.data[which]), str(stated)
        sides.append(items)
    same = said["first_only"] + said["second_only"] == 0
    if all(sides) and (sides[0] == sides[1]) != same:
        return "prompts that lack, where the two policies have scores of other ones", "none that lacks"
