"""Workflows of a repair: JSON patches, how much an edit touches, and the form of a workflow (`schema/WORKFLOW.md`)."""

import re

from formats.canonical import encode, parse_canonical
from formats.limits import Refused
from formats.tree import sha256

NAME = re.compile(r"[a-z][a-z0-9_]{0,31}\Z")
STEPS_MAX = 24
SPLIT_RENAMED = 3                     # a split renames the step, what it writes and what is told to write
MEMBERS = {
    "llm": {"prompt", "out", "reads", "writes", "model", "temperature", "max_tokens", "seed"},
    "check": {"expr", "hard", "flag"}, "guard": {"target", "when", "max_tries", "note"},
    "map": {"fn", "args", "writes"}, "return": {"path", "when"}}


OPERATORS = ("edit_prompt", "insert_check", "insert_retry_guard", "split_step", "rewire_io", "delete_step",
             "replace_model")


def is_count(value, least, most):
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def are_rules(rules):
    """Whether a value is a list of rules as far as they are named and weighed, each id once."""
    if not isinstance(rules, list) or len(rules) > 32:
        return False
    for rule in rules:
        if not isinstance(rule, dict) or set(rule) - {"id", "text", "hard", "weight", "check"}:
            return False
        weight = rule.get("weight", 1)
        good = isinstance(rule.get("id"), str) and isinstance(rule.get("text"), str) and "check" in rule
        if not good or not isinstance(rule.get("hard", True), bool) or isinstance(weight, bool):
            return False
        if not isinstance(weight, (int, float)) or not 1e-6 <= weight <= 1000:
            return False
    return len({rule["id"] for rule in rules}) == len(rules)


def context_problem(value):
    good = isinstance(value, dict) and value.get("task_set") == "wf-tasks/1" and isinstance(value.get("family"), str)
    if not good or set(value) - {"task_set", "family", "rules", "weights"} or not are_rules(value.get("rules")):
        return "the first line of a task set"
    return None


def verifier_problem(value):
    names = {"verifier", "cost_reference", "critic_weight", "filter", "held_share", "rules"}
    if not isinstance(value, dict) or set(value) != names or value["verifier"] != "wf-verifier/1":
        return "a verifier"
    good = is_count(value["cost_reference"], 1, 10 ** 9) and is_count(value["critic_weight"], 0, 10 ** 6) \
        and is_count(value["held_share"], 0, 10 ** 6) and value["filter"] in ("crashes", "crashes_and_hard")
    return None if good and are_rules(value["rules"]) else "a verifier"


def meta_problem(value):
    if not isinstance(value, dict) or set(value) != {"meta", "operators", "rules"} or value["meta"] != "wf-meta/1":
        return "a meta prompt"
    operators, rules = value["operators"], value["rules"]
    good = isinstance(operators, list) and isinstance(rules, list) and all(isinstance(of, str) for of in rules) \
        and all(isinstance(of, str) and of in OPERATORS for of in operators) and len(set(operators)) == len(operators)
    return None if good else "a meta prompt"


FORMS = {"context": context_problem, "meta": meta_problem, "verifier": verifier_problem}


class NoPatch(Exception):
    """A patch that does not apply."""


def labelled(label, text):
    """SHA-256 of a label, a zero byte and a text, as hex."""
    return sha256(label.encode() + b"\0" + text.encode("utf-8")).hex()


def read(text):
    """The value of a document; None where its text is not canonical JSON."""
    try:
        return parse_canonical(text.encode("utf-8"))
    except Refused:
        return None


def form_problem(document):
    """Why a value is no workflow; None where its steps have the form of one."""
    if not isinstance(document, dict) or document.get("ir") != "wf/1":
        return "the language wf/1"
    steps, seen = document.get("steps"), {}
    if set(document) - {"ir", "inputs", "defaults", "steps", "return"} or not isinstance(steps, list):
        return "members of a workflow"
    if not 1 <= len(steps) <= STEPS_MAX:
        return "1 to 24 steps"
    for step in steps:
        kind, name = (step.get("kind"), step.get("id")) if isinstance(step, dict) else (None, None)
        if not isinstance(kind, str) or kind not in MEMBERS or set(step) - MEMBERS[kind] - {"id", "kind"}:
            return "members of a step"
        if not isinstance(name, str) or not NAME.match(name) or name in seen:
            return "each step id once"
        target = step.get("target")
        if kind == "guard" and (not isinstance(target, str) or seen.get(target) != "llm"):
            return "a guard of an earlier llm step"
        seen[name] = kind
    return None


FORMS["program"] = FORMS["library"] = form_problem


def segments(pointer):
    if pointer == "":
        return []
    if not pointer.startswith("/"):
        raise NoPatch
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer[1:].split("/")]


def place(container, name, extra=0):
    """The index of a list, or the name of an object's member."""
    if isinstance(container, dict):
        return name
    if isinstance(container, list):
        if name == "-" and extra:
            return len(container)
        if name.isdigit() and (name == "0" or name[0] != "0") and int(name) < len(container) + extra:
            return int(name)
    raise NoPatch


def found(document, path):
    for name in path:
        try:
            document = document[place(document, name)]
        except KeyError:
            raise NoPatch from None
    return document


def nodes(value):
    """JSON values that a value is made of."""
    if isinstance(value, dict):
        return 1 + sum(map(nodes, value.values()))
    return 1 + sum(map(nodes, value)) if isinstance(value, list) else 1


def patched(document, patch):
    """What a patch makes of a document, and the JSON values that it touches; NoPatch where it does not apply."""
    document, touched = read(encode(document)), 0
    for operation in patch:
        path = segments(operation["path"])
        if not path:
            raise NoPatch
        inner, op = found(document, path[:-1]), operation["op"]
        at = place(inner, path[-1], 1 if op == "add" else 0)
        old = inner[at] if isinstance(inner, list) and at < len(inner) else (
            inner.get(at) if isinstance(inner, dict) else None)
        has = at in inner if isinstance(inner, dict) else at < len(inner)
        if op == "add":
            touched += nodes(operation["value"])
            if isinstance(inner, list):
                inner.insert(at, operation["value"])
            else:
                inner[at] = operation["value"]
            continue
        if not has:
            raise NoPatch
        if op == "remove":
            touched += nodes(old)
            del inner[at]
        elif op == "replace":
            touched += max(nodes(old), nodes(operation["value"]))
            inner[at] = operation["value"]
        elif op != "test" or encode(old) != encode(operation["value"]):
            raise NoPatch
    return document, touched


def changes(path, a, b, out):
    """Members that differ, as (path, before, after); `...` stands for what is not there."""
    if a is not ... and b is not ... and encode(a) == encode(b) or a is b is ...:
        return
    if isinstance(a, dict) and isinstance(b, dict):
        for name in sorted(set(a) | set(b)):
            changes("%s.%s" % (path, name), a.get(name, ...), b.get(name, ...), out)
    else:
        out.append((path, a, b))


def edited(a, b):
    """Characters removed and added between what two texts begin and end alike with."""
    short, head, tail = min(len(a), len(b)), 0, 0
    while head < short and a[head] == b[head]:
        head += 1
    while tail < short - head and a[-1 - tail] == b[-1 - tail]:
        tail += 1
    return len(a) + len(b) - 2 * (head + tail)


HELD = ("prompt", "note", "args")


def texts(value, within):
    if isinstance(value, str):
        return len(value) if within else 0
    if isinstance(value, dict):
        return sum(texts(of, within or name in HELD) for name, of in value.items())
    return sum(texts(of, within) for of in value) if isinstance(value, list) else 0


def chars_of(change):
    path, a, b = change
    within = any(part in HELD for part in path.split(".")[2:])
    if within and isinstance(a, str) and isinstance(b, str):
        return edited(a, b)
    return sum(texts(of, within) for of in (a, b) if of is not ...)


def locality(before, after, operator, step, touched):
    """How much an edit touches, as the program counts."""
    if operator == "split_step":
        merge = next((of for of in after["steps"] if of["id"] == step + "_m"), None)
        merged = nodes(merge) if merge is not None else 0
        return {"ast_nodes": SPLIT_RENAMED + merged, "new_llm_calls": 1, "prompt_chars": 0, "steps_touched": 2}
    old = {of["id"]: (at, of) for at, of in enumerate(before["steps"])}
    new = {of["id"]: (at, of) for at, of in enumerate(after["steps"])}
    out, steps = [], 0
    for name in ("inputs", "defaults", "return"):
        changes(name, before.get(name, ...), after.get(name, ...), out)
    for name in sorted(set(old) | set(new)):
        count = len(out)
        a, b = old[name][1] if name in old else ..., new[name][1] if name in new else ...
        changes("steps." + name, a, b, out)
        steps += len(out) > count
    was = [of["id"] for of in before["steps"] if of["id"] in new]
    now = [of["id"] for of in after["steps"] if of["id"] in old]
    steps += sum(1 for a, b in zip(was, now) if a != b)
    llm = [sum(1 for of in document["steps"] if of["kind"] == "llm") for document in (before, after)]
    return {"ast_nodes": touched, "new_llm_calls": max(0, llm[1] - llm[0]), "prompt_chars": sum(map(chars_of, out)),
            "steps_touched": min(steps, len(set(old) | set(new)))}


def halved(step, name, keeps):
    """A step that asks for the members that are kept alone, and writes them under a name of its own."""
    half = read(encode(step))
    schema = half["out"]["schema"]
    if isinstance(schema.get("required"), list):
        schema["required"] = [of for of in schema["required"] if isinstance(of, str) and keeps(of)]
    schema["properties"] = {of: value for of, value in schema["properties"].items() if keeps(of)}
    if not schema["properties"]:
        raise NoPatch
    return dict(half, writes=name)


def split(before, args):
    """What a split makes: two halves of a step, which merge to what it wrote, and all else as it was; NoPatch where it makes none."""
    place = next((at for at, of in enumerate(before["steps"]) if of["id"] == args.get("step")), None)
    second = args["second"]
    if place is None or before["steps"][place]["kind"] != "llm" or not isinstance(second, list):
        raise NoPatch
    step = before["steps"][place]
    writes = step["writes"]
    halves = [halved(step, writes + "_a", lambda of: of not in second),
              dict(halved(step, writes + "_b", lambda of: of in second), id=step["id"] + "_b")]
    merge = {"id": step["id"] + "_m", "kind": "map", "fn": "merge",
             "args": {"paths": [half["writes"] for half in halves]}, "writes": writes}
    if len(halves[1]["out"]["schema"]["properties"]) != len(second):
        raise NoPatch
    return dict(before, steps=before["steps"][:place] + halves + [merge] + before["steps"][place + 1:])


def is_split(before, after, args):
    try:
        return encode(split(before, args)) == encode(after)
    except (NoPatch, AttributeError, KeyError, TypeError, Refused):
        return False


def is_edit(edit):
    return isinstance(edit, dict) and set(edit) == {"operator", "args"} and isinstance(edit["args"], dict)


def edit_problem(parent, data, bounds, operators):
    """Why a candidate is not what its patch makes of its parent, within bounds; None where it is."""
    if parent is None:
        return "a parent with its workflow", "none"
    before, after, patch, edit = read(parent), read(data["ir"]), read(data["patch"]), read(data["edit"])
    if before is None or after is None:
        return "a workflow as canonical JSON", "another form"
    problem = form_problem(after)
    if problem:
        return "a workflow: " + problem, "another"
    if not isinstance(patch, list) or not is_edit(edit) or form_problem(before):
        return "an edit and a patch", "another form"
    if edit["operator"] != data["operator"] or data["operator"] not in operators:
        return "an operator that the meta prompt allows", data["operator"]
    try:
        made, touched = patched(before, patch)
    except (NoPatch, AttributeError, IndexError, KeyError, TypeError, ValueError, Refused):
        return "a patch that applies to its parent", "another"
    if encode(made) != data["ir"]:
        return "what its patch makes of its parent", "another workflow"
    if data["operator"] == "split_step" and not is_split(before, after, edit["args"]):
        return "two halves of a step, merged, and nothing else", "another workflow"
    step = edit["args"].get("step", edit["args"].get("after"))
    again = locality(before, after, data["operator"], step, touched)
    for part in sorted(again):
        if data["locality"][part] != again[part]:
            return "%s %d" % (part, again[part]), str(data["locality"][part])
        if again[part] > bounds[part]:
            return "%s at most %d" % (part, bounds[part]), str(again[part])
    return None
