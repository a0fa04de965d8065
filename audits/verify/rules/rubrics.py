"""The grammar of rubrics, their hash and code length, and the rule of a registered one (`schema/RUBRIC.md`)."""

import re
from collections import Counter
from decimal import Decimal

from formats.limits import MICRO_MAX, ONE, Refused, SAFE_INTEGER, show
from formats.plain_yaml import UNPRINTABLE, Unsure, read_yaml
from events.commitments import labelled
from rules.manifests import each_once

FEATURES = ("concise", "confident", "contradiction", "counter_position", "critical_info_missing", "factual_error",
            "needs_evidence", "risk_terms", "stakeholders")
HOSTS_PATH = "obligations.factual_adequacy.verification.allowed_domains"
PENALTY_PATH = "obligations.factual_adequacy.verification.mismatch_penalty"
CAP_PATHS = ("guards.length_bias_cap.if_tokens_gt", "guards.length_bias_cap.max_raw_score")
FIXED_PATHS = {"version": "version", "target": "target", "sdp_version": "name", CAP_PATHS[0]: "count",
               CAP_PATHS[1]: "share", "guards.confident_but_wrong_max": "share", PENALTY_PATH: "share",
               "guards.tool_trace_consistency": "flag", "abstention.triggers": "tags", "abstention.rule": "prose",
               HOSTS_PATH: "hosts", "obligations.usefulness.be_concise_by_default": "flag"}
SEGMENT = re.compile("[a-z][a-z0-9_]{0,63}", re.ASCII)
VERSION = re.compile(r"(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})", re.ASCII)
HOST_LABEL = re.compile("[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)
TOKEN = re.compile(r"[A-Za-z]+|[0-9]+|[^A-Za-z0-9\s]")


def leaf_kind(path):
    """What a path of a rubric holds, or None."""
    if path in FIXED_PATHS:
        return FIXED_PATHS[path]
    parts = path.split(".")
    if len(parts) != 3 or parts[0] != "obligations" or not SEGMENT.fullmatch(parts[1]):
        return None
    if parts[2] in ("required", "penalty"):
        return "flag" if parts[2] == "required" else "share"
    return "flag" if parts[2].startswith("requires_") and parts[2][9:] in FEATURES else None


def is_branch(path):
    return (path in ("", "obligations", "guards", "abstention", "guards.length_bias_cap",
                     "obligations.factual_adequacy.verification")
            or path.startswith("obligations.") and SEGMENT.fullmatch(path[12:]) is not None)


def families_of(path):
    """Families whose patches may touch a path."""
    if leaf_kind(path) is None or "." not in path:
        return ()
    top = path.split(".")[1]
    if path.startswith("obligations."):
        return {"factual_adequacy": ("evidence_verification",), "reasoning_quality": ("contradiction_check",),
                "risk_accounting": ("contradiction_check",), "usefulness": ("length_bias_cap",)}.get(
                    top, ("contradiction_check", "evidence_verification"))
    return {"abstention.triggers": ("abstention",), "abstention.rule": ("abstention",),
            "guards.tool_trace_consistency": ("evidence_verification",),
            "guards.confident_but_wrong_max": ("contradiction_check",)}.get(path, ("length_bias_cap",))


def is_prose(value, most):
    return isinstance(value, str) and value.strip() != "" and len(value) <= most and not UNPRINTABLE.search(value)


def is_tag(value):
    return is_prose(value, 64) and value.strip() == value


def is_host(value):
    return (isinstance(value, str) and len(value) <= 253 and "." in value
            and all(HOST_LABEL.fullmatch(label) for label in value.split(".")))


def micro_of(value):
    """Exact millionths of a number; a double is read as the shortest decimal that gives it."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise Refused("a number", show(value))
    millionths = Decimal(repr(value)).scaleb(6)
    if millionths != millionths.to_integral_value() or abs(millionths) > MICRO_MAX:
        raise Refused("a number with at most six decimals", show(value))
    return int(millionths)


def leaf_value(path, value):
    """The value at a path as events hold it."""
    kind = leaf_kind(path)
    if kind == "count" and isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= SAFE_INTEGER:
        return {"count": value}
    if kind == "flag" and isinstance(value, bool):
        return {"flag": value}
    if kind == "share" and 0 <= micro_of(value) <= ONE:
        return {"share_micro": micro_of(value)}
    if kind in ("hosts", "tags") and isinstance(value, list):
        if all(is_host(v) if kind == "hosts" else is_tag(v) for v in value) and each_once(value) and len(value) <= 50:
            return {"list": sorted(value, key=lambda v: v.encode("utf-8"))}
    if isinstance(value, str) and {"target": value in ("Y", "Y_star"), "version": VERSION.fullmatch(value),
                                   "name": is_tag(value), "prose": is_prose(value, 200)}.get(kind):
        return {"text": value}
    raise Refused("another value at %s" % path, show(value))


def rubric_leaves(node, path, out):
    """Leaves of a rubric's document, by path."""
    if leaf_kind(path) is not None:
        out[path] = leaf_value(path, node)
        return out
    if not is_branch(path) or not isinstance(node, dict):
        raise Refused("a key of rubrics", path)
    for key, value in node.items():
        if not SEGMENT.fullmatch(key):
            raise Refused("a key of a-z, 0-9 and _", key)
        rubric_leaves(value, path + "." + key if path else key, out)
    return out


def rubric_problem(leaves_):
    """Why leaves do not make a rubric."""
    for path in ("version", "target", "sdp_version"):
        if path not in leaves_:
            return path, "none"
    for path, other in ((PENALTY_PATH, HOSTS_PATH), CAP_PATHS, CAP_PATHS[::-1]):
        if path in leaves_ and other not in leaves_:
            return "%s beside %s" % (other, path), "none"
    if len(leaves_) > 100 or any(len(value.get("list", ())) > 50 for value in leaves_.values()):
        return "at most 100 leaves, and 50 elements of a list", "more"


def by_path(leaves_):
    """Leaves as a list in order of their paths."""
    return [{"path": path, "value": leaves_[path]} for path in sorted(leaves_)]


def rubric_hash(leaves_):
    """What a rubric is known by: its leaves, not its text."""
    return labelled(b"clover/rubric/v1", by_path(leaves_))


def tokens_of(value):
    """How often each token stands in a value."""
    texts = value["list"] if "list" in value else [value["text"]] if "text" in value else [
        str(value["count"]) if "count" in value else str(value["flag"]).lower() if "flag" in value
        else decimal_text(value["share_micro"])]
    return Counter(token for item in texts for token in TOKEN.findall(item))


def decimal_text(millionths):
    sign, size = "-" if millionths < 0 else "", abs(millionths)
    return ("%s%d.%06d" % (sign, size // ONE, size % ONE)).rstrip("0").rstrip(".")


def code_length(before, after):
    """The exact code length of going from one set of leaves to another."""
    out = dict.fromkeys(("abstention_edits", "new_fields", "new_guards", "tokens_added", "tokens_removed"), 0)
    for path in after:
        old, new = before.get(path), after[path]
        if old == new:
            continue
        was, now = tokens_of(old) if old else Counter(), tokens_of(new)
        out["tokens_added"] += sum((now - was).values())
        out["tokens_removed"] += sum((was - now).values())
        out["new_fields"] += old is None
        out["new_guards"] += old is None and path.startswith("guards.")
        if path.startswith("abstention."):
            lists = "list" in new
            out["abstention_edits"] += len(set(new["list"]) ^ set((old or {}).get("list", ()))) if lists else 1
    keys = [{path[:at] for path in of for at in range(len(path) + 1) if at == len(path) or path[at] == "."}
            for of in (before, after)]
    out["tokens_added"] += sum(len(TOKEN.findall(key.rsplit(".", 1)[-1])) for key in keys[1] - keys[0])
    out["kappa"] = sum(out[name] for name in ("abstention_edits", "new_guards", "tokens_added", "tokens_removed"))
    return out


def exact_mapping(value, required, optional=""):
    """Refuses anything but a mapping with these keys."""
    required, optional = set(required.split()), set(optional.split())
    if not isinstance(value, dict) or not required <= value.keys() <= required | optional:
        raise Refused("the keys " + ", ".join(sorted(required)), show(value))
    return value


def rule_rubric(state, e):
    if e.kind != "rubric.registered":
        return None
    said = {leaf["path"]: leaf["value"] for leaf in e.data["leaves"]}
    try:
        found = rubric_leaves(exact_mapping(read_yaml(e.data["yaml"]), "rubric")["rubric"], "", {})
        if found != said:
            return "the leaves of the document", "others"
    except Unsure:
        state.unread.append(e.position)
    except Refused as refused:
        return refused.expected, refused.found
    if by_path(said) != e.data["leaves"] or rubric_hash(said) != e.data["rubric_hash"]:
        return "rubric_hash %s, leaves by path" % rubric_hash(said), e.data["rubric_hash"]
    if said.get("version") != {"text": e.data["version"]}:
        return "version as in the document", e.data["version"]
    problem = rubric_problem(said)
    if problem:
        return problem
    for name in sorted(state.iterations):
        if state.iterations[name].experiment == e.experiment:
            return "a rubric before the first iteration", "%s is there" % name
    known = list(state.rubrics.get(e.experiment, {}).values())
    if known and version_of(e.data["version"]) <= version_of(known[-1][0]):
        return "a version above %s" % known[-1][0], e.data["version"]


def version_of(text_):
    match = VERSION.fullmatch(text_)
    return (int(match[1]), int(match[2])) if match else (-1, -1)
