"""The prompts of a run: the first, and what each step left; and the constants that it is held to."""

import json

from formats.canonical import encode
from formats.tree import sha256
from rules import sgd_lexicon, sgd_patch

STEPS_MAX, BATCH_MAX, REPEATS_MAX = 200, 300, 9


def read(text):
    try:
        return json.loads(text)
    except ValueError:
        return None


def prompts(run):
    """Every prompt of a run by its digest: prompt 0, and what each step left."""
    return dict(prompts_in_order(run))


def readable_prompts(run):
    """The same, as far as a run that may be broken gives them: what comes after has findings of its own."""
    found = {}
    try:
        for digest, prompt in prompts_in_order(run):
            found[digest] = prompt
    except (AttributeError, IndexError, KeyError, RecursionError, TypeError, ValueError, sgd_patch.Fault):
        pass
    return found


def prompts_in_order(run):
    """Prompt 0, then what each step left, each after its digest."""
    found = {run.data["prompt_digest"]: read(run.data["prompt"])}
    yield from list(found.items())
    for step in run.steps:
        if step.committed and "attempt" in step.committed:
            proposal = read(step.proposed[step.committed["attempt"]]["patch"])
            patch = proposal["patch"]
            parent = found[patch["parent"]]
            change, hunks = sgd_patch.edit_of(patch)
            old = next((of["text"] for of in parent["sections"] if of["section_id"] == patch["section"]), "")
            after = sgd_patch.changed(parent["sections"], patch, change, sgd_patch.apply_diff(hunks, old), 600)
            following = dict(parent, parent_digest=patch["parent"], sections=after, version=parent["version"] + 1)
            found[sgd_patch.digest(following)] = following
            yield sgd_patch.digest(following), following


def terms_problem(terms):
    for name, least, most in (("repeats", 1, REPEATS_MAX), ("steps", 1, STEPS_MAX), ("batch", 3, BATCH_MAX),
                              ("warmup", 0, terms["steps"]), ("extra", 0, STEPS_MAX)):
        if not least <= terms[name] <= most:
            return "%s from %d to %d" % (name, least, most), str(terms[name])
    if terms["batch"] % 3:
        return "a batch of three equal strata", str(terms["batch"])
    if terms["steps"] <= terms["warmup"] or not 0 < terms["lr_min_micro"]:
        return "a schedule of more steps than warm-up, with rates above 0", "another"
    if not 0 <= terms["lr_min_micro"] <= terms["lr_max_micro"] <= 10 ** 6:
        return "learning rates from 0 to 1, lowest first", "others"
    if not 0 <= terms["tau_micro"] <= 10 ** 6:
        return "tau from 0 to 1", str(terms["tau_micro"])
    if not all(0 <= terms[name + "_micro"] <= 10 ** 8 for name in ("alpha", "beta", "gamma", "eta", "zeta")):
        return "weights from 0 to 100", "another"
    if not (terms["beta_micro"] <= terms["alpha_micro"] and terms["alpha_micro"] > 0):
        return "a ranking that weighs no more than the distance", "another"
    return None


def prompt_problem(data):
    prompt = read(data["prompt"])
    if not isinstance(prompt, dict) or encode(prompt) != data["prompt"] or not sgd_patch.is_prompt(prompt):
        return "a prompt as canonical JSON", "another form"
    if sgd_patch.digest(prompt) != data["prompt_digest"]:
        return "the digest of the prompt", data["prompt_digest"]
    if prompt["version"] != 0:
        return "version 0", str(prompt["version"])
    if sha256(sgd_lexicon.TEXT.encode("utf-8")).hex() != data["lexicon"]:
        return "the lexicon of the program", data["lexicon"]
    return None
