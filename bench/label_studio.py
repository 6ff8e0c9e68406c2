"""Run a model inside a real Label Studio server, and learn from an annotation that is made there.

    pip install label-studio                      # in a separate environment; it has many dependencies
    python bench/label_studio.py RUN DATA --program ENV/bin/label-studio --out DIR

The server runs on 127.0.0.1 with SQLite in ``DIR``, and the model in another process with ``--learn``. The
script creates a project with the written configuration, connects the model, imports sentences of the
test split as tasks, and compares the predictions that the server stores with those of the model. It
then annotates tasks through the API of the server (with an update, a deletion and a skipped task), presses
"Start training", and checks that exactly the valid annotations are in the training data of the round, and
that the served model follows from its scores. With Chromium, it saves screenshots of the labelling page.

Both processes are ended at the end. Label Studio blocks models on local addresses unless its environment
has ``ML_BLOCK_LOCAL_IP=false`` and ``SSRF_PROTECTION_ENABLED=false``, as here.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import spanwise
from spanwise.core.percentages import percent
from spanwise.core.types import Sentence
from spanwise.corpora.splits import read_corpus
from spanwise.label_studio.configuration import read_types, write_configuration

EMAIL, PASSWORD = "bench@example.org", secrets.token_urlsafe(12)
TASKS = 12
START_SECONDS, ROUND_SECONDS = 300.0, 1800.0


class Server:
    """The API of a Label Studio server."""

    def __init__(self, url: str, token: str) -> None:
        self.url, self._token = url, token

    def call(self, method: str, path: str, body: Any = None) -> Any:
        headers = {"authorization": f"Token {self._token}", "content-type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        try:
            with urlopen(Request(self.url + path, data, headers, method=method), timeout=120) as response:
                text = response.read()
        except HTTPError as error:
            raise SystemExit(f"{method} {path}: {error.code} {error.read()[:500]!r}") from None
        return json.loads(text) if text else None


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def wait_for(condition: Callable[[], Any], seconds: float, description: str) -> Any:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if value := condition():
                return value
        except OSError:  # not started yet
            pass
        time.sleep(0.5)
    raise SystemExit(f"waited {seconds:.0f} s for {description}")


@contextmanager
def process(command: Sequence[str], log: Path, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as output:
        running = subprocess.Popen(command, stdout=output, stderr=output, env={**os.environ, **environment})
    try:
        yield running
    finally:
        running.terminate()
        try:
            running.wait(30)
        except subprocess.TimeoutExpired:
            running.kill()
            running.wait()


@contextmanager
def label_studio(program: str, folder: Path) -> Iterator[Server]:
    port, token = free_port(), secrets.token_hex(20)
    environment = {
        "LABEL_STUDIO_BASE_DATA_DIR": str(folder / "server"), "DJANGO_DB": "sqlite", "ML_BLOCK_LOCAL_IP": "false",
        "SSRF_PROTECTION_ENABLED": "false", "COLLECT_ANALYTICS": "false", "LATEST_VERSION_CHECK": "false",
        "LABEL_STUDIO_ENABLE_LEGACY_API_TOKEN": "true", "SENTRY_DSN": "", "FRONTEND_SENTRY_DSN": "",
    }  # fmt: skip
    (folder / "server").mkdir(exist_ok=True)
    command = [
        program, "start", "--no-browser", "--port", str(port), "--internal-host", "127.0.0.1",
        "--username", EMAIL, "--password", PASSWORD, "--user-token", token,
    ]  # fmt: skip
    with process(command, folder / "server.log", **environment):
        server = Server(f"http://127.0.0.1:{port}", token)
        wait_for(lambda: urlopen(f"{server.url}/health", timeout=5).status == 200, START_SECONDS, "Label Studio")
        yield server


@contextmanager
def model_service(run: Path, data: Path, folder: Path) -> Iterator[str]:
    """Serve the model to Label Studio; yield its URL with the token as a password."""
    port, token = free_port(), secrets.token_urlsafe(16)
    command = [
        sys.executable, "-m", "spanwise", "serve", str(run), "--port", str(port), "--device", "cpu", "--label-studio",
        "--learn", "--learn-data", str(data), "--learn-folder", str(folder / "learning"),
    ]  # fmt: skip
    with process(command, folder / "service.log", SPANWISE_TOKEN=token, PYTHONUNBUFFERED="1"):
        wait_for(lambda: urlopen(f"http://127.0.0.1:{port}/health", timeout=5).status == 200, START_SECONDS, "the service")
        yield f"http://model:{token}@127.0.0.1:{port}"


def learning_status(url: str) -> dict[str, Any]:
    password, _, address = url.removeprefix("http://model:").partition("@")
    with urlopen(Request(f"http://{address}/learning", headers={"authorization": f"Bearer {password}"}), timeout=10) as reply:
        return dict(json.load(reply))


def expected_regions(sentences: Sequence[Sentence]) -> set[tuple[str, int, int]]:
    regions = set()
    for sentence in sentences:
        for entity in sentence.entities:
            if len(entity.fragments) == 1:
                start, end = sentence.characters(entity.fragments[0])
                regions.add((entity.type, (sentence.start or 0) + start, (sentence.start or 0) + end))
    return regions


def check_predictions(server: Server, project: int, predictor: Any) -> list[dict[str, Any]]:
    """Compare the predictions that the server has stored with those of the model; return the tasks."""
    tasks = server.call("GET", f"/api/tasks?project={project}&fields=all&page_size=100")["tasks"]
    nested = relations = 0
    for task in tasks:
        task = server.call("GET", f"/api/tasks/{task['id']}")
        results = [result for prediction in task["predictions"] for result in prediction["result"]]
        values = [result["value"] for result in results if result["type"] == "labels"]
        stored = {(value["labels"][0], value["start"], value["end"]) for value in values}
        assert stored == expected_regions(predictor.predict(task["data"]["text"])), task["id"]
        nested += sum(a != b and b[1] <= a[1] and a[2] <= b[2] for a in stored for b in stored)
        relations += sum(result["type"] == "relation" for result in results)
        assert all(value["text"] == task["data"]["text"][value["start"] : value["end"]] for value in values)
    print(f"{len(tasks)} tasks have the model's predictions: {nested} nested entities, {relations} relations")
    return list(tasks)


def gold_result(sentence: Sentence) -> list[dict[str, Any]]:
    """The gold annotation of a task, as the labelling page would save it."""
    result: list[dict[str, Any]] = []
    for number, entity in enumerate(sentence.entities):
        start, end = sentence.characters(entity.fragments[0])
        value = {"start": start, "end": end, "text": sentence.text[start:end], "labels": [entity.type]}
        result.append({"id": f"g{number}", "from_name": "label", "to_name": "text", "type": "labels", "value": value})
    for relation in sentence.relations:
        ends = {"from_id": f"g{relation.head}", "to_id": f"g{relation.tail}", "direction": "right"}
        result.append({"type": "relation", **ends, "labels": [relation.type]})
    return result


def annotate(server: Server, tasks: Sequence[dict[str, Any]], gold: dict[str, Sentence]) -> dict[str, Sentence]:
    """Annotate tasks through the API; return the sentences that must be in the next training set."""
    valid: dict[str, Sentence] = {}
    for number, task in enumerate(tasks):
        text = task["data"]["text"]
        path = f"/api/tasks/{task['id']}/annotations/"
        if number == 0:  # skipped
            server.call("POST", path, {"result": [], "was_cancelled": True})
        elif number == 1:  # deleted
            id = server.call("POST", path, {"result": gold_result(gold[text])})["id"]
            server.call("DELETE", f"/api/annotations/{id}/")
        elif number == 2:  # updated
            id = server.call("POST", path, {"result": []})["id"]
            server.call("PATCH", f"/api/annotations/{id}/", {"result": gold_result(gold[text])})
            valid[text] = gold[text]
        else:
            server.call("POST", path, {"result": gold_result(gold[text])})
            valid[text] = gold[text]
    return valid


def check_round(folder: Path, valid: dict[str, Sentence]) -> None:
    """Check that exactly the valid annotations are in the training data of the first round."""
    train = read_corpus(folder / "learning" / "rounds" / "0001" / "data")["train"]
    collected = [sentence for sentence in train if (sentence.document or "").startswith("label-studio-")]
    assert {sentence.text for sentence in collected} == set(valid)
    for sentence in collected:
        expected = valid[sentence.text]
        assert expected_regions([sentence]) == expected_regions(
            [Sentence("x", expected.words, expected.entities, text=expected.text)]
        )
        assert len(sentence.relations) == len(expected.relations)
    print(f"the training data of round 1 has the {len(valid)} valid annotations, of {len(train)} sentences")


def screenshot(server: Server, project: int, task: int, folder: Path, name: str) -> None:
    """Save a picture of the labelling page, if there is a browser."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from browser import Browser, find_browser

    path = find_browser()
    if path is None:
        print("no screenshots: Chromium is not installed")
        return
    browser = Browser(path, folder / "browser")
    try:
        page = browser.open(f"{server.url}/user/login/", width=1500, height=900)
        fill = "(n, v) => { const f = document.querySelector(`[name=${n}]`); if (f) f.value = v; }"
        page.evaluate(
            f"({fill})('email', {EMAIL!r}); ({fill})('password', {PASSWORD!r}); document.querySelector('form').submit()"
        )
        time.sleep(10)
        page.send("Page.navigate", url=f"{server.url}/projects/{project}/data?task={task}")
        time.sleep(25)
        (folder / name).write_bytes(page.screenshot())
        print(f"screenshot: {folder / name}")
    finally:
        browser.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("--program", default="label-studio", help="the program label-studio")
    parser.add_argument("--out", type=Path, required=True, help="new folder for the server, logs and screenshots")
    arguments = parser.parse_args()
    folder = arguments.out.absolute()
    folder.mkdir(parents=True)

    sentences = [s for s in read_corpus(arguments.data)["test"] if not s.text.endswith(" ") and len(s.entities) > 2]
    sentences = [s for s in sentences if all(len(entity.fragments) == 1 for entity in s.entities)][:TASKS]
    gold = {sentence.text: sentence for sentence in sentences}
    predictor = spanwise.load(arguments.run, "cpu")
    # Sentences of the test split are tasks here, so the base data of the service is without it.
    base = folder / "base"
    base.mkdir()
    for split in ("train", "dev"):
        spanwise.write(read_corpus(arguments.data)[split], base / f"{split}.jsonl")
    with label_studio(arguments.program, folder) as server, model_service(arguments.run, base, folder) as url:
        configuration = write_configuration(*read_types(arguments.data))
        project = server.call("POST", "/api/projects", {"title": "Spanwise", "label_config": configuration})["id"]
        backend = server.call("POST", "/api/ml", {"url": url, "project": project, "title": "spanwise"})
        assert backend["state"] == "CO", backend
        print(f"connected: model version {backend['model_version']}")
        server.call("POST", f"/api/projects/{project}/import", [{"data": {"text": text}} for text in gold])
        everything = {"selectedItems": {"all": True, "excluded": []}, "ordering": []}
        server.call("POST", f"/api/dm/actions?id=retrieve_tasks_predictions&project={project}", everything)
        tasks = check_predictions(server, project, predictor)
        screenshot(server, project, tasks[0]["id"], folder, "predictions.png")

        valid = annotate(server, tasks, gold)
        status = learning_status(url)
        assert status["annotations"] == len(valid), status
        server.call("POST", f"/api/ml/{backend['id']}/train", {})
        wait_for(lambda: not learning_status(url)["is_training"], ROUND_SECONDS, "the training")
        check_round(folder, valid)
        [first] = learning_status(url)["rounds"]
        assert first["error"] is None, first
        version = server.call("GET", f"/api/ml/{backend['id']}/versions")["versions"]
        assert version == [f"{arguments.run.resolve().name}-1" if first["is_better"] else arguments.run.resolve().name]
        before, after = percent(first["old"]), percent(first["new"])
        print(f"{first['metric']} on dev: {before} before, {after} after; now served: {version[0]}")


if __name__ == "__main__":
    main()
