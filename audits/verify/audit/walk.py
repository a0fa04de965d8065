"""The walk: each line is read, judged by the rules, folded into the state, and made a leaf of the tree."""

import hashlib
import json
import re
from array import array

from formats.limits import LINE_MAX, NotALedger, PAYLOAD_TYPE, Refused
from events.entry import Entry
from history.folds import apply, track
from rules.registry import (
    BARS_FOLDING, BLOB_RULES, CUSTODY_RULES, DATA_RULES, HEADER_RULES, KIND_RULES, LINE_RULES, PART_DATA_RULES, PART_RULES,
    SCHEMA_RULES)
from audit.bundle import CUSTODY


def judge_line(state, report, questions, position, line):
    """Judge one line, fold it, and keep what questions need of it. `line` is None for one longer than LINE_MAX."""
    try:
        if line is None:
            raise Refused("a line of at most %d bytes" % LINE_MAX, "a longer one")
        entry = Entry(position, line)
    except Exception as error:
        refused = error if isinstance(error, Refused) else Refused("an entry line", failure(error))
        report.add(position, "line_format", refused.expected, refused.found)
        state.times.append(state.times[-1] if state.times else 0)
        return
    judge(state, report, entry, LINE_RULES)
    state.last_recorded = (entry.recorded_at, entry.recorded_text)
    state.times.append(entry.recorded_at)
    try:
        entry.read_body()
    except Exception as error:
        refused = error if isinstance(error, Refused) else Refused("a closed body", failure(error))
        report.add(position, "body_format", refused.expected, refused.found)
        return
    if not judge(state, report, entry, KIND_RULES):
        entry.decoded = not judge(state, report, entry, SCHEMA_RULES)
    broken = judge(state, report, entry, HEADER_RULES)
    if entry.newer and not state.asks("assigned_ids"):
        state.newer.append(position)
    if entry.decoded:
        broken |= judge(state, report, entry, DATA_RULES)
    is_signed = not broken & {"key", "signature"}
    if is_signed:
        state.signers.add(entry.author)
    if entry.decoded and (entry.creates() or not broken & BARS_FOLDING):
        try:
            apply(state, entry)
        except Exception as error:
            report.add(position, "schema", "data that can be taken in", failure(error))
    track(state, entry)
    take_published(report, entry)
    if entry.kind == "subject.erased":
        report.erased.append(position)
    if questions is not None and entry.decoded and is_signed:
        questions.take(state, entry)


def take_published(report, entry):
    """Take in the digest of the bundle of a published report."""
    if entry.decoded and entry.kind == "report.published":
        report.published[entry.data["iteration"]] = entry.data["bundle"]["blake3"]


def judge(state, report, entry, rules):
    """Run rules in turn; the names of those that an entry broke."""
    broken = set()
    for name, rule in rules:
        problem = unless_it_fails(rule, state, entry)
        for one in problem if isinstance(problem, list) else [problem] if problem else []:
            broken.add(name)
            report.add(entry.position, name, *one)
    return broken


def unless_it_fails(rule, state, entry):
    """What a rule says; one that ends in an error has met what no ledger of the program holds."""
    try:
        return rule(state, entry)
    except Refused as refused:
        return refused.expected, refused.found
    except Exception as error:
        return "an entry that this rule can be asked about", failure(error)


def failure(error):
    """An error of this program, by its kind and what it says."""
    return "%s: %s" % (type(error).__name__, error)


def read_lines(file):
    """(line without newline or None when too long, leaf hash) of every line; the last may lack its newline."""
    while True:
        part = file.readline(LINE_MAX + 1)
        if not part:
            return
        leaf = hashlib.sha256(b"\0")
        if part.endswith(b"\n") or len(part) <= LINE_MAX:
            line = part[:-1] if part.endswith(b"\n") else part
            leaf.update(line)
            yield line, leaf.digest()
            continue
        while part and not part.endswith(b"\n"):
            leaf.update(part)
            part = file.readline(1 << 20)
        leaf.update(part[:-1])
        yield None, leaf.digest()


def looks_like_entry(line):
    """Whether a line, however damaged, is one of a ledger: enough to judge the file instead of refusing it."""
    if line is None or PAYLOAD_TYPE.encode("ascii") in line:
        return line is not None
    try:
        value = json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and "envelope" in value


def walk(file, state, report, questions=None):
    """Judge every line of a file in order; refused as no ledger where no line is an entry."""
    ledger = False
    for position, (line, leaf) in enumerate(read_lines(file)):
        ledger = ledger or looks_like_entry(line)
        judge_line(state, report, questions, position, line)
        state.tree.append(leaf)
        if position == 1000 and not ledger:
            raise NotALedger("none of the first thousand lines is an entry line")
    if not ledger:
        raise NotALedger("the file is empty" if state.tree.size == 0 else "no line is an entry line")


def judge_shown(state, report, position, line):
    """Judge an entry of a part by itself, and take what it says of keys."""
    try:
        entry = Entry(position, line)
        judge(state, report, entry, LINE_RULES)
        state.last_recorded = (entry.recorded_at, entry.recorded_text)
        entry.read_body()
    except Exception as error:
        refused = error if isinstance(error, Refused) else Refused("an entry line", failure(error))
        report.add(position, "line_format", refused.expected, refused.found)
        return
    if not judge(state, report, entry, KIND_RULES):
        entry.decoded = not judge(state, report, entry, SCHEMA_RULES)
    broken = judge(state, report, entry, PART_RULES)
    if not broken & {"key", "signature"}:
        state.signers.add(entry.author)
    if entry.experiment is not None:
        report.shown.add(entry.experiment)
    report.kinds.add(entry.kind)
    is_custody = entry.kind in CUSTODY
    if entry.decoded:
        report.names_blobs = report.names_blobs or bool(entry.blobs())
        take_published(report, entry)
        broken |= judge(state, report, entry, CUSTODY_RULES if is_custody else PART_DATA_RULES)
        judge(state, report, entry, BLOB_RULES)
        if is_custody and not broken:
            apply(state, entry)
    one_place(report, position, entry.id)
    state.seqs_of.setdefault(entry.author, array("Q")).append(position)
    state.ids.add(entry.id)


def one_place(report, position, event):
    """An event has one place: an id that is said of an entry withheld is that of no other entry."""
    first = report.places.setdefault(event, position)
    if first != position:
        report.add(position, "natural_key", "one event per natural key", "seq %d has it" % first)


# Of what is withheld there is one spelling.
WITHHELD = re.compile(rb'\{"withheld":\{(?:"id":"([0-9a-f]{64})",)?"leaf":"([0-9a-f]{64})","seq":(0|[1-9][0-9]{0,19})\}\}')


def read_withheld(line):
    """(position, id or None, leaf hash) of a line that says what is withheld; None of any other."""
    match = WITHHELD.fullmatch(line or b"")
    if not match or int(match.group(3)) >= 2 ** 64:
        return None
    event, leaf, seq = match.groups()
    return int(seq), event and bytes.fromhex(event.decode("ascii")), bytes.fromhex(leaf.decode("ascii"))


def walk_part(file, state, report):
    """Judge each entry that is shown; of the others only the leaf is taken."""
    report.hidden = set()
    for position, (line, leaf) in enumerate(read_lines(file)):
        withheld = read_withheld(line)
        if withheld:
            report.hidden.add(position)
            seq, event, leaf = withheld
            if seq != position:
                report.add(position, "seq", "seq %d" % position, "seq %s" % seq)
            if position == 0:
                report.add(position, "genesis", "ledger.created at seq 0", "an entry that is withheld")
            if event:
                one_place(report, position, event)
                state.ids.add(event)
        elif line is None:
            report.add(position, "line_format", "a line of at most %d bytes" % LINE_MAX, "a longer one")
        else:
            judge_shown(state, report, position, line)
        state.tree.append(leaf)
    report.withheld = len(report.hidden)
