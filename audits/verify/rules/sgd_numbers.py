"""Numbers of runs that lower the loss of a judge's prompt, computed again from scores and targets (`schema/SGD.md`)."""

import math
import struct

from formats.fields import decode_base64
from formats.tree import sha256

NEAR = 1e-9
GAP_MIN, GAP_SLACK, TEMPERATURE, BINS = 0.1, 1e-9, 0.1, 10
CUTS = (0.5,)


def is_near(a, b):
    """Whether two numbers, or what is absent of both, are equal within 1e-9 relative."""
    if a is None or b is None:
        return a is b
    return abs(a - b) <= NEAR * max(1.0, abs(a), abs(b))


def total(values):
    """A sum in four lanes, as the program sums."""
    lanes = [0.0] * 4
    for at, value in enumerate(values):
        lanes[at % 4] += value
    return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3])


def mean(values):
    return total(values) / len(values)


def quantile(values, p):
    """Hyndman and Fan's type 7."""
    ordered = sorted(values)
    place = p * (len(ordered) - 1)
    below = min(int(math.floor(place)), len(ordered) - 1)
    low, high, share = ordered[below], ordered[min(below + 1, len(ordered) - 1)], place - below
    return low + (high - low) * share if share < 0.5 else high - (high - low) * (1.0 - share)


def size(distance, residual):
    residual = abs(residual)
    if distance == "mae":
        return residual
    return residual * residual / 2.0 if residual <= 0.1 else 0.1 * (residual - 0.05)


def variance(values):
    if len(values) < 2:
        return 0.0
    middle = mean(values)
    return total([(of - middle) * (of - middle) for of in values]) / (len(values) - 1)


def deviation(values):
    return math.sqrt(variance(values)) if len(set(values)) > 1 else None


def entropy(values):
    counts = [0] * BINS
    for value in values:
        counts[min(int(value * BINS), BINS - 1)] += 1
    return -sum(n / len(values) * math.log(n / len(values)) for n in counts if n) / math.log(BINS) + 0.0


def softplus(u):
    return max(u, 0.0) + math.log1p(math.exp(-abs(u)))


def ranks(values):
    order = sorted(values)
    first = {}
    last = {}
    for at, value in enumerate(order):
        first.setdefault(value, at)
        last[value] = at
    return [(first[value] + last[value]) / 2 for value in values]


def spearman(x, y):
    a, b = ranks(x), ranks(y)
    middle = (len(x) - 1) / 2
    a, b = [of - middle for of in a], [of - middle for of in b]
    xx, yy = sum(of * of for of in a), sum(of * of for of in b)
    return None if not xx or not yy else sum(p * q for p, q in zip(a, b)) / math.sqrt(xx * yy)


def tau_b(x, y):
    concordant = discordant = tied_x = tied_y = 0
    for i in range(len(x)):
        for j in range(i):
            a, b = (x[i] > x[j]) - (x[i] < x[j]), (y[i] > y[j]) - (y[i] < y[j])
            concordant += a * b > 0
            discordant += a * b < 0
            tied_x += a == 0
            tied_y += b == 0
    pairs = len(x) * (len(x) - 1) // 2
    scale = math.sqrt((pairs - tied_x) * (pairs - tied_y))
    return (concordant - discordant) / scale if scale else None


def readable(rows, scores):
    """(targets, means, variances, counts, places) of the rows that have a score."""
    found = [(row["target_micro"] / 1e6, [of / 1e6 for of in given], at)
             for at, (row, given) in enumerate(zip(rows, scores)) if given]
    return ([of[0] for of in found], [mean(of[1]) for of in found], [variance(of[1]) for of in found],
            [len(of[1]) for of in found], [of[2] for of in found])


def selfvar(variances, counts):
    repeated = [of for of, count in zip(variances, counts) if count > 1]
    return mean(repeated) if repeated else 0.0


def c_abs(run):
    terms = run.data["terms"]
    targets = [row["target_micro"] / 1e6 for row in run.rows["train"]]
    middle = quantile(targets, 0.5)
    return mean([size(terms["distance"], of - middle) for of in targets])


def loss(run, rows, scores):
    """The loss of rows with their scores, by its members; None where it has none."""
    terms = run.data["terms"]
    targets, means, variances, counts, _ = readable(rows, scores)
    if len(means) < 2 or not c_abs(run):
        return None
    found = dict(abs=mean([size(terms["distance"], z - h) for z, h in zip(means, targets)]) / c_abs(run))
    low, high = quantile(targets, 0.25), quantile(targets, 0.75)
    pairs = [(zi, zj, hi - hj) for zi, hi in zip(means, targets) if hi >= high
             for zj, hj in zip(means, targets) if hj <= low and hi - hj >= GAP_MIN - GAP_SLACK]
    found["pairs"] = len(pairs)
    if pairs:
        weight = sum(w for _, _, w in pairs)
        form = {"logistic": lambda d, w: w * softplus(-d / TEMPERATURE) / math.log(2),
                "hinge": lambda d, w: w * max(0.0, 1 - d / w)}[terms["ranking"]]
        found["rank"] = sum(form(a - b, w) for a, b, w in pairs) / weight
        found["concordance"] = sum(w * ((a > b) + 0.5 * (a == b)) for a, b, w in pairs) / weight
    spread = deviation(targets)
    if spread is not None:
        found["sd_ratio"] = (deviation(means) or 0.0) / spread
    found["entropy"], reference = entropy(means), entropy(targets)
    narrow = max(0.0, 1 - found.get("sd_ratio", 0.8) / 0.8) if spread is not None else 0.0
    poor = max(0.0, 0.7 - found["entropy"] / reference) if reference > 0 else 0.0
    found["contraction"] = narrow * narrow + poor * poor
    found["selfvar"] = selfvar(variances, counts)
    asked = len(rows) * terms["repeats"]
    found["failures"] = (asked - sum(map(len, scores))) / asked
    base = run.base_loss["selfvar"] if run.base_loss else found["selfvar"]
    instability = max(0.0, found["selfvar"] / max(base, 1e-4) - 1)
    weights = [terms[name + "_micro"] / 1e6 for name in ("alpha", "beta", "gamma", "eta", "zeta")]
    parts = (found["abs"], found.get("rank", 0.0), found["contraction"], instability, found["failures"])
    found["loss"] = sum(w * part for w, part in zip(weights, parts))
    for name, of in (("tau_b", tau_b(means, targets)), ("spearman", spearman(means, targets))):
        if of is not None:
            found[name] = of
    return found


def differs(again, said):
    """The first member of a loss that is not what is computed again: (expected, found)."""
    if again is None:
        return "numbers of which a loss is computed", "others"
    for name in sorted(set(again) | set(said)):
        a, b = again.get(name), said.get(name)
        if not is_near(a, b):
            return "%s %s" % (name, a), str(b)
    return None


def paired_error(run, scores):
    """Standard error of the weighted distance of val less that under the best before, paired by item."""
    terms, sizes = run.data["terms"], []
    for of in (scores, run.best_scores):
        targets, means, _, _, places = readable(run.rows["val"], of)
        sizes.append({at: size(terms["distance"], z - h) for at, z, h in zip(places, means, targets)})
    weight = terms["alpha_micro"] / 1e6 / c_abs(run)
    apart = [weight * (of - sizes[1][at]) for at, of in sizes[0].items() if at in sizes[1]]
    return math.sqrt(variance(apart) / len(apart)) if len(apart) > 1 else 0.0


def theil_sen(values):
    slopes = [(b - a) / (j - i) for i, a in enumerate(values) for j, b in enumerate(values) if i < j]
    return quantile(slopes, 0.5) if slopes else None


def turns(values):
    rises = [b > a for a, b in zip(values, values[1:]) if a != b]
    return sum(a != b for a, b in zip(rises, rises[1:]))


def course(run):
    """(whether the newest step is taken back, what triggers a stop at it)."""
    first = (run.base_loss, run.val_loss, 0.0)
    said = [step.committed for step in run.steps if step.committed]
    all_ = [first] + [(of["train"], of["val"], of["error"]) for of in said]
    v0 = max(run.base_loss["selfvar"], 1e-4)
    far = above = unstable = 0
    best, best_rank, best_entropy, back, asked = 0, -math.inf, -math.inf, False, []
    for at, (train, val, error) in enumerate(all_):
        excess = val["loss"] - all_[best][1]["loss"]
        far = far + 1 if at and excess > 3 * error else 0
        above = above + 1 if at and excess > max(0.01, error) else 0
        unstable = unstable + 1 if val["selfvar"] >= 2 * v0 else 0
        back = far == 2
        far = 0 if back else far
        window = all_[max(0, at - 4):at + 1]
        slope = theil_sen([of[0]["loss"] for of in window])
        falls = len(window) == 5 and slope < 0
        rank = val.get("tau_b") or 0.0
        asked = [name for is_so, name in (
            (val["contraction"] > 0.25, "contraction"), (val["entropy"] <= 0.8 * best_entropy, "entropy"),
            (falls and turns([of[1]["loss"] for of in window]) >= 3, "oscillation"),
            (falls and above >= 3, "overfit"), (rank <= best_rank - 0.05, "rank"),
            (unstable >= 2, "selfvar")) if is_so]
        best_rank, best_entropy = max(best_rank, rank), max(best_entropy, val["entropy"])
        if val["loss"] < all_[best][1]["loss"]:
            best = at
    return back, asked


# Draws.

def chacha(seed, stream):
    """The words of ChaCha20 under a seed, on a stream, in pairs of 64 bits."""
    key, counter = struct.unpack("<8I", seed), 0
    while True:
        state = [0x61707865, 0x3320646e, 0x79622d32, 0x6b206574, *key, counter & 0xffffffff, counter >> 32,
                 stream & 0xffffffff, stream >> 32]
        work = list(state)
        for _ in range(10):
            for a, b, c, d in ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15),
                               (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14)):
                for to, by, at, turn in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
                    work[to] = (work[to] + work[by]) & 0xffffffff
                    work[at] ^= work[to]
                    work[at] = (work[at] << turn | work[at] >> (32 - turn)) & 0xffffffff
        words = [(a + b) & 0xffffffff for a, b in zip(work, state)]
        for at in range(0, 16, 2):
            yield words[at] | words[at + 1] << 32
        counter += 1


def shuffled(count, seed, stream):
    """The places below `count` in a random order (Fisher and Yates, from the end)."""
    words, order = chacha(seed, stream), list(range(count))
    for last in range(count - 1, 0, -1):
        other = (next(words) >> 11) * (last + 1) >> 53
        order[last], order[other] = order[other], order[last]
    return order


def seed_below(seed, label):
    return sha256(bytes.fromhex(seed), b"\0", label.encode())


def seed_of(registration, beacon, run):
    """The seed of what is drawn in an experiment: of parts without a run, else of its batches; a checkpoint salts it."""
    version, salt = (b"v2", decode_base64(beacon["root"])) if beacon else (b"v1", b"")
    return sha256(b"clover/sgd/seed/", version, b"\0", bytes.fromhex(registration), salt, run.encode("utf-8")).hex()


def parts(items, seed):
    """The part of each of some clusters, in ascending order."""
    found, count = {}, len(items)
    for place, at in enumerate(shuffled(count, seed_below(seed, "sgd/split"), 0)):
        found[items[at]] = ("train" if place < count * 50 // 100 else "val" if place < count * 70 // 100
                            else "test" if place < count * 85 // 100 else "confirm")
    return found


def batch(run):
    """(places, high, low, confusable) of the batch of the next step."""
    targets = [row["target_micro"] / 1e6 for row in run.rows["train"]]
    upper, lower = quantile(targets, 0.75), quantile(targets, 0.25)
    high = [at for at, of in enumerate(targets) if of >= upper]
    low = [at for at, of in enumerate(targets) if of < upper and of <= lower]
    middle = [at for at, of in enumerate(targets) if of < upper and of > lower]
    uses = [0] * len(targets)
    for step in run.steps:
        for place in step.batch["rows"]:
            uses[place] += 1
    third = run.data["terms"]["batch"] // 3

    def distance(at):
        shares = [of / 1e6 for of in run.train[at]]
        if not shares:
            return math.inf, 0.0
        middle_ = mean(shares)
        return min(abs(middle_ - cut) for cut in CUTS), -variance(shares)

    def drawn(label):
        seed = seed_below(run.data["seed"], label)
        order = [[of[at] for at in shuffled(len(of), seed, stream)] for of, stream in ((high, 0), (low, 1))]
        order.append(sorted(middle, key=distance))
        return [sorted(sorted(of, key=lambda at: uses[at])[:third]) for of in order]

    label = "sgd/batch/%d" % run.taken()
    found = drawn(label)
    if not any(targets[a] - targets[b] >= GAP_MIN for a in found[0] for b in found[1]):
        found = drawn(label + "/again")
    return sorted(sum(found, [])), len(found[0]), len(found[1]), len(found[2])
