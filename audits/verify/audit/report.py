"""What was found, what was not checked, and the verdict, as text or as JSON."""

import json

from formats.limits import CLOCK_AHEAD, FINDINGS_SHOWN, show
from formats.fields import b64
from history.rulebooks import questions_not_asked, rulebooks_in_words
from rules.registry import RANK
from audit.checkpoints import judge_identity
from audit.questions import as_page, as_tables


class Report:
    """Findings by place and rule, and what else is said beside the verdict."""

    def __init__(self):
        self.findings, self.notes, self.not_checked, self.tainted = [], [], [], []
        self.withheld = None                      # of a part of a log: entries of which only the leaf is at hand
        self.places = {}                                 # of a part: the position of each event's id
        self.published = {}                              # BLAKE3 of the newest published report of each iteration
        self.shown, self.names_blobs = set(), False     # of a part: experiments of entries shown; whether one names a blob
        self.erased = []                          # positions of erasures: their texts cannot be read again
        self.kinds, self.hidden = set(), set()          # of a part: kinds of entries shown; positions of those withheld

    def add(self, seq, rule, expected, found):
        self.findings.append((seq, RANK[rule], rule, show(expected), show(found)))


def in_words(positions):
    """The first twelve positions, and how many more there are."""
    more = len(positions) - 12
    return ", ".join(map(str, positions[:12])) + (" and %d more" % more if more > 0 else "")


def conclude(state, report, options, checkpoints):
    """Notes, tainted events and what was not checked, once the walk is over."""
    for key_id, since in sorted(state.compromised.items()):
        report.tainted += [seq for seq in state.seqs_of.get(key_id, ()) if seq >= since]
    report.tainted.sort()
    is_part = report.withheld is not None
    judge_identity(state, report, options.log_key, checkpoints, options.against)
    report.not_checked += [] if options.blobs or is_part and not report.names_blobs else ["blobs"]
    if not options.checkpoint:
        report.not_checked.append("checkpoint")
    elif checkpoints[0].size is not None and checkpoints[0].size < state.tree.size:
        report.not_checked.append("checkpoint after seq %d" % (checkpoints[0].size - 1))
    if state.format == 1:
        report.not_checked += ["possession (format 1)", "experiment (format 1)"]
    if state.unread:
        report.not_checked.append("documents beyond plain YAML at seq %s" % ", ".join(map(str, state.unread)))
    if state.newer:
        report.not_checked.append("the normal form of ids newer than Unicode 13.0 at seq %s"
                                  % ", ".join(map(str, state.newer)))
    report.not_checked += [] if options.bundle else ["kept checkpoints", "database"]
    report.not_checked += (["rules that take the whole history"] if is_part else []) + ["recompute"]
    report.not_checked += ["texts erased at seq %s" % in_words(report.erased)] if report.erased else []
    report.not_checked += ["whether an entry withheld adds or ends a key"] if report.withheld else []
    if state.origin is not None:
        report.notes.append("policy %s" % ("strict" if state.strict else "solo: every derived claim is self-governed"))
    end = state.last_recorded[0] if state.last_recorded else 0
    late = sorted(seal.seq for seals in state.seals.values() for seal in seals
                  if not seal.revealed and seal.reveal_by < end)
    if late:
        report.notes.append("%d sealed labels not revealed by their deadline, first at seq %d" % (len(late), late[0]))
    for name, (seq, what, role) in sorted(state.taints.items()):
        report.notes.append("%s is tainted: at seq %d %s was released to a key in role %s" % (name, seq, what, role))
    for name, of in sorted(state.deploys.items(), key=lambda pair: pair[0]):
        if of.checked and of.checked[1]:
            report.notes.append("%s runs on after the breach at seq %d: its rollback is not on record" % (name, of.checked[2]))
    steps = [seq for seq in range(1, len(state.times)) if state.times[seq] - state.times[seq - 1] > CLOCK_AHEAD]
    if steps:
        report.notes.append("recorded_at steps ahead by more than 400 days %d times, first at seq %d: no later entry "
                            "may be earlier" % (len(steps), steps[0]))
    for seq, size, root in state.attestations:
        if size > state.tree.size or b64(state.tree.root(size)) != root:
            report.notes.append("audit.attested at seq %d names a root that this tree does not have at size %d"
                                % (seq, size))
    report.findings.sort(key=lambda finding: finding[:2])


def as_json(state, report, answers):
    """The report for programs: every finding, and answers to what was asked."""
    findings = [dict(zip(("seq", "rule", "expected", "found"), (seq, rule, expected, found)))
                for seq, _, rule, expected, found in report.findings]
    first = {name: findings[0][name] for name in ("seq", "rule")} if findings else None
    return json.dumps({"verdict": "fail" if findings else "pass", "events": state.tree.size,
                       "withheld": report.withheld or 0,
                       "root": b64(state.tree.root(state.tree.size)), "findings": findings, "first": first,
                       "rulebooks": state.rulebooks, "not_asked": questions_not_asked(state),
                       "not_checked": report.not_checked, "tainted": report.tainted, "notes": report.notes,
                       **({"answers": answers} if answers else {})})


def not_claimed(state, report):
    """What nobody may read out of the page."""
    return ["that what was recorded is true or complete", "what anybody saw in private"] + (
        [] if state.strict else ["that roles were kept apart: one person may hold all (solo)"]) + [
        "NOT CHECKED: " + ", ".join(report.not_checked)]


def as_text(state, report, answers, page=False):
    """The report for people; its last line is the verdict, the first one of a page."""
    if page:
        lines = verdict_and_findings(state, report)
        return "\n".join([lines[-1], ""] + as_page(answers, not_claimed(state, report)) + lines[:-1])
    return "\n".join(as_tables(answers) + verdict_and_findings(state, report))


def listed(findings):
    """Findings by place, those that say the same of later entries behind the first that says it."""
    same = {}                             # in the order of the first of each
    for seq, _, rule, expected, found in findings:
        same.setdefault((rule, expected, found), []).append(seq)
    lines = []
    for (rule, expected, found), seqs in list(same.items())[:FINDINGS_SHOWN]:
        lines.append("seq %d  %s  expected: %s  found: %s" % (seqs[0], rule, expected, found))
        if len(seqs) > 1:
            lines.append("... and the same of %d more, the last at seq %d" % (len(seqs) - 1, seqs[-1]))
    beyond = sum(len(seqs) for seqs in list(same.values())[FINDINGS_SHOWN:])
    return lines + (["... and %d more findings (--json shows all)" % beyond] if beyond else [])


def verdict_and_findings(state, report):
    """Findings and notes; the last line is the verdict."""
    lines = listed(report.findings)
    if report.tainted:
        more = " and %d more" % (len(report.tainted) - 50) if len(report.tainted) > 50 else ""
        lines.append("tainted (events of a compromised key): seq %s%s"
                     % (", ".join(map(str, report.tainted[:50])), more))
    lines += ["note: " + note for note in report.notes]
    for name, reason in (("identity", "a forged ledger with its own keys agrees with itself; give --log-key with "
                          "--checkpoint, or --against"), ("blobs", "give --blobs DIR")):
        if name in report.not_checked:
            lines.append("%s NOT CHECKED: %s" % (name, reason))
    asked = [] if report.withheld is not None else [rulebooks_in_words(state)]
    unchecked = "".join(" \u00b7 " + part for part in asked + ["NOT CHECKED: " + ", ".join(report.not_checked)])
    if report.findings:
        seq, _, rule = report.findings[0][:3]
        count = "%d finding%s" % (len(report.findings), "" if len(report.findings) == 1 else "s")
        if len(report.findings) > 1:
            lines.append("Begin with seq %d: what is found later may follow from it." % seq)
        lines.append("FAILED  %s, first at seq %d (%s)%s" % (count, seq, rule, unchecked))
    else:
        root = b64(state.tree.root(state.tree.size))
        events = "%d events" % state.tree.size
        if report.withheld is not None:
            events = "%d of %s, %d withheld" % (state.tree.size - report.withheld, events, report.withheld)
        lines.append("VERIFIED  %s \u00b7 %d signers \u00b7 root %s%s" % (events, len(state.signers), root, unchecked))
    return lines
