#!/usr/bin/env python3
"""Runs of a judge's prompt beside DSPy GEPA: the same rows, the same judge, as many scores, one gate.

    python3 -m venv venv && venv/bin/pip install dspy==3.4.1
    cargo build --release && venv/bin/python benches/beside/dspy_gepa.py target/release/clover --seeds 5

The judge is the simulated one of `clover sgd`, whose biases (length, certainty) are known; it is written here once more, and each
run asserts that both give the same scores. For DSPy it stands behind an OpenAI-compatible server on loopback. Whoever reflects for
GEPA is a stand-in too: it reads the items that GEPA shows, and answers with the current instruction and one sentence of the
repertoire of `aggregate/1`, about length or certainty where a response that was scored too high is long or sounds certain. No
network, no key. GEPA may spend as many scores as the run of Clover spent on train and val.
"""

import argparse
import hashlib
import json
import math
import random
import re
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CERTAIN = ("certainly", "experts", "studies show", "undoubtedly", "proven")
OF_LENGTH = ("length", "longer", "verbose", "padding", "brief")
OF_AUTHORITY = ("authority", "certainty", "confident", "confidence")
ALPHA, LOOK_EVERY, FRACTIONS, ONE = 0.05, 5, 20, 10 ** 6


def said(prompt, words):
    sentences = re.split(r"(?<=[.!?])\s+|\n", prompt.lower())
    return min(3, sum(any(word in one for word in words) for one in sentences))


def words_of(text):
    return re.findall(r"[a-z0-9]+", text.lower())


def scored(prompt, question, response):
    """The score of the simulated judge, in millionths (`src/workflow/judge/simulated.rs`)."""
    content = set(re.findall(r"[a-z]+", question.lower())) - {"please", "explain", "and"}
    count = len(words_of(response))
    merit = 900_000 * len(content & set(words_of(response))) // len(content)
    length = min(350_000, max(0, count - 30) * 2_500) // (1 << said(prompt, OF_LENGTH))
    certain = any(word in response.lower() for word in CERTAIN)
    authority = (250_000 if certain else 0) // (1 << said(prompt, OF_AUTHORITY))
    drawn = hashlib.sha256(question.encode() + b"\0" + response.encode() + (0).to_bytes(8, "big")).digest()
    noise = int.from_bytes(drawn[:2], "big") % 40_001 - 20_000
    return min(ONE, max(0, merit + length + authority + noise))


class Counter:
    """What was asked."""

    def __init__(self):
        self.scores = self.reflections = 0
        self.items = set()


class Double(BaseHTTPRequestHandler):
    """An OpenAI-compatible endpoint that plays the judge (`judge`) and whoever reflects (`reflector`)."""

    counter, repertoire, lock = None, (), threading.Lock()

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        texts = [of["content"] if isinstance(of["content"], str) else "".join(part.get("text", "") for part in of["content"])
                 for of in body["messages"]]
        with self.lock:
            answer = self.judged(texts) if body["model"].endswith("judge") else self.reflected(texts[-1])
        reply = json.dumps({
            "id": "1", "object": "chat.completion", "created": 0, "model": body["model"],
            "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": answer}}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def judged(self, texts):
        Double.counter.scores += 1
        told = texts[0].split("your objective is:", 1)[1]
        fields = dict(re.findall(r"\[\[ ## (question|response) ## \]\]\n(.*?)\n(?=\n|\[\[|Respond|$)", texts[-1], re.S))
        z = scored(told, fields["question"].strip(), fields["response"].strip())
        return "[[ ## score ## ]]\n%.6f\n\n[[ ## completed ## ]]" % (z / ONE)

    def reflected(self, text):
        counter = Double.counter
        counter.reflections += 1
        current = text.split("[[ ## current_instruction ## ]]\n", 1)[1].split("\n\n[[ ## examples_with_feedback", 1)[0]
        shown = text.split("[[ ## examples_with_feedback ## ]]\n", 1)[1]
        examples, _ = json.JSONDecoder().raw_decode(shown)
        counter.items.update(of["Inputs"]["response"] for of in examples)
        wanted = list(self.repertoire)
        random.Random(hashlib.sha256(text.encode()).digest()).shuffle(wanted)
        for of in examples:
            response = of["Inputs"]["response"]
            if "too high" not in of["Feedback"]:
                continue
            if any(word in response.lower() for word in CERTAIN):
                wanted.insert(0, next(one for one in self.repertoire if "authority" in one))
            if len(words_of(response)) > 40:
                wanted.insert(0, next(one for one in self.repertoire if "longer" in one))
        fresh = next((one for one in wanted if one not in current), None)
        following = current + "\n" + fresh if fresh else current
        if "Respond with a JSON object" in text:
            return json.dumps({"new_instruction": following})
        return "[[ ## new_instruction ## ]]\n%s\n\n[[ ## completed ## ]]" % following


def clover(binary, folder, *words):
    ran = subprocess.run([binary, *words], cwd=folder, capture_output=True, text=True,
                         env={"XDG_CONFIG_HOME": folder + "/config", "XDG_STATE_HOME": folder + "/state"})
    if ran.returncode:
        sys.exit("%s: exit %d\n%s%s" % (" ".join(words), ran.returncode, ran.stdout, ran.stderr))
    return ran.stdout


def events(binary, folder):
    clover(binary, folder, "export", "jsonl", "-o", "out")
    import base64
    for line in open(folder + "/out/ledger.jsonl", encoding="utf-8"):
        envelope = json.loads(line)
        body = find_body(envelope)
        yield json.loads(base64.b64decode(body))


def find_body(value):
    """The base64 of the signed body, wherever its envelope has it."""
    if isinstance(value, dict):
        if "payload" in value and isinstance(value["payload"], str):
            return value["payload"]
        for of in value.values():
            found = find_body(of)
            if found:
                return found
    return None


def prompt_of(page):
    return page.split("```text\n", 1)[1].split("```", 1)[0]


def repertoire():
    """The English sentences of `aggregate/1`, in their order."""
    text = (ROOT / "src/prompt/aggregate.rs").read_text(encoding="utf-8")
    table = text.split("pub const REPERTOIRE", 1)[1].split("];", 1)[0]
    return [of for of in re.findall(r'"([^"\n]+)"', table) if of.isascii()]


def gate(rows, texts, base, candidate):
    """(verdict, looks' clusters, log wealth) of one sequential gate: more agreement than prompt 0, by the verifier's own test."""
    sys.path.insert(0, str(ROOT / "audits/verify"))
    from rules import betting
    clusters = {}
    for row in rows:
        clusters.setdefault(row["item"], []).append(row)
    order = sorted(clusters)
    random.Random(7).shuffle(order)
    null, ticks, bar = betting.Null(True, 1, ONE, 0), [], math.log(1 / ALPHA)
    worth = lambda prompt, of: ONE - sum(abs(scored(prompt, *texts[row["item"]]) - row["target_micro"]) for row in of) // len(of)
    log = 0.0
    for n, item in enumerate(order, 1):
        ticks.append(ONE + worth(candidate, clusters[item]) - worth(base, clusters[item]))
        if n % LOOK_EVERY == 0 or n == len(order):
            log = betting.grid_kelly(null, ticks, [None] * n, FRACTIONS, None)
            if log >= bar:
                return "promote", n, log
    return "undecided", len(order), log


def distance(rows, texts, prompt):
    return sum(abs(scored(prompt, *texts[row["item"]]) - row["target_micro"]) for row in rows) / len(rows) / ONE


def one(binary, seed, port):
    import dspy
    with tempfile.TemporaryDirectory() as folder:
        page = (ROOT / "schema/SGD.md").read_text(encoding="utf-8")
        Path(folder, "judge.md").write_text(prompt_of(page), encoding="utf-8")
        for line in (
                "init --origin lab.example/sgd --holder Ada --roles owner,registrar,scorer,labeler,arbiter,approver",
                "key new cem --role custodian --seal", "key new opt --role optimizer",
                "experiment register tune --title T --purpose trial",
                "label design new read --purpose calibrate --probability 1",
                "sgd sample rows.jsonl --rows 400 --seed %d" % seed, "import cje rows.jsonl --labels",
                "sgd open one --judge sim --simulated --prompt judge.md --steps 6 --repeats 1",
                "sgd run one", "sgd test one"):
            clover(binary, folder, *line.split())
        texts = {}
        for line in open(folder + "/rows.jsonl", encoding="utf-8"):
            row = json.loads(line)
            texts[row["prompt_id"]] = row["prompt"], row["response"]
        rows, spent, base_scores, steps = {}, 0, [], 0
        for event in events(binary, folder):
            data = event.get("data", {})
            if event["kind"] == "sgd.rows_listed":
                rows.setdefault(data["split"], []).extend(data["rows"])
            elif event["kind"] == "sgd.scored" and data["part"] in ("base", "batch", "val"):
                spent += sum(len(of) for of in data["scores"])
                base_scores += [of[0] for of in data["scores"]] if data["part"] == "base" else []
            elif event["kind"] == "sgd.step_committed":
                steps += 1
        shown = json.loads(clover(binary, folder, "sgd", "show", "one", "--json"))["data"]
        texts_of = lambda place: json.loads(clover(
            binary, folder, "sgd", "show", "one", "--prompt", str(place), "--json"))["data"]["text"]
        first, chosen = texts_of(0), texts_of(shown["best"])
        assert base_scores == [scored(first, *texts[row["item"]]) for row in rows["train"]], "another judge"
        counter = Double.counter = Counter()
        lm = lambda name: dspy.LM("openai/" + name, api_base="http://127.0.0.1:%d/v1" % port, api_key="none", cache=False,
                                  max_tokens=4_000, temperature=1.0)
        dspy.configure(lm=lm("judge"))
        signature = dspy.Signature("question: str, response: str -> score: float", first)

        def metric(gold, pred, trace=None, pred_name=None, pred_trace=None):
            try:
                off = float(pred.score) - gold.target
            except (TypeError, ValueError, AttributeError):
                return dspy.Prediction(score=0.0, feedback="no score")
            words = "right" if abs(off) < 0.1 else "too high" if off > 0 else "too low"
            return dspy.Prediction(score=1 - min(1, abs(off)), feedback="People say %.2f: %s by %.2f." % (
                gold.target, words, abs(off)))

        example = lambda row: dspy.Example(
            question=texts[row["item"]][0], response=texts[row["item"]][1], target=row["target_micro"] / ONE).with_inputs(
            "question", "response")
        optimizer = dspy.GEPA(metric=metric, max_metric_calls=spent, reflection_lm=lm("reflector"), num_threads=1, seed=seed)
        tuned = optimizer.compile(dspy.Predict(signature), trainset=[example(row) for row in rows["train"]],
                                  valset=[example(row) for row in rows["val"]])
        theirs = tuned.signature.instructions
        found = {"seed": seed, "first": distance(rows["test"], texts, first), "spent": spent, "gepa_scores": counter.scores,
                 "reflections": counter.reflections, "items": len(counter.items), "agents": 2 * steps}
        for name, prompt in (("sgd", chosen), ("gepa", theirs)):
            found[name] = distance(rows["test"], texts, prompt)
            found[name + "_gate"], found[name + "_n"], _ = gate(rows["confirm"], texts, first, prompt)
            found[name + "_chars"] = len(prompt)
        return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("clover")
    parser.add_argument("--seeds", type=int, default=5)
    args = parser.parse_args()
    binary = str(Path(args.clover).resolve())
    Double.repertoire = repertoire()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Double)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print("| seed | test: prompt 0 | SGD | GEPA | gate SGD | gate GEPA | scores SGD | GEPA | asks of agents SGD | GEPA | "
          "rows seen SGD | GEPA |")
    for seed in range(1, args.seeds + 1):
        of = one(binary, seed, server.server_address[1])
        print("| %(seed)d | %(first).4f | %(sgd).4f | %(gepa).4f | %(sgd_gate)s (%(sgd_n)d) | %(gepa_gate)s (%(gepa_n)d) | "
              "%(spent)d | %(gepa_scores)d | %(agents)d | %(reflections)d | 0 | %(items)d |" % of, flush=True)


if __name__ == "__main__":
    main()
