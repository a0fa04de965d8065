"""Blobs beside the ledger: in a folder, or in a bundle."""

import os

from formats.blake3 import blake3_stream
from formats.limits import NotALedger


class Folder:
    """Files of a folder."""

    def __init__(self, folder):
        self.folder = folder

    def size(self, name):
        """Bytes of a file; None where there is none."""
        path = os.path.join(self.folder, name)
        return os.path.getsize(path) if os.path.isfile(path) else None

    def open(self, name):
        """The bytes of a file, as a stream."""
        return open(os.path.join(self.folder, name), "rb")


class Blobs:
    """Blobs of a folder or a bundle; each is hashed once however often it is referenced."""

    def __init__(self, files, folder=""):
        self.files, self.folder, self.known, self.named = files, folder, {}, set()

    def problem(self, reference):
        name = reference["blake3"]
        self.named.add(name)
        place = self.folder + name
        try:
            size = self.files.size(place)
            if size is None:
                return "a blob %s" % name, "no such file"
            if size != reference["bytes"]:
                return "%d bytes in blob %s" % (reference["bytes"], name), "%d bytes" % size
            if name not in self.known:
                with self.files.open(place) as file:
                    self.known[name] = blake3_stream(file.read)[0].hex()
        except (NotALedger, OSError) as error:
            return "a readable blob %s" % name, str(error)
        return None if self.known[name] == name else ("bytes with BLAKE3 %s" % name, self.known[name])
