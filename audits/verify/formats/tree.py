"""SHA-256, and the Merkle tree of RFC 6962 whose leaves are the lines of a ledger."""

import hashlib


def sha256(*parts):
    """SHA-256 of some parts, one after the other."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.digest()


class Tree:
    """RFC 6962 tree that keeps its frontier, and the root at every size because a later `seen` may name it."""

    def __init__(self):
        self.size, self.frontier, self.roots = 0, [], bytearray(hashlib.sha256().digest())

    def append(self, leaf_hash):
        self.size += 1
        node, size = leaf_hash, self.size
        while not size & 1:                       # each trailing zero bit of the size merges two equal subtrees
            node = sha256(b"\x01", self.frontier.pop(), node)
            size >>= 1
        self.frontier.append(node)
        root = self.frontier[-1]
        for left in reversed(self.frontier[:-1]):
            root = sha256(b"\x01", left, root)
        self.roots += root

    def root(self, size):
        return bytes(self.roots[32 * size:32 * size + 32])
