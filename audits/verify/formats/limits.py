"""The limits of the format, and the two exceptions of this program: `Refused` and `NotALedger`.

`show` makes anything that was found in the input fit to print.
"""

PAYLOAD_TYPE = "application/vnd.clover.event+json"
LINE_MAX = 65_535                     # bytes of one entry line, newline not counted
BODY_MAX = 32 * 1024                  # bytes of one body
REFS_MAX = 256                        # events that one event may stand on
DEPTH_MAX = 127                       # nested arrays and objects
SAFE_INTEGER = 2 ** 53 - 1
ONE, MANY, MICRO_MAX = 10 ** 6, SAFE_INTEGER, 10 ** 12      # one in millionths, and the most of two kinds of numbers
SKEW = 300 * 1_000_000                # microseconds an author's clock may be off
CLOCK_AHEAD = 400 * 86_400 * 1_000_000  # microseconds; a step of the ledger's clock by more is named in a note
NOTE_MAX = 65_536                     # bytes of one note
SIGNATURES_MAX = 64                   # signature lines of one note
FINDINGS_SHOWN = 100                  # findings printed as text
SPKI = bytes.fromhex("302a300506032b6570032100")  # DER prefix of an Ed25519 public key


class Refused(Exception):
    """What was expected and what was found in its place."""

    def __init__(self, expected, found):
        super().__init__(expected, found)
        self.expected, self.found = expected, found


class NotALedger(Exception):
    """The input cannot be read as what it was given as (exit 4)."""


def show(value):
    """A short printable ASCII form of anything found in the input; no byte of it reaches a terminal as is."""
    text = value if isinstance(value, str) else value.hex() if isinstance(value, bytes) else repr(value)
    text = "".join(c if " " <= c <= "~" else c.encode("unicode_escape").decode("ascii") for c in text[:200])
    return text if len(text) <= 160 else text[:157] + "..."
