"""Documents in plain YAML (`schema/RUBRIC.md`): block and flow style, scalars on one line.

What is beyond that raises `Unsure`: the document is named as not checked, and what it is said to say is judged.
"""

import json
import re

from formats.limits import Refused, SAFE_INTEGER, show
from formats.canonical import parse_fraction

YAML_DEPTH_MAX = 64
UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


class Unsure(Exception):
    """A document uses more of YAML than is read here; what it is said to say is judged all the same."""


def read_yaml(document):
    """The value of a document in plain YAML: block mappings and lists, flow ones and scalars on one line."""
    lines = []
    if "\0" in document:
        raise Refused("a document without control characters", "the character 0")
    if re.search("[\t\r\x85\u2028\u2029\ufeff]", document):
        raise Unsure()
    for line in document.split("\n"):
        content = strip_comment(line)
        if UNPRINTABLE.search(content):           # never blank space, and no text that a rubric or a patch may hold
            raise Refused("a document without control characters", show(content))
        if content.strip(" ") and not (content.rstrip(" ") == "---" and not lines):
            lines.append([len(content) - len(content.lstrip(" ")), content.strip(" ")])
    if not lines or any(content.startswith(("---", "...", "%")) for _, content in lines):
        raise Unsure()
    if lines[0][1][0] in "{[":
        if len(lines) != 1:
            raise Unsure()
        return flow_value(lines[0][1])
    value, rest = block(lines, 0, lines[0][0], 0)
    if rest != len(lines):
        raise Unsure()
    return value


def strip_comment(line):
    quote, before = "", " "
    for at, c in enumerate(line):
        if quote:
            quote = "" if c == quote and not (quote == '"' and before == "\\") else quote
        elif c in "\"'" and before in " [{,:":
            quote = c
        elif c == "#" and before == " ":
            return line[:at]
        before = "" if before == "\\" else c
    if quote:
        raise Unsure()
    return line


def deeper(depth):
    """The depth of what stands inside."""
    if depth == YAML_DEPTH_MAX:
        raise Refused("at most %d nested levels" % YAML_DEPTH_MAX, "more")
    return depth + 1


def block(lines, at, indent, depth):
    """The block that starts at a line, and the line after it."""
    depth = deeper(depth)
    if lines[at][1].startswith("- ") or lines[at][1] == "-":
        items = []
        while at < len(lines) and lines[at][0] == indent and (lines[at][1] + " ").startswith("- "):
            content = lines[at][1][1:].lstrip(" ")
            if not content:
                raise Unsure()
            if key_of(content) is None:
                items.append(flow_value(content, depth))
                at += 1
            else:
                lines[at] = [indent + len(lines[at][1]) - len(content), content]
                item, at = block(lines, at, lines[at][0], depth)
                items.append(item)
        return items, at
    fields = {}
    while at < len(lines) and lines[at][0] == indent and not (lines[at][1] + " ").startswith("- "):
        found = key_of(lines[at][1])
        if found is None:
            raise Unsure()
        key, content = found
        at += 1
        nested = at < len(lines) and (lines[at][0] > indent or lines[at][0] == indent
                                      and (lines[at][1] + " ").startswith("- "))
        if content:
            if nested and lines[at][0] > indent:
                raise Unsure()
            value = flow_value(content, depth)
        elif nested:
            value, at = block(lines, at, lines[at][0], depth)
        else:
            value = None
        if key in fields:
            raise Refused("each key once", key)
        fields[key] = value
    if at < len(lines) and lines[at][0] > indent:
        raise Unsure()
    return fields, at


KEY = re.compile(r"""([A-Za-z_][A-Za-z0-9_.+-]*|"[A-Za-z0-9_.+-]*"|'[A-Za-z0-9_.+-]*')[ ]*:(?:[ ]+|$)""", re.ASCII)


def key_of(content):
    """(key, what follows) of a line of a mapping, or None."""
    match = KEY.match(content)
    if not match:
        return None
    key = match[1]
    if key[0] in "\"'":
        return key[1:-1], content[match.end():]
    if not isinstance(plain_scalar(key), str):
        raise Refused("a string as key", key)
    return key, content[match.end():]


def flow_value(content, depth=0):
    value, at = flow(content, 0, "", depth)
    if content[at:].strip(" "):
        raise Unsure()
    return value


def flow(content, at, ends, depth):
    """The value at a place of one line, and the place after it; a plain scalar goes on to one of `ends`."""
    while at < len(content) and content[at] == " ":
        at += 1
    if at == len(content):
        raise Unsure()
    opening = content[at]
    if opening in "[{":
        closing, items, fields, at = "]" if opening == "[" else "}", [], {}, at + 1
        depth = deeper(depth)
        while True:
            while at < len(content) and content[at] == " ":
                at += 1
            if at < len(content) and content[at] == closing:
                return (items if opening == "[" else fields), at + 1
            if opening == "{":
                found = KEY.match(content, at)
                if not found:
                    raise Unsure()
                key, at = key_of(content[at:])[0], found.end()
                value, at = flow(content, at, ",}", depth)
                if key in fields:
                    raise Refused("each key once", key)
                fields[key] = value
            else:
                value, at = flow(content, at, ",]", depth)
                items.append(value)
            while at < len(content) and content[at] == " ":
                at += 1
            if at < len(content) and content[at] == ",":
                at += 1
            elif at == len(content) or content[at] != closing:
                raise Unsure()
    if opening == '"':
        match = re.compile(r'"(?:[^"\\]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*"').match(content, at)
        if not match:
            raise Unsure()
        if re.search(r"(?<!\\)(?:\\\\)*\\u[dD][89a-fA-F]", match[0]):
            raise Refused("a character", "half of a pair of surrogates, which YAML does not put together")
        return json.loads(match[0], strict=False), match.end()
    if opening == "'":
        match = re.compile("'(?:[^']|'')*'").match(content, at)
        if not match:
            raise Unsure()
        return match[0][1:-1].replace("''", "'"), match.end()
    end = next((i for i in range(at, len(content)) if content[i] in ends), len(content))
    word = content[at:end].strip(" ")
    odd = not word or word[0] in "&*!|>%@`?-:,[]{}#" and not re.match("-[0-9.]", word)
    if odd or ": " in word or word[-1] == ":":
        raise Unsure()
    if ends and re.search(r"[\[\]{}]", word):
        raise Unsure()
    return plain_scalar(word), end


def plain_scalar(word):
    """A plain scalar under the core schema of YAML 1.2."""
    if word in ("~", "null", "Null", "NULL"):
        return None
    if word in ("true", "True", "TRUE", "false", "False", "FALSE"):
        return word.lower() == "true"
    if re.fullmatch(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)", word):
        raise Refused("a finite number", word)
    for pattern, base in (("0o([0-7]+)", 8), ("0x([0-9a-fA-F]+)", 16), ("([-+]?[0-9]+)", 10)):
        match = re.fullmatch(pattern, word, re.ASCII)
        if match:
            if len(match[1].lstrip("+-0")) > 22 or abs(int(match[1].lstrip("+0") or "0", base)) > SAFE_INTEGER:
                raise Refused("an integer within 2^53-1", word)
            return int(match[1].lstrip("+0") or "0", base)
    if re.fullmatch(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", word, re.ASCII):
        return parse_fraction(word)
    return word
