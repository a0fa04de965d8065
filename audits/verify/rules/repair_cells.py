"""Plans of repairs in sixteen cells: their runs are opened in one order, on the same tasks in every cell (`schema/REPAIR.md`)."""

CELLS, TASKS_MAX, STRUCTURE, EXECUTOR, OPTIMIZER, OUTER = 16, 500, 1, 2, 4, 8
LEAST = ("terms", "context_digest", "executor", "optimizer")
KEPT = {"verifier": "verifier_digest", "program": "program_digest"}
FACTORS = ((STRUCTURE, "meta_digest"), (EXECUTOR, "executor_model"), (OPTIMIZER, "optimizer_model"))


def number_of(text, most):
    """A number from 1 to `most` in its shortest form, less one; None for another text."""
    if not text.isascii() or not text.isdigit() or text[0] == "0" or len(text) > 4:
        return None
    return int(text) - 1 if int(text) <= most else None


def place_of(name):
    """The plan that a name says, and how many of its runs are opened before; None where it says none."""
    rest, dash, cell = name.rpartition("-c")
    plan, other, task = rest.rpartition("-t")
    if not dash or not other or not plan:
        return None, None
    cell, task = number_of(cell, CELLS), number_of(task, TASKS_MAX)
    return (None, None) if cell is None or task is None else (plan, task * CELLS + cell)


def name_of(plan, number):
    return "%s-t%d-c%d" % (plan, number // CELLS + 1, number % CELLS + 1)


def plan_of(state, name):
    """The plan that a run is of, and how many of its runs are opened before."""
    said, number = place_of(name)
    plan = state.crossed_plans.get(said)
    known = plan is not None and number < plan.data["tasks"] * CELLS
    return (plan, number) if known else (None, None)


def cell_of(cell):
    def strength(bit):
        return "strong" if cell & bit else "weak"
    return {"edits": "structure" if cell & STRUCTURE else "prompt", "executor": strength(EXECUTOR),
            "optimizer": strength(OPTIMIZER), "outer": bool(cell & OUTER)}


def started_problem(state, data):
    """A run of a plan is that of its place, and differs from those before in nothing but what the cells cross."""
    plan, number = plan_of(state, data["run"])
    if plan is None:
        return None
    name, cell = plan.data["plan"], number % CELLS
    if data["cell"] != cell_of(cell):
        return "cell %r" % cell_of(cell), "%r" % data["cell"]
    if number == 0:
        return None
    if name_of(name, number - 1) not in state.repairs:
        return "run %d of %s opened before" % (number, name), "none"
    problem = alike_problem(state, plan, number, data)
    if problem:
        return problem
    if cell:
        other = state.repairs.get(name_of(name, number - cell))
        same = other is not None and other.data["items"] == data["items"]
        return None if same else ("the items of %s" % name_of(name, number - cell), "others")
    own = {item["input"] for item in data["items"]}
    for before in range(0, number, CELLS):
        other = state.repairs.get(name_of(name, before))
        if other is not None and any(item["input"] in own for item in other.data["items"]):
            return "items that no other task of the plan has", "those of %s" % name_of(name, before)
    return None


def alike_problem(state, plan, number, data):
    update, name = state.updates[plan.data["update"]].data, plan.data["plan"]

    def templates(of):
        return [one for one in of["templates"] if update["target"] != "library" or one != update["new_digest"]]

    first = state.repairs.get(name_of(name, 0))
    if first is None:
        return "the first runs of the plan", "none"
    first = first.data
    parts = LEAST + tuple(part for target, part in KEPT.items() if target != update["target"])
    for part in parts:
        if first[part] != data[part]:
            return "the %s of %s" % (part, first["run"]), "another"
    if templates(first) != templates(data):
        return "the templates of %s" % first["run"], "others"
    for factor, part in FACTORS:
        if number % CELLS & factor == number:
            continue                                  # the first run with this value: later ones are held to it
        other = state.repairs.get(name_of(name, number % CELLS & factor))
        if other is None:
            return "the first runs of the plan", "none"
        if other.data[part] != data[part]:
            return "the %s of %s" % (part, other.data["run"]), "another"
    return None


def begun_problem(state, run):
    """No run of a plan is executed before all of them are opened."""
    plan, _ = plan_of(state, run.data["run"])
    if plan is None:
        return None
    last = name_of(plan.data["plan"], plan.data["tasks"] * CELLS - 1)
    if last in state.repairs:
        return None
    return "all runs of %s opened before one is executed" % plan.data["plan"], "%s is not opened" % last
