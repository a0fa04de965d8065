"""A bundle (`schema/EXPORTS.md`): a folder or a ZIP archive, of which nothing is unpacked."""

import hashlib
import json
import os
import re
import zipfile
from collections import Counter

from formats.limits import NotALedger
from audit.blobs import Folder

LINES, PART, CONTENTS, SUMS = "ledger.jsonl", "entries.jsonl", "bundle.json", "SHA256SUMS"
SMALL_MAX = 64 << 20
# Bytes that one byte of an archive may become, of a file above a megabyte: deflate gives 1,032 at most.
RATIO_MAX, RATIO_FROM = 200, 1 << 20


class Bundle:
    """The files of a bundle by name."""

    def __init__(self, path):
        self.path = path
        self.archive = None if os.path.isdir(path) else zipfile.ZipFile(path)
        self.folder = Folder(path)

    @staticmethod
    def at(path):
        """The bundle at a path; None where there is something else."""
        if os.path.isdir(path):
            return Bundle(path) if os.path.isfile(os.path.join(path, CONTENTS)) else None
        try:
            with open(path, "rb") as file:
                is_archive = file.read(4) == b"PK\x03\x04"
        except OSError:
            return None
        if not is_archive:
            return None
        try:
            return Bundle(path)
        except zipfile.BadZipFile as error:
            raise NotALedger("%s: %s" % (path, error)) from None

    def names(self):
        """Names of its files, each as often as it is there."""
        if self.archive:
            return [item.filename for item in self.archive.infolist() if not item.is_dir()]
        found = []
        for folder, _, files in os.walk(self.path):
            found += [os.path.relpath(os.path.join(folder, name), self.path) for name in files]
        return found

    def size(self, name):
        """Bytes of a file; None where there is none."""
        if self.archive is None:
            return self.folder.size(name)
        return self.archive.getinfo(name).file_size if name in self.archive.NameToInfo else None

    def open(self, name):
        """A file as a stream; refused where its name leads out of the bundle, or where it swells without measure."""
        if name.startswith("/") or any(part in ("", ".", "..") for part in name.split("/")):
            raise NotALedger("%s: a name outside of the bundle" % name)
        if self.archive is None:
            return self.folder.open(name)
        item = self.archive.getinfo(name)
        if item.file_size > RATIO_FROM and item.file_size // max(1, item.compress_size) > RATIO_MAX:
            raise NotALedger("%s: %d bytes out of %d: not read" % (name, item.file_size, item.compress_size))
        return self.archive.open(item)

    def small(self, name):
        """The bytes of a file that is no larger than it should be."""
        if self.size(name) is None:
            raise NotALedger("%s: no %s in it" % (self.path, name))
        with self.open(name) as file:
            data = file.read(SMALL_MAX + 1)
        if len(data) > SMALL_MAX:
            raise NotALedger("%s: more than %d bytes" % (name, SMALL_MAX))
        return data

    def contents(self):
        """What it says that it holds."""
        try:
            said = json.loads(self.small(CONTENTS).decode("utf-8"))
            redacted = said["redacted"]
            if said["bundle"] != 1 or not isinstance(redacted, list):
                raise ValueError("another format of bundles")
        except (ValueError, KeyError, TypeError) as error:
            raise NotALedger("%s: %s" % (CONTENTS, error)) from None
        return redacted

    def is_part(self):
        """Whether it holds a part of a log; it holds the whole one or a part, never both."""
        part, whole = self.size(PART) is not None, self.size(LINES) is not None
        if part == whole:
            raise NotALedger("expected one of %s and %s" % (LINES, PART))
        return part

    def broken_files(self):
        """(expected, found) of files that are not as the list of digests says."""
        names, listed, broken = self.names(), {}, []
        for line in self.small(SUMS).decode("utf-8", "replace").splitlines():
            match = re.fullmatch("([0-9a-f]{64})  (.+)", line)
            if not match:
                raise NotALedger("%s: expected a digest, two spaces, a name" % SUMS)
            listed[match.group(2)] = match.group(1)
        for name, count in sorted(Counter(names).items()):
            if count > 1:
                broken.append(("one file of each name", name))
            if name != SUMS and name not in listed:
                broken.append(("only files that %s names" % SUMS, name))
        for name, digest in sorted(listed.items()):
            found = self.digest(name)
            if found != digest:
                broken.append(("%s with SHA-256 %s" % (name, digest), found))
        return broken

    def digest(self, name):
        """The SHA-256 of a file in hex, or why there is none."""
        if self.size(name) is None:
            return "no such file"
        sha = hashlib.sha256()
        try:
            with self.open(name) as file:
                for block in iter(lambda: file.read(1 << 20), b""):
                    sha.update(block)
        except (NotALedger, OSError, zipfile.BadZipFile) as error:
            return str(error)
        return sha.hexdigest()
