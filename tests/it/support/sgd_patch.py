"""Judge many patches in one process: sgd_patch.py AUDITS_VERIFY CASES. A line of JSON is printed for each case."""

import json
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])

from rules import sgd_patch

with open(sys.argv[2], encoding="utf-8") as cases:
    for line in cases.read().split("\n"):
        if line:
            violations, prompt = sgd_patch.judge(**json.loads(line))
            print(json.dumps([violations, prompt and sgd_patch.digest(prompt)]))
