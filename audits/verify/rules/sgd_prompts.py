"""The prompts of a run: the first, and what each step left."""

import json

from rules import sgd_patch


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
