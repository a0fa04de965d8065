"""A folder of blobs beside the ledger."""

import os

from formats.blake3 import blake3_stream


class Blobs:
    """A folder of blobs; each is hashed once however often it is referenced."""

    def __init__(self, folder):
        self.folder, self.known = folder, {}

    def problem(self, reference):
        name = reference["blake3"]
        path = os.path.join(self.folder, name)
        try:
            if not os.path.isfile(path):
                return "a blob %s" % name, "no such file"
            if os.path.getsize(path) != reference["bytes"]:
                return "%d bytes in blob %s" % (reference["bytes"], name), "%d bytes" % os.path.getsize(path)
            if name not in self.known:
                with open(path, "rb") as file:
                    self.known[name] = blake3_stream(file.read)[0].hex()
        except OSError as error:
            return "a readable blob %s" % name, str(error.strerror)
        return None if self.known[name] == name else ("bytes with BLAKE3 %s" % name, self.known[name])
