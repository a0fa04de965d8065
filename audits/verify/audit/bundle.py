"""A bundle (`schema/EXPORTS.md`): a folder or a ZIP archive, of which nothing is unpacked."""

import base64
import hashlib
import io
import json
import os
import re

from formats.blake3 import blake3_stream
from formats.fields import b64
from formats.limits import NotALedger, Refused, SPKI
from events.kinds import KINDS
from audit.archive import Archive, is_plain
from audit.blobs import Folder
from audit.checkpoints import Checkpoint, log_key_problem

LINES, PART, CONTENTS, SUMS = "ledger.jsonl", "entries.jsonl", "bundle.json", "SHA256SUMS"
CHECKPOINTS = "checkpoints.jsonl"
# What names of published reports begin with: their bytes are those that an entry names.
PUBLISHED = "published-"
# Marks that nobody sees, which stand in no name of a file.
UNSEEN = re.compile("[\\x00-\\x1f\\x7f-\\x9f\\xad\\u061c\\u180e\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff\\ufff9-\\ufffb]")
SMALL_MAX, PEM_MAX, CHECKPOINTS_MAX = 64 << 20, 1 << 12, 1 << 30
# Bytes that one byte of an archive may become, of a file above a megabyte: deflate gives 1,032 at most.
RATIO_MAX, RATIO_FROM = 200, 1 << 20
# Kinds that say who may sign what, by which rules, and whose checkpoints count: none of them is withheld.
CUSTODY = ("ledger.created", "key.added", "key.retired", "key.compromised", "policy.adopted", "log_key.rotated",
           "rulebook.adopted")
FIELDS = {"blobs": int, "bundle": int, "experiment": (str, type(None)), "origin": str, "redacted": list, "reports": list,
          "root": str, "size": int, "without": list, "withheld": int}


# Files of a bundle, and of its folders.
PLACES = re.compile(
    r"README\.md|SHA256SUMS|__main__\.py|bundle\.json|checkpoint|checkpoints\.jsonl|(entries|ledger)\.jsonl|verify\.(py|sh)"
    r"|blobs/[0-9a-f]{64}|keys/[^/]+\.pem|reports/[^/]+\.(html|json)|schema/[^/]+\.md|verify/.+\.py", re.DOTALL)


def refuse(error):
    """A folder that cannot be listed holds who knows what."""
    raise error


def file_name(name):
    """A name as the name of a file (EXPORTS.md), in full."""
    return "".join("%%%02X" % ord(one) if one in "/\\:*?\"<>|%" or ord(one) < 32 or ord(one) == 127 or (one == "." and not place)
                   else one for place, one in enumerate(name))


def digested(name):
    """The beginning of a name, without marks that nobody sees, and the digest of all of it."""
    beginning = UNSEEN.sub("", file_name(name)).encode("utf-8")[:200 - 2 - 16].decode("utf-8", "ignore")
    at = beginning.rfind("%")
    beginning = beginning[:at] if at >= 0 and len(beginning.encode("utf-8")) - len(beginning[:at].encode("utf-8")) < 3 else beginning
    return beginning + "%~" + blake3_stream(io.BytesIO(name.encode("utf-8")).read)[0].hex()[:16]


class Bundle:
    """The files of a bundle by name."""

    def __init__(self, path):
        self.path = path
        self.archive = None if os.path.isdir(path) else Archive(path)
        self.folder = Folder(path)

    @staticmethod
    def at(path):
        """The bundle at a path; None where there is something else."""
        if os.path.isdir(path):
            return Bundle(path) if os.path.lexists(os.path.join(path, CONTENTS)) else None
        if not os.path.isfile(path):
            return None
        try:
            with open(path, "rb") as file:
                is_archive = file.read(4) == b"PK\x03\x04"
        except OSError:
            return None
        return Bundle(path) if is_archive else None

    def names(self):
        """(names of its files, names of what is neither file nor folder); links are not followed."""
        if self.archive:
            return sorted(self.archive.members), []
        found, others = [], []
        for folder, folders, files in os.walk(self.path, onerror=refuse):
            for name in folders + files:
                path = os.path.join(folder, name)
                own = os.path.relpath(path, self.path)
                if os.path.islink(path) or not (os.path.isfile(path) or os.path.isdir(path)):
                    others.append(own)
                elif os.path.isfile(path):
                    found.append(own)
        return sorted(found), sorted(others)

    def has(self, name):
        """Whether it has a file of this name; a link is none, wherever it leads."""
        if self.archive:
            return name in self.archive.members
        place = self.path
        for part in name.split("/"):
            place = os.path.join(place, part)
            if os.path.islink(place):
                return False
        return os.path.isfile(place)

    def size(self, name):
        """Bytes of a file; None where there is none."""
        if not self.has(name):
            return None
        return self.archive.members[name].size if self.archive else self.folder.size(name)

    def open(self, name):
        """A file as a stream; refused where its name leads out of the bundle, or where it swells without measure."""
        if not is_plain(name):
            raise NotALedger("%s: a name outside of the bundle" % name)
        if not self.has(name):
            raise NotALedger("%s: no such file, or a link or a pipe in its place" % name)
        if self.archive is None:
            return self.folder.open(name)
        item = self.archive.members[name]
        if item.size > RATIO_FROM and item.size // max(1, item.pressed) > RATIO_MAX:
            raise NotALedger("%s: %d bytes out of %d: not read" % (name, item.size, item.pressed))
        return self.archive.open(name)

    def small(self, name, most=SMALL_MAX):
        """The bytes of a file that is no larger than it should be."""
        with self.open(name) as file:
            data = file.read(most + 1)
        if len(data) > most:
            raise NotALedger("%s: more than %d bytes" % (name, most))
        return data

    def contents(self):
        """What it says that it holds, of which there is one spelling."""
        data = self.small(CONTENTS)
        try:
            said = json.loads(data.decode("utf-8"))
            if not isinstance(said, dict) or set(said) != set(FIELDS):
                raise ValueError("expected the fields %s" % ", ".join(sorted(FIELDS)))
            for name, kind in FIELDS.items():
                value = said[name]
                texts = value if isinstance(value, list) else []
                if not isinstance(value, kind) or isinstance(value, bool) or not all(isinstance(t, str) for t in texts):
                    raise ValueError("another type of %s" % name)
                if kind is int and not 0 <= value < 2 ** 64:
                    raise ValueError("%s in 0..2^64" % name)
            if said["bundle"] != 1:
                raise ValueError("bundle format %d, expected 1" % said["bundle"])
            own = json.dumps({name: said[name] for name in FIELDS}, indent=2, ensure_ascii=False) + "\n"
            if own.encode("utf-8") != data:
                raise ValueError("another spelling than that of clover")
        except (ValueError, RecursionError) as error:
            raise NotALedger("%s: %s" % (CONTENTS, error)) from None
        return said

    def is_part(self):
        """Whether it holds a part of a log; it holds the whole one or a part, never both."""
        part, whole = self.has(PART), self.has(LINES)
        if part == whole:
            raise NotALedger("expected one of %s and %s" % (LINES, PART))
        return part

    def sums(self):
        """The list of digests: one line of each file, in the order of their names."""
        try:
            text = self.small(SUMS).decode("utf-8")
        except ValueError:
            raise NotALedger("%s: other bytes than UTF-8" % SUMS) from None
        if not text.endswith("\n"):
            raise NotALedger("%s: no newline at its end" % SUMS)
        listed, last = {}, b""
        for line in text[:-1].split("\n"):
            match = re.fullmatch("([0-9a-f]{64})  (.+)", line, re.ASCII | re.DOTALL)
            if not match or not is_plain(match.group(2)):
                raise NotALedger("%s: expected a digest, two spaces, a name" % SUMS)
            name = match.group(2)
            if name.encode("utf-8") <= last:
                raise NotALedger("%s: expected each name once, in order" % SUMS)
            listed[name], last = match.group(1), name.encode("utf-8")
        return listed

    def broken_files(self):
        """(expected, found) of files that are not as the list of digests says."""
        (names, others), listed = self.names(), self.sums()
        broken = [("files and folders alone, no links or pipes", name) for name in others]
        broken += [("only files that %s names" % SUMS, name) for name in names if name != SUMS and name not in listed]
        for name, digest in sorted(listed.items()):
            found, last = self.digest(name)
            if name in (LINES, PART) and last not in (None, b"\n"):
                broken.append(("%s: a newline at its end" % name, "none"))
            if found != digest:
                broken.append(("%s with SHA-256 %s" % (name, digest), found))
        return broken

    def digest(self, name):
        """(the SHA-256 of a file in hex or why there is none, its last byte or None where it cannot be read)."""
        if not self.has(name):
            return "no such file", None
        sha, last = hashlib.sha256(), b""
        try:
            with self.open(name) as file:
                for block in iter(lambda: file.read(1 << 20), b""):
                    sha.update(block)
                    last = block[-1:]
        except (NotALedger, OSError) as error:
            return str(error), None
        return sha.hexdigest(), last

    def disagreements(self, state, report):
        """(expected, found) where checkpoints, keys and contents do not agree with the log."""
        found = self.other_checkpoints(state) + self.other_keys(state) + self.other_contents(state, report)
        found += self.why_withheld(state, report) + self.other_blobs(state)
        return found + [("files of a bundle alone", name) for name in self.names()[0] if not has_a_place(name)]

    def reasons(self):
        """(positions, kinds) of which `bundle.json` says that entries are withheld."""
        said = [text for text in self.contents()["redacted"] if text != "blobs"]
        return {int(text) for text in said if is_position(text)}, [text for text in said if not is_position(text)]

    def not_checked(self, report):
        """What of the files beside the log nobody checks."""
        why = self.contents()["experiment"] is not None or self.reasons()[1]
        return (["why entries are withheld"] if report.withheld and why else []) + [
            "the maker's texts and programs"]

    def why_withheld(self, state, report):
        """Where entries, or their places, contradict the reasons for which others are withheld."""
        if report.withheld is None:
            return []
        (positions, kinds), experiment = self.reasons(), self.contents()["experiment"]
        found = [("no entry of kind %s, as bundle.json says" % kind, "one that is shown")
                 for kind in kinds if kind in report.kinds]
        for seq in sorted(positions - report.hidden):
            other = "it is shown" if seq < state.tree.size else "no such entry"
            found.append(("entry %d withheld, as bundle.json says" % seq, other))
        others = sorted(report.hidden - positions)
        if experiment is None and positions and not kinds and others:
            found.append(("only those entries withheld that bundle.json names", "entry %d too" % others[0]))
        if experiment is not None and not positions and not kinds and not report.shown:
            found.append(("entries of %s, as bundle.json says" % experiment, "none"))
        return found

    def other_blobs(self, state):
        """Blobs that no entry names, and what is said of those that are not there."""
        without = self.contents()["without"]
        there = {name[len("blobs/"):] for name in self.names()[0] if name.startswith("blobs/")}
        if state.blobs is None:
            count = len(there) + len(without)
            return [("no blobs, as bundle.json says", "%d blobs" % count)] if count else []
        found = [("blobs that entries name alone", "blobs/%s" % name) for name in sorted(there - state.blobs.named)]
        others = [name for name in without if name not in state.blobs.named - there]
        return found + [("blobs without a file in bundle.json, which entries name", name) for name in others[:1]]

    def other_checkpoints(self, state):
        """Lines of `checkpoints.jsonl` that are no checkpoint of this log."""
        if not self.has(CHECKPOINTS):
            return [(CHECKPOINTS, "no such file")]
        *lines, last = self.small(CHECKPOINTS, CHECKPOINTS_MAX).split(b"\n")
        found, size = [("%s: a newline at its end" % CHECKPOINTS, "none")] if last else [], -1
        for number, line in enumerate(lines, 1):
            name = "%s line %d" % (CHECKPOINTS, number)
            note = Checkpoint(name, note_of(line))
            try:
                note.read()
            except Refused:
                found.append(("%s: a signed checkpoint" % name, "another line"))
                continue
            if note.size <= size:
                found.append(("%s: a size above that of the line before" % name, "size %d" % note.size))
                continue
            size = note.size
            if size > state.tree.size:
                problem = "a size of at most %d" % state.tree.size, "size %d" % size
            elif state.tree.root(size) != note.root:
                problem = "root %s at size %d" % (b64(state.tree.root(size)), size), b64(note.root)
            elif note.origin != state.origin:
                problem = "origin %s" % state.origin, note.origin
            else:
                problem = log_key_problem(state, note)
            if problem:
                found.append(("%s: %s" % (name, problem[0]), problem[1]))
        if not lines or note_of(lines[-1]) != self.small("checkpoint"):
            found.append(("%s: the checkpoint as its last line" % CHECKPOINTS, "another, or none"))
        return found

    def other_keys(self, state):
        """Files of keys that are not those of the log."""
        keys = {"keys/%s.pem" % key_id: pem(key.public) for key_id, key in state.keys.items()}
        if state.log_keys:
            keys["keys/log.pem"] = pem(state.log_keys[-1][1][2])
        found = []
        for name, expected in sorted(keys.items()):
            if not self.has(name) or self.small(name, PEM_MAX) != expected:
                found.append(("%s with the key that the log names" % name, "another file, or none"))
        others = [name for name in self.names()[0] if name.startswith("keys/") and name not in keys]
        return found + [("keys of the log alone", name) for name in others]

    def other_contents(self, state, report):
        """What `bundle.json` says of the log and the log does not."""
        said, found = self.contents(), []
        log = {"origin": state.origin, "size": state.tree.size, "root": b64(state.tree.root(state.tree.size)),
               "withheld": report.withheld or 0}
        found += [("%s %s in bundle.json" % (name, value), said[name]) for name, value in log.items() if said[name] != value]
        if said["experiment"] is not None:
            found += [("entries of %s, as bundle.json says" % said["experiment"], "one of %s" % name)
                      for name in sorted(report.shown - {said["experiment"]})[:1]]
        names = self.names()[0]
        blobs = sum(name.startswith("blobs/") for name in names)
        if blobs != said["blobs"]:
            found.append(("%d blobs, as bundle.json says" % said["blobs"], "%d" % blobs))
        reports = [name[len("reports/"):] for name in names if name.startswith("reports/")]
        if sorted(reports) != sorted(said["reports"]):
            found.append(("the reports that bundle.json names", "%d reports" % len(reports)))
        for name in sorted(name for name in set(reports) if name.lower().startswith(PUBLISHED)):
            content = blake3_stream(io.BytesIO(self.small("reports/" + name, SMALL_MAX)).read)[0].hex()
            own = (PUBLISHED + one + ".json" for iteration, newest in report.published.items() if newest == content
                   for one in (file_name(iteration), digested(iteration)))
            if name not in own:
                found.append(("reports/%s as it was published last" % name, "other bytes, or another name"))
        known = {kind for kind, _ in KINDS} - set(CUSTODY)
        for text in said["redacted"]:
            if text != "blobs" and text not in known and not is_position(text):
                found.append(("what was left out in bundle.json: kinds, positions, or blobs", text))
                break
        is_cut = said["experiment"] is not None or any(text != "blobs" for text in said["redacted"])
        if is_cut != (report.withheld is not None):
            found.append(("%s in bundle.json" % ("a whole log" if is_cut else "a part"), "the other"))
        return found


def is_position(text):
    """Whether a text is a position in a log, in its one spelling."""
    return bool(re.fullmatch("0|[1-9][0-9]{0,19}", text, re.ASCII)) and int(text) < 2 ** 64


def has_a_place(name):
    """Whether a bundle has a place for a file of this name."""
    return bool(PLACES.fullmatch(name))


def pem(public):
    """A public key as PEM (RFC 7468)."""
    der = base64.b64encode(SPKI + public).decode("ascii")
    return ("-----BEGIN PUBLIC KEY-----\n%s\n-----END PUBLIC KEY-----\n" % der).encode("ascii")


def note_of(line):
    """The note that a line of checkpoints holds; nothing where it has another spelling."""
    try:
        note = json.loads(line.decode("utf-8"))["note"]
        if json.dumps({"note": note}, separators=(",", ":"), ensure_ascii=False).encode("utf-8") == line:
            return note.encode("utf-8")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass
    return b""
