"""Arguments, files and exit codes."""

import argparse
import os
import sys

from formats.limits import NOTE_MAX, NotALedger, show
from formats.fields import parse_vkey
from history.state import State
from audit.blobs import Blobs, Folder
from audit.bundle import Bundle, LINES, PART
from audit.walk import walk, walk_part
from audit.checkpoints import Checkpoint, judge_checkpoint
from audit.questions import QUESTIONS, Questions
from audit.report import Report, as_json, as_text, conclude


def arguments(argv):
    """Options as they were given; what is wrong with them ends the program with status 2."""
    parser = argparse.ArgumentParser(prog="verify", allow_abbrev=False, description="Verify a Clover ledger.")
    parser.add_argument("ledger", metavar="LEDGER", help="ledger.jsonl, the folder of an export, or a bundle")
    parser.add_argument("--checkpoint", metavar="FILE",
                        help="the checkpoint that came with the ledger; of a folder, the one in it")
    parser.add_argument("--against", metavar="CHECKPOINT", help="a checkpoint kept elsewhere")
    parser.add_argument("--log-key", metavar="VKEY", help="the log's verifier key, NAME+HASH+BASE64")
    parser.add_argument("--blobs", metavar="DIR", help="folder of blobs, each named by its BLAKE3 digest")
    parser.add_argument("--ask", metavar="QUESTION", choices=QUESTIONS, action="append", default=[],
                        help="answer a question beside the verdict: %s" % ", ".join(QUESTIONS))
    parser.add_argument("--summary", action="store_true", help="the verdict and all answers, on one page")
    parser.add_argument("--full", action="store_true", help="with --summary: every row of every answer")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(argv)
    options.ask = QUESTIONS if options.summary else options.ask
    if options.log_key is not None:
        options.log_key = parse_vkey(options.log_key)
        if options.log_key is None:
            parser.error("--log-key: expected NAME+HASH+BASE64 of an Ed25519 key")
    options.bundle = Bundle.at(options.ledger)
    if options.bundle:
        if options.checkpoint or options.blobs:
            parser.error("--checkpoint and --blobs do not go with a bundle: it carries its own")
        options.is_part = options.bundle.is_part()
        if options.is_part and options.ask:
            parser.error("a part of a log answers no questions: they take the whole of it")
        options.checkpoint, options.blobs = "checkpoint", "blobs" not in options.bundle.contents()["redacted"]
        return options
    if os.path.isdir(options.ledger):
        beside = os.path.join(options.ledger, "checkpoint")
        if options.checkpoint is None and os.path.isfile(beside):
            options.checkpoint = beside
        options.ledger = os.path.join(options.ledger, "ledger.jsonl")
    if options.blobs is not None and not os.path.isdir(options.blobs):
        raise FileNotFoundError(2, "no such folder", options.blobs)
    return options


def run(argv):
    """Verify as the arguments say and print the report; the exit status."""
    options = arguments(argv)
    checkpoints, bundle = [], options.bundle
    for flag, path in (("--checkpoint", options.checkpoint), ("--against", options.against)):
        if path is not None:
            is_own = bundle is not None and flag == "--checkpoint"
            with bundle.open(path) if is_own else open(path, "rb") as file:
                checkpoints.append(Checkpoint(flag, file.read(NOTE_MAX + 1)))
    report, questions = Report(), Questions() if options.ask else None
    if bundle:
        state = State(Blobs(bundle, "blobs/") if options.blobs else None)
        with bundle.open(PART if options.is_part else LINES) as file:
            if options.is_part:
                walk_part(file, state, report)
            else:
                walk(file, state, report, questions)
        for expected, found in bundle.broken_files() + bundle.disagreements(state, report):
            report.add(state.tree.size, "bundle", expected, found)
    else:
        state = State(Blobs(Folder(options.blobs)) if options.blobs else None)
        with open(options.ledger, "rb") as file:
            walk(file, state, report, questions)
    for checkpoint in checkpoints:
        judge_checkpoint(state, report, checkpoint)
    conclude(state, report, options, checkpoints)
    report.not_checked += bundle.not_checked(report) if bundle else []
    answers = questions.answers(state, options.ask) if questions else {}
    page = options.summary and not options.full
    said = as_json(state, report, answers) if options.json else as_text(state, report, answers, page)
    sys.stdout.write(said + "\n")
    return 3 if report.findings else 0


def main(argv):
    """`run`, with files that are missing or no ledger told apart."""
    sys.stdout.reconfigure(encoding="utf-8", errors="replace")
    try:
        return run(argv)
    except FileNotFoundError as error:
        problem, code = "%s: no such file or folder" % error.filename, 5
    except (NotALedger, OSError) as error:
        problem, code = str(error), 4
    sys.stderr.write("verify: %s\n" % show(problem))
    return code
