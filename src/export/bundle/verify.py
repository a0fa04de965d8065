#!/usr/bin/env python3
"""Verify the bundle that this file stands in, with nothing but the Python standard library (3.9 or newer).

    python3 verify.py [OPTIONS]    the folder or archive that this file is in
    python3 verify.py BUNDLE …     another one, with the options of `verify/__main__.py`

Who fears that the maker of a bundle changed this program takes `audits/verify` from Clover itself: it reads bundles too.
"""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(HERE, "verify"))

from audit.command_line import main

VALUED = ("--against", "--ask", "--log-key")


def names_a_bundle(words):
    """Whether a word is no option and no option's value."""
    before = ""
    for word in words:
        if not word.startswith("-") and before not in VALUED:
            return True
        before = word
    return False


if __name__ == "__main__":
    given = sys.argv[1:]
    sys.exit(main(given if names_a_bundle(given) else [HERE] + given))
