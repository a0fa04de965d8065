"""Whether a step may take a patch of a judge's prompt, from its bytes alone (`schema/JUDGE_PROMPT.md`)."""

import hashlib
import math
import re
import unicodedata
from functools import lru_cache

from formats.canonical import encode
from formats.characters import ALIKE, BLANK, IGNORABLE, UNASSIGNED
from rules import sgd_lexicon

FROZEN_KINDS = ("goal", "axis", "scale", "output_spec")
ADDED_KINDS = ("anti_bias", "policy")
ID = re.compile("[a-z][a-z0-9_-]{0,31}", re.ASCII)
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")
JOINERS = re.compile("[\u200c\u200d\ufe0e\ufe0f]")
NUMBER = "(0|[1-9][0-9]{0,5})"
HUNK = re.compile(r"@@ -%s(?:,%s)? \+%s(?:,%s)? @@" % ((NUMBER,) * 4), re.ASCII)
HEADER = re.compile(r"(?:---|\+\+\+) (?:/dev/null|([ab])/sections/([a-z][a-z0-9_-]{0,31})\.md)", re.ASCII)
ALONE = ("\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u30fa\u30fc-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
         "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff")
BETWEEN = ("\x00-/:-@[-`{-\x7f\xa1-\xa9\xab-\xb4\xb6-\xb9\xbb-\xbf\xd7\xf7\u2010-\u205e\u2190-\u2bff\u3000-\u3004"
           "\u3008-\u3020\u30fb\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u2800").replace("[-`", r"\[-`")
TOKEN = re.compile("[%s]|[^%s%s]+" % (ALONE, ALONE, BETWEEN))
CLOSING = ".!?。！？｡\"')]}*_`”’»）】」』》"
DIFF_MAX, SENTENCES_MAX, LINES_MAX, SECTIONS_MAX, DISTANCE_MAX = 64 << 10, 400, 1_000, 64, 4_096
ORD_MAX, TITLE_MAX, PROMPT_MAX, RATIONALE_MAX, SECTION_MAX = 1_000_000, 120, 64_000, 280, 16_000
MILLION = 1_000_000


def digest(value):
    return hashlib.sha256(encode(value).encode()).hexdigest()


# Texts.

def normal_form(text):
    text = unicodedata.normalize("NFC", text.replace("\r\n", "\n").replace("\r", "\n"))
    end = re.compile("(?:%s)+\\Z" % BLANK.pattern)
    return "\n".join(end.sub("", line) for line in text.split("\n")).strip("\n")


def is_normal(text):
    hidden = IGNORABLE.search(JOINERS.sub("", text))
    return not (CONTROL.search(text) or hidden or UNASSIGNED.search(text)) and normal_form(text) == text


def poses(line):
    """Whether a line looks like the heading of a section, or like a comment that says what a section is."""
    return line.lstrip(" \t").startswith("#") or "<!--" in line


def is_title(text):
    return is_normal(text) and "\n" not in text and text.strip() == text and len(text) <= TITLE_MAX


@lru_cache(maxsize=20_000)
def comparable(text):
    """What two texts share that a reader takes for one."""
    seen = unicodedata.normalize("NFKC", IGNORABLE.sub("", text))
    folded = "".join(lower.lower() for c in seen for lower in c.upper())
    seen = IGNORABLE.sub("", unicodedata.normalize("NFKC", folded)).translate(ALIKE)
    spaced = re.sub("[\x00-\x1f\x7f-\x9f]", " ", seen)
    return " ".join(word for word in BLANK.split(spaced) if word)


def sentences(text):
    found = []
    for line in text.split("\n"):
        at = start = 0
        while at < len(line):
            mark, at = line[at], at + 1
            if mark not in ".!?。！？｡":
                continue
            while at < len(line) and line[at] in CLOSING:
                at += 1
            if mark in "。！？｡" or at == len(line) or line[at] in " \t\u3000":
                found.append(line[start:at])
                start = at
        found.append(line[start:])
    return [of for of in (of.strip(" \t\u3000") for of in found) if of]


def tight(text):
    return text.replace(" =", "=").replace("= ", "=")


def lexicon_of(text):
    """Terms with their levels, the longest first, and terms of a consequence in numbers."""
    levels, consequences = [], []
    for line in text.split("\n"):
        if line and not line.startswith("#"):
            mark, term = line.split(" ", 1)
            if mark == "!":
                consequences.append(tight(comparable(term)))
            else:
                levels.append((comparable(term), int(mark)))
    return sorted(levels, key=lambda of: (-len(of[0]), of)), consequences


LEVELS, CONSEQUENCES = lexicon_of(sgd_lexicon.TEXT)
LEXICON = hashlib.sha256(sgd_lexicon.TEXT.encode()).hexdigest()


def is_word(text, at, end):
    """Whether text[at:end] stands as a whole word; an apostrophe between letters is part of one."""
    def plain(c):
        return c.isascii() and c.isalnum()

    def part(near, far):
        return plain(far) if near == "'" else plain(near)

    before, after = "  " + text[:at], text[end:] + "  "
    return not (plain(text[at]) and part(before[-1], before[-2]) or
                plain(text[end - 1]) and part(after[0], after[1]))


def plain(text):
    """A text without what a reader passes over inside words; raised, small and circled signs end a word."""
    seen = []
    for c in text:
        if c in "*_`~" or "\u0300" <= c <= "\u036f":
            continue
        same = "" if c.isascii() else unicodedata.normalize("NFKC", c)
        digits = same and all("0" <= d <= "9" for d in same)
        seen.append(" " if digits or c in "\u00aa\u00ba\u2120\u2122" else c)
    return "".join(seen)


@lru_cache(maxsize=20_000)
def level(sentence):
    text, at, found = comparable(plain(sentence.replace("\u2019", "'"))), 0, 0
    while at < len(text):
        for term, of in LEVELS:
            if text.startswith(term, at) and is_word(text, at, at + len(term)):
                found, at = max(found, of), at + len(term)
                break
        else:
            at += 1
    return found


def is_consequence(sentence):
    text = tight(comparable(sentence))
    for term in CONSEQUENCES:
        at = text.find(term)
        while at >= 0:
            if is_word(text, at, at + len(term)):
                return True
            at = text.find(term, at + len(term))
    return False


def align(old, new):
    """Pairs (place in old or None, place in new or None)."""
    sets = [[set(TOKEN.findall(comparable(text))) for text in of] for of in (old, new)]
    worth = [[(1, int(a == b)) if 5 * len(x & y) >= 3 * len(x | y) else None for b, y in zip(new, sets[1])]
             for a, x in zip(old, sets[0])]
    best = [[(0, 0)] * (len(new) + 1) for _ in range(len(old) + 1)]
    for i in reversed(range(len(old))):
        for j in reversed(range(len(new))):
            ways = [best[i + 1][j], best[i][j + 1]]
            if worth[i][j]:
                ways.append(tuple(map(sum, zip(worth[i][j], best[i + 1][j + 1]))))
            best[i][j] = max(ways)
    i = j = 0
    pairs = []
    while i < len(old) or j < len(new):
        both = i < len(old) and j < len(new)
        if both and worth[i][j] and best[i][j] == tuple(map(sum, zip(worth[i][j], best[i + 1][j + 1]))):
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif i < len(old) and (j == len(new) or best[i + 1][j] >= best[i][j + 1]):
            pairs.append((i, None))
            i += 1
        else:
            pairs.append((None, j))
            j += 1
    return pairs


def distance(a, b):
    """Characters to delete and insert, by the longest common subsequence in words of bits."""
    masks = {}
    for at, c in enumerate(a):
        masks[c] = masks.get(c, 0) | 1 << at
    ones = (1 << len(a)) - 1
    row = ones
    for c in b:
        kept = row & masks.get(c, 0)
        row = (row + kept | row - kept) & ones
    shared = len(a) - bin(row).count("1")
    return min(len(a) + len(b) - 2 * shared, DISTANCE_MAX + 1)


# Diffs.

class Fault(Exception):
    """The line of a diff that is wrong."""


def parse_diff(text):
    """(section, what becomes of it, hunks of (line, before, lines))."""
    if len(text.encode()) > DIFF_MAX:
        raise Fault(0)
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    names = []
    for at, (mark, side) in enumerate((("--- ", "a"), ("+++ ", "b"))):
        found = HEADER.fullmatch(lines[at]) if at < len(lines) and lines[at].startswith(mark) else None
        if not found or found[1] not in (None, side):
            raise Fault(at + 1)
        names.append(found[2])
    if names == [None, None] or None not in names and names[0] != names[1]:
        raise Fault(2)
    hunks, at, old_end, new_end = [], 2, 0, 0
    while at < len(lines) or not hunks:
        line = at + 1
        found = HUNK.fullmatch(lines[at]) if at < len(lines) else None
        if not found:
            raise Fault(line)
        old, old_count, new, new_count = (1 if of is None else int(of) for of in found.groups())
        before, before_new = old - (old_count > 0), new - (new_count > 0)
        if before < 0 or before_new < 0:
            raise Fault(line)
        at, body = at + 1, []
        while old_count or new_count:
            sign = lines[at][:1] if at < len(lines) else ""
            if sign not in (" ", "-", "+") or not sign:
                raise Fault(line)
            old_count, new_count = old_count - (sign != "+"), new_count - (sign != "-")
            if old_count < 0 or new_count < 0:
                raise Fault(line)
            body.append((sign, lines[at][1:]))
            at += 1
        if all(sign == " " for sign, _ in body):
            raise Fault(line)
        gap = before - old_end
        if gap < 0 or gap != before_new - new_end:
            raise Fault(line)
        old_end = before + sum(sign != "+" for sign, _ in body)
        new_end = before_new + sum(sign != "-" for sign, _ in body)
        hunks.append((line, before, body))
    change = "add" if names[0] is None else "remove" if names[1] is None else "edit"
    return names[0] or names[1], change, hunks


def apply_diff(hunks, text):
    old, new, at = text.split("\n") if text else [], [], 0
    for line, before, body in hunks:
        if before > len(old):
            raise Fault(line)
        new += old[at:before]
        at = before
        for place, (sign, of) in enumerate(body):
            if sign != "+":
                if at >= len(old) or old[at] != of:
                    raise Fault(line + 1 + place)
                at += 1
            if sign != "-":
                new.append(of)
    return "\n".join(new + old[at:])


# Prompts.

def rendered(sections):
    texts = ["## %s\n%s" % (of["title"], of["text"]) if of["title"] else of["text"] for of in sections if of["text"]]
    return "\n\n".join(texts)


def is_prompt(prompt):
    """Whether the members of a prompt, each of its type, are those of a prompt."""
    sections, axes = prompt["sections"], prompt["axes"]
    ids, places = {of["section_id"] for of in sections}, {of["ord"] for of in sections}
    if not (ID.fullmatch(prompt["prompt_id"]) and prompt["score_lo"] < prompt["score_hi"]):
        return False
    if (prompt["version"] == 0) == ("parent_digest" in prompt) or len(axes) > 32 or len(set(axes)) < len(axes):
        return False
    if not all(map(ID.fullmatch, axes)) or not 1 <= len(sections) <= SECTIONS_MAX:
        return False
    if len(ids) < len(sections) or len(places) < len(sections) or sorted(of["ord"] for of in sections) != [
            of["ord"] for of in sections]:
        return False
    return len(rendered(sections)) <= PROMPT_MAX and all(map(is_section, sections))


def is_section(of):
    text = of["text"]
    return bool(
        ID.fullmatch(of["section_id"]) and not (of["editable"] and of["kind"] in FROZEN_KINDS)
        and 0 <= of["ord"] <= ORD_MAX and 1 <= of["max_chars"] <= SECTION_MAX and is_title(of["title"])
        and is_normal(text) and len(text) <= of["max_chars"] and text.count("\n") < LINES_MAX
        and len(sentences(text)) <= SENTENCES_MAX)


def rate(schedule, step):
    """The learning rate of a step in millionths."""
    most, least, warmup = schedule["lr_max"], schedule["lr_min"], schedule["warmup"]
    if step < warmup:
        return (2 * most * (step + 1) + warmup) // (2 * warmup)
    if step >= schedule["steps"]:
        return least
    angle = math.pi * (step - warmup) / (schedule["steps"] - warmup)
    return least + math.floor((most - least) / 2 * (1 + math.cos(angle)) + 0.5)


def edit_of(patch):
    """What a patch does, and its hunks; a fault with the line of the diff, 0 for the fields."""
    if not ID.fullmatch(patch["section"]):
        raise Fault(0)
    change, hunks = "move", []
    if patch["diff"]:
        section, change, hunks = parse_diff(patch["diff"])
        if section != patch["section"]:
            raise Fault(1)
    has = {of: patch.get(of) is not None for of in ("kind", "ord", "title")}
    if (change == "add") != has["kind"] or change != "add" and has["title"]:
        raise Fault(0)
    if change == "move" and not has["ord"] or change == "remove" and has["ord"]:
        raise Fault(0)
    return change, hunks


def changed(sections, patch, change, text, chars):
    """The sections after a change, by ascending place."""
    after = [dict(of) for of in sections if change != "remove" or of["section_id"] != patch["section"]]
    if change == "add":
        last = max((of["ord"] for of in sections), default=0)
        place = last + 10 if patch.get("ord") is None else patch["ord"]
        after.append({"editable": True, "kind": patch["kind"], "max_chars": chars, "ord": place,
                      "section_id": patch["section"], "text": text, "title": patch.get("title") or ""})
    for of in after:
        if of["section_id"] == patch["section"] and change in ("edit", "move"):
            of["text"] = text
            if patch.get("ord") is not None:
                of["ord"] = patch["ord"]
    return sorted(after, key=lambda of: of["ord"])


def measures(patch, change, old, new, terms, lr):
    """Rules of length and of modal strength: (rule, measured, bound), whether or not it is broken."""
    title = patch.get("title") or ""
    if change == "add":
        chars, most = len(new) + len(title), terms["section_chars_max"]
    elif change == "remove":
        chars, most = len(old), terms["section_chars_max"]
    else:
        chars, most = distance(old, new), max(terms["chars_min"], terms["chars_scale"] * lr // MILLION)
    before, after = sentences(old), sentences(title + "\n" + new if title else new)
    pairs = align(before, after)
    levels = [(None if i is None else level(before[i]), None if j is None else level(after[j])) for i, j in pairs]
    deltas = [(b or 0) - (a or 0) for a, b in levels]
    up, moved = sum(max(0, of) for of in deltas), sum(map(abs, deltas))
    risen = sum(b == 4 and a != 4 for a, b in levels)
    soft = sum(a is not None and b is not None and a < 3 <= b for a, b in levels)
    soft += sum(i is None and is_consequence(after[j]) for i, j in pairs)
    effective = chars * MILLION // max(1, terms["chars_scale"]) + 250_000 * moved + 500_000 * soft
    return [("chars", chars, most),
            ("sentence_level", 0 if change == "remove" else max(map(abs, deltas), default=0), 1),
            ("levels", up, 1 + 2 * lr // MILLION), ("approval", risen, 0),
            ("soft_to_hard", soft, int(lr >= terms["schedule"]["tau"])),
            ("effective_step", effective, 3 * lr // 2 + 250_000)]


def judge(prompt0, current, proposal, step, terms, approvals, gradient_items):
    """(violations, the next prompt): each violation is (rule, measured, bound); the prompt is None where there is one."""
    found, patch = [], proposal["patch"]

    def at_most(rule, measured, bound):
        if measured > bound:
            found.append((rule, measured, bound))

    def stop(rule, measured, bound):
        found.append((rule, measured, bound))
        return found, None

    rationale, addresses = proposal["rationale"], proposal["addresses"]
    fits = is_normal(rationale) and "\n" not in rationale
    at_most("rationale", len(rationale) if fits else RATIONALE_MAX + 1, RATIONALE_MAX)
    at_most("addresses", len(addresses) - len({of for of in addresses if of < gradient_items}), 0)
    if patch["parent"] != digest(current):
        return stop("parent", 1, 0)
    try:
        change, hunks = edit_of(patch)
    except Fault as fault:
        return stop("form", fault.args[0], 0)
    sections, lr = current["sections"], rate(terms["schedule"], step)
    old = next((of for of in sections if of["section_id"] == patch["section"]), None)
    if (old is not None) == (change == "add"):
        return stop("section", 1, 0)
    if change == "add" and len(sections) >= SECTIONS_MAX:
        return stop("section", SECTIONS_MAX + 1, SECTIONS_MAX)
    moves = old is not None and patch.get("ord") not in (None, old["ord"])
    if old and (not old["editable"] or old["kind"] in FROZEN_KINDS):
        found.append(("frozen", 1, 0))
    if change == "add" and patch["kind"] not in ADDED_KINDS:
        found.append(("kind", 1, 0))
    if (change != "edit" or moves) and lr < terms["schedule"]["tau"]:
        found.append(("below_tau", lr, terms["schedule"]["tau"]))
    at_most("hunks", len(hunks), terms["hunks_max"])
    before = old["text"] if old else ""
    try:
        text = apply_diff(hunks, before)
        if change == "remove" and text:
            raise Fault(0)
    except Fault as fault:
        return stop("context", fault.args[0], 0)
    if len(sentences(text)) > SENTENCES_MAX:
        return stop("normal_form", len(sentences(text)), SENTENCES_MAX)
    after = changed(sections, patch, change, text, terms["section_chars_max"])
    place = next((of["ord"] for of in after if of["section_id"] == patch["section"]), None)
    taken = any(of["ord"] == place for of in sections if of["section_id"] != patch["section"])
    if place is not None and (change == "add" or patch.get("ord") is not None) and (place > ORD_MAX or taken):
        found.append(("order", place, ORD_MAX))
    known = before.split("\n")
    posing = any(poses(line) and line not in known for line in text.split("\n"))
    if posing or not is_normal(text) or not is_title(patch.get("title") or ""):
        found.append(("normal_form", 1, 0))
    else:
        at_most("normal_form", text.count("\n") + 1, LINES_MAX)
    if change in ("edit", "move") and not moves and text == before:
        found.append(("no_change", 0, 1))
    if change == "edit":
        at_most("section_length", len(text), old["max_chars"])
    for rule, measured, bound in measures(patch, change, before, text, terms, lr):
        if rule != "approval" or digest(patch) not in approvals:
            at_most(rule, measured, bound)
    at_most("growth", len(rendered(after)), len(rendered(prompt0["sections"])) * terms["growth_max"] // MILLION)
    following = dict(current, parent_digest=patch["parent"], sections=after, version=current["version"] + 1)
    if not found and not is_prompt(following):
        return stop("section", 1, 0)
    return found, None if found else following
