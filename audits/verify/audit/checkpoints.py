"""Checkpoints (`schema/CHECKPOINT.md`): signed notes that name a size and a root of the tree."""

import re

from formats.limits import NOTE_MAX, Refused, SIGNATURES_MAX
from formats.fields import b64, decode_base64, is_key_name


class Checkpoint:
    """A signed note: text, empty line, signature lines. Its text is read by `read`, which may refuse it."""

    def __init__(self, name, data):
        self.name, self.data = name, data
        self.origin = self.size = self.root = None

    def read(self):
        if len(self.data) > NOTE_MAX:
            raise Refused("%s: a checkpoint of at most %d bytes" % (self.name, NOTE_MAX), "a longer file")
        try:
            note = self.data.decode("utf-8")
        except ValueError:
            raise Refused("%s: a checkpoint in UTF-8" % self.name, "other bytes") from None
        head, gap, self.tail = note.rpartition("\n\n")
        if not gap or not self.tail:
            raise Refused("%s: a signed note (text, empty line, signatures)" % self.name, "%d bytes" % len(self.data))
        self.text = head + "\n"
        lines = self.text.split("\n")[:-1]
        if re.search("[\x00-\x09\x0b-\x1f]", self.text + self.tail) or len(lines) < 3 or not all(lines):
            raise Refused("checkpoint text: origin, size, root", "%d lines" % len(lines))
        if not re.fullmatch("0|[1-9][0-9]{0,19}", lines[1], re.ASCII) or int(lines[1]) >= 2 ** 64:
            raise Refused("a decimal size", lines[1])
        root = decode_base64(lines[2])
        if root is None or len(root) != 32:
            raise Refused("a root of 32 bytes in base64", lines[2])
        signatures = []
        if not self.tail.endswith("\n") or self.tail.count("\n") > SIGNATURES_MAX:
            raise Refused("1 to %d signature lines, each ended by a newline" % SIGNATURES_MAX, "another ending")
        for line in self.tail[:-1].split("\n"):
            parts = line.split(" ")
            blob = decode_base64(parts[2]) if len(parts) == 3 and parts[0] == "\u2014" and parts[1] else None
            if not blob or len(blob) < 5 or not is_key_name(parts[1]):
                raise Refused("signature lines: em dash, name, base64", line)
            signatures.append((parts[1], blob[:4], blob[4:]))
        self.origin, self.size, self.root, self.signatures = lines[0], int(lines[1]), root, signatures

    def signed_by(self, state, key):
        """True or False for a signature line under this vkey that verifies or not; None without such a line."""
        found = [s for name, key_hash, s in self.signatures if (name, key_hash) == key[:2]]
        if not found:
            return None
        return all(state.ed25519.verify(key[2], self.text.encode("utf-8"), s) for s in found)


def judge_checkpoint(state, report, checkpoint):
    """Form, origin, log key and signature, then size and root. True when the root of the log was compared."""
    count = state.tree.size
    try:
        checkpoint.read()
    except Refused as refused:
        report.add(max(0, count - 1), "checkpoint", refused.expected, refused.found)
        return False
    size, name = checkpoint.size, checkpoint.name
    seq = max(0, min(size, count) - 1)
    if state.origin is not None and checkpoint.origin != state.origin:
        report.add(seq, "checkpoint", "%s: origin %s" % (name, state.origin), checkpoint.origin)
    else:
        problem = log_key_problem(state, checkpoint)
        if problem:
            report.add(seq, "checkpoint", "%s: %s" % (name, problem[0]), problem[1])
    if size > count:
        report.add(count, "size", "%s: at least %d entries" % (name, size), "%d entries" % count)
        return False
    if state.tree.root(size) != checkpoint.root:
        report.add(seq, "root", "%s: root %s at size %d" % (name, b64(checkpoint.root), size),
                   b64(state.tree.root(size)))
    return size > 0


def log_key_problem(state, checkpoint):
    """The log key in force at a size signs; the entry that rotates it is covered by both keys.

    Past the end of the lines a rotation may be missing, so there only a signature that fails is a problem.
    """
    keys = [(seq, key) for seq, key in state.log_keys if seq < max(1, checkpoint.size)]
    for _, key in keys:
        if checkpoint.signed_by(state, key) is False:
            return "a signature by log key %s" % key[1].hex(), "one that does not verify"
    if not keys:
        return "a log key named in ledger.created", "no readable ledger.created"
    if checkpoint.size > state.tree.size:
        return None
    needed = [keys[-1]]
    if len(keys) > 1 and keys[-1][0] == checkpoint.size - 1:
        needed.insert(0, keys[-2])
    for seq, key in needed:
        if not checkpoint.signed_by(state, key):
            return "a signature by log key %s (seq %d)" % (key[1].hex(), seq), "none"
    return None


def judge_identity(state, report, log_key, checkpoints, against):
    """Whether the ledger was tied to something that its writer could not have made up."""
    if log_key:
        if log_key not in [key for _, key in state.log_keys]:
            known = ", ".join(key[1].hex() for _, key in state.log_keys) or "none readable"
            report.add(0, "checkpoint", "log key %s" % log_key[1].hex(), "log keys of this ledger: %s" % known)
        elif any(c.root is not None and c.signed_by(state, log_key) for c in checkpoints):
            return
        else:
            report.notes.append("--log-key is a log key of this ledger, but no checkpoint given is signed by it")
    if not against:
        report.not_checked.append("identity")
