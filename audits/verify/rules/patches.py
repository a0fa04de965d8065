"""The grammar of patches, their effect on a rubric, and the rule of a proposed one (`schema/RUBRIC.md`)."""

import re
from decimal import Decimal

from formats.limits import ONE, Refused, show
from formats.plain_yaml import Unsure, read_yaml
from events.commitments import labelled
from rules.manifests import FAMILIES, each_once
from rules.rubrics import (
    SEGMENT, code_length, decimal_text, exact_mapping, families_of, is_prose, leaf_kind, leaf_value,
    micro_of, rubric_hash, rubric_problem)

ATTACKS = ("authority_tone", "contradiction_inject", "fabricated_tool_trace", "fact_flip", "fake_citation",
           "length_padding", "padding", "rubric_mimicry", "style_strip")
SCHEMA_CODES = ("parse keys path type range conflict append noop cross_family frozen size affects_rescore rubric "
                "duplicate_id duplicate_diff").split()
BOUND = re.compile(r"<=? ?(-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?)", re.ASCII)


def patch_document(document):
    """Fields of a patch by its grammar, its edits as (op, path, value as written)."""
    body = exact_mapping(document, "patch")["patch"]
    body = exact_mapping(body, "family id rationale changes constraints", "expected_effects")
    limits = exact_mapping(body["constraints"], "max_tokens_added affects_rescore")
    most, changes_ = limits["max_tokens_added"], body["changes"]
    checks = (
        (body["family"] in FAMILIES, "a family"),
        (isinstance(body["id"], str) and re.fullmatch("[a-z0-9][a-z0-9-]{2,63}", body["id"], re.ASCII), "an id"),
        (is_prose(body["rationale"], 400) and not re.search("[\"`\xab\xbb\u201c-\u201f]", body["rationale"])
         and not any(len(run) >= 8 and re.search("[0-9]", run)
                     for run in re.findall("[0-9a-fA-F]+", body["rationale"])), "a rationale"),
        (isinstance(changes_, dict) and 1 <= len(changes_) <= 8, "1 to 8 changes"),
        (isinstance(most, int) and not isinstance(most, bool) and 1 <= most <= 150, "max_tokens_added 1 to 150"),
        (isinstance(limits["affects_rescore"], bool), "affects_rescore true or false"))
    for good, expected in checks:
        if not good:
            raise Refused(expected, "another")
    edits = []
    for path, value in changes_.items():
        if not all(SEGMENT.fullmatch(part) for part in path.split(".")) or value == {}:
            raise Refused("a dotted path with a value", path)
        for key, item in value.items() if isinstance(value, dict) else ((None, value),):
            name = path if key is None else path + "." + key.removesuffix("+")
            if isinstance(item, dict) or key is not None and not SEGMENT.fullmatch(key.removesuffix("+")):
                raise Refused("a leaf key with a value or a list", show(key or path))
            edits.append(("append" if key is not None and key.endswith("+") else "set", name, item))
    effects(exact_mapping(body.get("expected_effects", {}), "", "slices anti_gaming"))
    return body["family"], body["id"], most, limits["affects_rescore"], edits


def effects(promised):
    slices, attacks = promised.get("slices", []), promised.get("anti_gaming", {})
    if not isinstance(slices, list) or len(slices) > 12 or not isinstance(attacks, dict):
        raise Refused("slices and anti_gaming", "others")
    for cell in slices:
        dimensions = {key: value for key, value in cell.items() if key != "residual_mean_delta"} if isinstance(
            cell, dict) else {}
        if not dimensions or "residual_mean_delta" not in cell or abs(micro_of(cell["residual_mean_delta"])) > ONE:
            raise Refused("dimensions with residual_mean_delta", show(cell))
        if not all(SEGMENT.fullmatch(key) and is_prose(value, 64) for key, value in dimensions.items()):
            raise Refused("dimensions with short texts", show(cell))
    for name, bound in attacks.items():
        match = isinstance(bound, str) and BOUND.fullmatch(bound)
        good = match and name.endswith("_uplift") and name[:-7] in ATTACKS
        millionths = Decimal(match[1]).scaleb(6) if good else None
        if not good or millionths != millionths.to_integral_value() or abs(millionths) > ONE:
            raise Refused("NAME_uplift with a bound such as <= 0.02", show(bound))


def diff_of_edits(before, edits):
    """(diff, leaves after) of edits as they are written."""
    after, diff = dict(before), []
    for _, path, _ in edits:
        if leaf_kind(path) is None:
            raise Refused("a path of rubrics", path)
    if not each_once([path for _, path, _ in edits]):
        raise Refused("each leaf once", "one twice")
    for op, path, item in edits:
        value, old = leaf_value(path, item), after.get(path)
        if op == "append":
            if "list" not in value:
                raise Refused("a list to append to", path)
            had = (old or {"list": []})["list"]
            new = [element for element in value["list"] if element not in had]
            if not new:
                continue
            value = {"list": new}
            after[path] = {"list": sorted(had + new, key=lambda v: v.encode("utf-8"))}
        elif old == value:
            continue
        else:
            after[path] = value
        diff.append({"op": op, "path": path, "value": value})
    return sorted(diff, key=lambda change: (change["path"], change["op"])), after


def leaves_of_diff(before, diff):
    """The leaves that a diff leads to; a diff that changes nothing, or not by what it says, is none."""
    after = dict(before)
    for change in diff:
        path, value = change["path"], change["value"]
        if change["op"] == "append":
            had = (after.get(path) or {"list": []}).get("list")
            if had is None or "list" not in value or not value["list"] or set(had) & set(value["list"]):
                raise Refused("new elements of a list", path)
            after[path] = {"list": sorted(had + value["list"], key=lambda v: v.encode("utf-8"))}
        elif after.get(path) == value:
            raise Refused("a change", path)
        else:
            after[path] = value
    return after


def needs_answers(before, diff, topics):
    """Whether the judge is told something else, so that raw answers are needed anew."""
    for change in diff:
        if change["path"] in ("obligations.factual_adequacy.required", "abstention.rule"):
            return True
        if change["path"] == "abstention.triggers":
            new, old = set(change["value"]["list"]), set(before.get(change["path"], {"list": []})["list"])
            if not (new if change["op"] == "append" else new ^ old) <= set(topics):
                return True
    return False


def rule_patch(state, e):
    if e.kind == "patch.rejected":
        schema = e.data["stage"] == "schema"
        if schema == ("patch" in e.data):
            return "a candidate at every stage but schema", e.data["stage"]
        known = not schema or e.data["code"] in SCHEMA_CODES
        return None if known else ("the code of a check of patches", e.data["code"])
    if e.kind != "patch.proposed":
        return None
    needed = {"model", "prompt_digest"} if e.data["author_kind"] == "llm" else set()
    if {"model", "prompt_digest"} & e.data.keys() != needed:
        return "model and prompt_digest for author_kind llm, and only there", e.data["author_kind"]
    if e.data["patch"] in state.patch_ids:
        return "a patch id that was never used", e.data["patch"]
    it = state.iterations.get(e.data["iteration"])
    plan, rubric = it and state.plan_of(it), it and state.rubrics.get(e.experiment, {}).get(it.rubric_hash)
    if it is None or it.experiment != e.experiment:
        return None
    if not rubric or not plan or "design" not in plan or rubric_problem(rubric[1]):
        return "the rubric and the plan of the iteration", "none"
    try:
        return patch_problem(e, rubric[1], plan, {hash_ for hash_, _ in it.candidates.values()}, state)
    except Refused as refused:
        return refused.expected, refused.found


def patch_problem(e, before, plan, seen, state):
    """Checks 3 to 12 over the diff, and checks 1 to 6 over the document where it can be read here."""
    data = e.data
    diff, family, most, affects = data["diff"], data["family"], 150, None
    try:
        name, id_, most, affects, edits = patch_document(read_yaml(data["yaml"]))
        found, _ = diff_of_edits(before, edits)
        if (name, id_, found) != (family, data["patch"], diff):
            return "family, id and diff as the document says", "others"
    except Unsure:
        state.unread.append(e.position)
    if not diff or [(c["path"], c["op"]) for c in diff] != sorted({(c["path"], c["op"]) for c in diff}):
        return "changes by path, at least one", "%d changes" % len(diff)
    after = leaves_of_diff(before, diff)
    for change in diff:
        leaf_holds(change["path"], change["value"])
    frozen = plan["design"].get("frozen_paths", ())
    if family not in plan["patch_families"]:
        return "a registered family", family
    for change in diff:
        path = change["path"]
        if families_of(path) and family not in families_of(path):
            return "a leaf of %s" % family, path
        if not families_of(path) or any(path == top or path.startswith(top + ".") for top in frozen):
            return "a leaf that patches may touch", path
    length = code_length(before, after)
    if length["tokens_added"] > most or length["kappa"] > 150 or length["new_fields"] > 2:
        return "at most 150 tokens, a code length of 150 and 2 new fields", show(length)
    if affects is False and needs_answers(before, diff, plan["design"]["topics"]):
        return "affects_rescore true", "false"
    problem = rubric_problem(after)
    if problem:
        return problem
    if labelled(b"clover/patch/v1", diff) != data["patch_hash"]:
        return "patch_hash %s" % labelled(b"clover/patch/v1", diff), data["patch_hash"]
    if data["patch_hash"] in seen:
        return "an edit that this iteration has not seen", data["patch_hash"]
    if length != data["length"]:
        return "length %s" % show(length), show(data["length"])
    if rubric_hash(after) != data["result_hash"]:
        return "result_hash %s" % rubric_hash(after), data["result_hash"]


def leaf_holds(path, value):
    """Refuses a value that events could not hold at a path."""
    written = {"share_micro": lambda v: float(decimal_text(v))}
    for tag, item in value.items():
        if leaf_kind(path) is None or leaf_value(path, written.get(tag, lambda v: v)(item)) != value:
            raise Refused("another value at %s" % path, show(value))
