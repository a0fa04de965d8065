"""Run the verifier over many argument lists in one process: differential.py AUDITS_VERIFY LIST.

Each line of LIST is a JSON list of arguments. One line of JSON is printed for each: the report, or
{"exit": status} where the verifier gave up; status 1 is an error of its own.
"""

import contextlib
import functools
import io
import json
import sys
import traceback

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])

from audit import blobs, command_line
from formats.limits import NotALedger
from history import state

# Tables of multiples are costly to make and depend on nothing but the key: one set serves all runs. So does the answer
# to a signature that an earlier run had too: ledgers that were changed in one place share the events before it, and the
# blobs that those name.
tables = state.Ed25519()
tables.verify = functools.lru_cache(maxsize=None)(tables.verify)
state.Ed25519 = lambda: tables

digest_of = blobs.blake3_stream
known = functools.lru_cache(maxsize=None)(lambda text: digest_of(io.BytesIO(text).read))
blobs.blake3_stream = lambda read: known(b"".join(iter(lambda: read(1 << 16), b"")))

with open(sys.argv[2], encoding="utf-8") as arguments:
    for line in arguments:
        out = io.StringIO()
        try:
            with contextlib.redirect_stdout(out):
                command_line.run(json.loads(line) + ["--json"])
            print(out.getvalue().strip())
        except (NotALedger, OSError):
            print(json.dumps({"exit": 4}))
        except Exception:
            traceback.print_exc()
            print(json.dumps({"exit": 1}))
