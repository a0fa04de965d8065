"""One line of a ledger: the envelope, then the body that its author signed (`schema/ENVELOPE.md`)."""

from formats.limits import BODY_MAX, PAYLOAD_TYPE, REFS_MAX, Refused
from formats.tree import sha256
from formats.canonical import encode, parse_canonical
from formats.fields import (
    Path, decode_base64, encoded, hex64, ident, integer, listing, micros, nullable, one_of, record, require,
    string, timestamp)
from events.kinds import KINDS

ENTRY = record(
    envelope=record(payload=encoded(), payloadType=one_of(PAYLOAD_TYPE),
                    signatures=listing(record(keyid=hex64, sig=encoded(64)))),
    recorded_at=timestamp, seq=integer())
HEADER = record(at=timestamp, author=hex64, author_seq=integer(), data=lambda value, path: require(
    isinstance(value, dict), path, "an object", value), experiment=nullable(ident), kind=string, ledger=string,
    refs=listing(hex64, REFS_MAX), seen=nullable(record(root=encoded(32), size=integer())),
    v=integer(0, 2 ** 32 - 1))


def natural_key_of(kind, *parts):
    """The natural key of an event of a kind that these parts name."""
    return sha256(b"clover/natural-key/v1\0", encode([kind, *parts]).encode("utf-8"))


class Entry:
    """One line, read as far as it can be; `decoded` says that its data follows the schema of its kind."""

    decoded = False

    def __init__(self, position, line):
        self.position, self.newer = position, []      # ids that Unicode 13.0 does not cover
        value = parse_canonical(line)
        ENTRY(value, Path("entry", self.newer))
        signatures = value["envelope"]["signatures"]
        require(len(signatures) == 1, "entry.envelope.signatures", "one signature", len(signatures))
        self.keyid, self.signature = signatures[0]["keyid"], decode_base64(signatures[0]["sig"])
        self.payload = decode_base64(value["envelope"]["payload"])
        self.seq, self.recorded_text = value["seq"], value["recorded_at"]
        self.recorded_at = micros(self.recorded_text)

    def read_body(self):
        if len(self.payload) > BODY_MAX:
            raise Refused("a body of at most %d bytes" % BODY_MAX, "%d bytes" % len(self.payload))
        body = parse_canonical(self.payload)
        HEADER(body, Path("body", self.newer))
        self.id = sha256(self.payload)
        self.kind, self.v, self.ledger, self.data = body["kind"], body["v"], body["ledger"], body["data"]
        self.author, self.author_seq, self.refs = body["author"], body["author_seq"], body["refs"]
        self.experiment, self.at_text, self.at = body["experiment"], body["at"], micros(body["at"])
        seen = body["seen"]
        self.seen = seen and (seen["size"], decode_base64(seen["root"]))
        self.spec = KINDS.get((self.kind, self.v))

    def creates(self):
        return self.decoded and self.kind == "ledger.created" and self.position == 0

    def natural_key(self):
        """32 bytes that no later event of the kind may share, or None."""
        if self.spec.natural is None:
            return None
        parts = [self.experiment if name == "@" else self.data.get(name) for name in self.spec.natural]
        return natural_key_of(self.kind, *parts)

    def blobs(self):
        """Every reference to a blob in the data, wherever it stands."""
        found, waiting = [], [self.data]
        while waiting:
            value = waiting.pop()
            if isinstance(value, dict):
                if set(value) == {"blake3", "bytes", "media"}:
                    found.append(value)
                else:
                    waiting.extend(value.values())
            elif isinstance(value, list):
                waiting.extend(value)
        return found
