"""Reads documents, one JSON string a line, and says of each what `audits/verify` makes of it.

    python3 documents.py AUDITS_VERIFY < documents.jsonl

One line each: "unsure", "refused", or canonical JSON of [family, id, diff] over the leaves in the first line.
"""

import json
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])

from formats.canonical import encode
from formats.limits import Refused
from formats.plain_yaml import Unsure, read_yaml
from rules.patches import diff_of_edits, patch_document

leaves = {leaf["path"]: leaf["value"] for leaf in json.loads(sys.stdin.readline())}
for line in sys.stdin:
    try:
        family, name, _, _, edits = patch_document(read_yaml(json.loads(line)))
        print(encode([family, name, diff_of_edits(leaves, edits)[0]]))
    except Unsure:
        print("unsure")
    except Refused:
        print("refused")
