"""Reads documents, one JSON string a line, and says of each what `audits/verify.py` makes of it.

    python3 documents.py VERIFY.py < documents.jsonl

One line each: "unsure", "refused", or canonical JSON of [family, id, diff] over the leaves in the first line.
"""

import importlib.util
import json
import sys

spec = importlib.util.spec_from_file_location("verify", sys.argv[1])
verify = importlib.util.module_from_spec(spec)
sys.modules["verify"] = verify
spec.loader.exec_module(verify)

leaves = {leaf["path"]: leaf["value"] for leaf in json.loads(sys.stdin.readline())}
for line in sys.stdin:
    try:
        family, name, _, _, edits = verify.patch_document(verify.read_yaml(json.loads(line)))
        print(verify.encode([family, name, verify.patched(leaves, edits)[0]]))
    except verify.Unsure:
        print("unsure")
    except verify.Refused:
        print("refused")
