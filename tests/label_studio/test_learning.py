"""Learning from annotations: webhooks, trainings in another process, and the replacement of the served model."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import label_studio_requests as requests
import pytest
from fake_service import FakePredictor, wait_until
from fastapi.testclient import TestClient

from spanwise.core.errors import SpanwiseError
from spanwise.label_studio import learner as learner_module
from spanwise.label_studio.backend import Backend
from spanwise.label_studio.learner import Learner, LearningOptions
from spanwise.label_studio.rounds import LearningFolder
from spanwise.serve.app import make_app
from spanwise.serve.batching import WORDS_PER_SHARE


def trainer(code: str) -> tuple[str, ...]:
    """A command in place of the training."""
    return sys.executable, "-S", "-c", f"import sys\nfolder = sys.argv[1]\n{code}"


def result(old: float, new: float) -> str:
    text = json.dumps({"old": old, "new": new})
    return f"import os\nwith open(folder + '/new', 'w') as file: file.write({text!r})\nos.rename(folder + '/new', folder + '/result.json')"


BETTER, WORSE = trainer(result(0.5, 0.6)), trainer(result(0.5, 0.5))
ENDLESS = trainer("open(folder + '/started', 'a').write('x')\nsys.stdin.read()")


class NewPredictor(FakePredictor):
    types = ("Disease", "Organization", "Place", "Town")


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    monkeypatch.setattr(learner_module, "load", lambda folder, device: NewPredictor())

    @contextmanager
    def running(
        command: tuple[str, ...] = BETTER, after: int | None = None, predictor: FakePredictor | None = None
    ) -> Iterator[TestClient]:
        folder = LearningFolder(tmp_path / "learning", tmp_path / "run")
        with folder.opened():
            learner = Learner(folder, LearningOptions(after=after), lambda line: None, command)
            app = make_app(predictor or FakePredictor(), title=learner.version, extension=Backend(learner))
            with TestClient(app) as client:
                yield client

    return running


def send(client: TestClient, message: dict[str, Any], status: int = 200) -> Any:
    response = client.post("/webhook", json=message)
    assert response.status_code == status, response.text
    return response.json()


def finished(client: TestClient, rounds: int = 1) -> dict[str, Any]:
    """Wait for the end of trainings; return the status."""

    def is_finished() -> bool:
        status = client.get("/learning").json()
        return len(status["rounds"]) >= rounds and not status["is_training"]

    wait_until(is_finished)
    status: dict[str, Any] = client.get("/learning").json()
    return status


def test_webhooks_are_collected_once_and_after_a_restart(start: Callable[..., Any]) -> None:
    with start() as client:
        assert send(client, requests.saved()) == {"status": "stored", "annotations": 1}
        assert send(client, requests.saved()) == {"status": "known", "annotations": 1}
        send(client, requests.saved(2, task_id=2))
        assert send(client, requests.saved(2, [], task_id=2, second=40, action="ANNOTATION_UPDATED"))["annotations"] == 2
        for ignored in ("TASKS_CREATED", "PROJECT_UPDATED", "LABEL_LINK_CREATED", "SOMETHING_NEW"):
            assert send(client, {"action": ignored, "project": requests.project()}) == {"status": "ignored"}
    with start() as client:
        assert send(client, requests.saved())["status"] == "known"
        assert send(client, requests.deleted(1, 99)) == {"status": "stored", "annotations": 1}
        assert send(client, requests.tasks_deleted(2)) == {"status": "stored", "annotations": 0}
        both = requests.saved(3, action="ANNOTATIONS_CREATED")
        both["annotation"], both["task"] = (
            [both["annotation"], both["annotation"] | {"id": 4}],
            [both["task"], requests.task("b", 5)],
        )
        both["annotation"][1]["result"] = []
        assert send(client, both)["annotations"] == 2
        assert client.get("/learning").json()["new_annotations"] == 4


@pytest.mark.parametrize(
    ("message", "error"),
    [
        (requests.saved() | {"project": {"id": 4}}, "project 4 is unknown: expected its label_config"),
        (requests.saved() | {"project": None}, "project: Input should be a valid dictionary or instance of Project"),
        (requests.saved() | {"project": requests.project("<View>")}, "labelling configuration:1: not XML: no element found"),
        (requests.saved() | {"task": {"id": 1, "data": {}}},
         "task 1: expected a text in data.text; the keys of data are none"),
        (requests.saved() | {"task": []}, "expected a task for each of 1 annotation"),
        (requests.saved(id="x"), "annotation.0.id: Input should be a valid integer, unable to parse string as an integer"),  # type: ignore[arg-type]
        (requests.saved(result=[requests.region(0, 99, "x", "Person")]),
         "annotation 1: Person [0, 99] is outside the text of 24 characters"),
        (requests.deleted() | {"annotations": [{}]}, "annotations.0.id: Field required"),
        (requests.tasks_deleted() | {"tasks": 5}, "tasks: Input should be a valid list"),
    ],
)  # fmt: skip
def test_wrong_webhooks_are_refused_and_not_stored(start: Callable[..., Any], message: dict[str, Any], error: str) -> None:
    with start() as client:
        assert send(client, message, 422)["error"] == error
        assert send(client, requests.START_TRAINING, 409) == {"error": "no annotations were collected yet"}
        assert client.get("/learning").json()["annotations"] == 0


def test_a_wrong_annotation_does_not_prevent_others_from_being_stored(start: Callable[..., Any]) -> None:
    message = requests.saved(action="ANNOTATIONS_CREATED")
    wrong = message["annotation"] | {"id": 2, "result": [requests.region(0, 99, "x", "Person")]}
    message["annotation"], message["task"] = [wrong, message["annotation"]], [message["task"]] * 2
    with start() as client:
        assert "annotation 2: Person [0, 99] is outside" in send(client, message, 422)["error"]
        assert client.get("/learning").json()["annotations"] == 1


def test_a_better_model_is_served(start: Callable[..., Any], tmp_path: Path) -> None:
    with start(BETTER) as client:
        send(client, requests.saved())
        assert send(client, requests.START_TRAINING) == {"status": "training started"}
        status = finished(client)
        assert status["rounds"] == [{"round": 1, "metric": "F1", "old": 0.5, "new": 0.6, "error": None, "is_better": True}]
        assert (status["model_version"], status["new_annotations"]) == ("run-1", 0)
        assert client.get("/versions").json() == {"versions": ["run-1"]}
        assert client.post("/setup", json=requests.setup()).json() == {"model_version": "run-1"}
        [prediction] = client.post("/predict", json=requests.predict(requests.task())).json()["results"]
        assert prediction["model_version"] == "run-1"
        assert "Town" in client.get("/").text
        assert "Town" in client.get("/openapi.json").text
    folder = LearningFolder(tmp_path / "learning", tmp_path / "run")
    assert folder.model == tmp_path / "learning" / "rounds" / "0001" / "run", "also after a restart"
    with start(WORSE) as client:
        assert client.get("/versions").json() == {"versions": ["run-1"]}
        send(client, requests.saved(2))
        send(client, requests.START_TRAINING)
        assert finished(client, 2)["model_version"] == "run-1", "a model that is only as good does not replace it"
        assert folder.rounds[1].read_request().model == str(folder.model)


def test_a_training_starts_after_some_annotations(start: Callable[..., Any]) -> None:
    with start(WORSE, after=2) as client:
        send(client, requests.saved())
        send(client, requests.saved(result=[], second=50))
        assert not client.get("/learning").json()["is_training"], "two changes of one annotation"
        send(client, requests.saved(2, task_id=2))
        assert finished(client)["new_annotations"] == 0
        send(client, requests.saved(3, task_id=3))
    with start(WORSE, after=2) as client:
        assert client.get("/learning").json()["new_annotations"] == 1
        send(client, requests.deleted(1))
        assert len(finished(client, 2)["rounds"]) == 2


def test_open_requests_keep_their_model(start: Callable[..., Any]) -> None:
    old = FakePredictor()
    with start(BETTER, predictor=old) as client, ThreadPoolExecutor(2) as threads:
        send(client, requests.saved())
        old.gate.clear()
        long = "In New York.\n" * WORDS_PER_SHARE
        first = threads.submit(client.post, "/predict", json=requests.predict(requests.task(long)))
        wait_until(lambda: old.batches)
        send(client, requests.START_TRAINING)
        finished(client)
        second = threads.submit(client.post, "/predict", json=requests.predict(requests.task()))
        wait_until(lambda: "spanwise_requests_in_progress 2.0" in client.get("/metrics").text)
        old.gate.set()
        [prediction] = first.result().json()["results"]
        assert (prediction["model_version"], len(prediction["result"])) == ("run", WORDS_PER_SHARE)
        [prediction] = second.result().json()["results"]
        assert prediction["model_version"] == "run-1"
        assert sum(map(len, old.batches)) == WORDS_PER_SHARE, "in several turns, all of the first request and no other"


def test_a_failed_training_does_not_end_the_service(start: Callable[..., Any]) -> None:
    with start(trainer("sys.exit('out of memory')")) as client:
        send(client, requests.saved())
        send(client, requests.START_TRAINING)
        [failed] = finished(client)["rounds"]
        assert failed["error"].startswith("the training ended with exit code 1; see ")
        assert Path(failed["error"].partition("see ")[2]).read_text() == "out of memory\n"
        assert client.get("/versions").json() == {"versions": ["run"]}
        assert send(client, requests.START_TRAINING) == {"status": "training started"}


def test_a_killed_training_is_reported(start: Callable[..., Any]) -> None:
    with start(trainer("import os\nos.kill(os.getpid(), 9)")) as client:
        send(client, requests.saved())
        send(client, requests.START_TRAINING)
        [failed] = finished(client)["rounds"]
        assert failed["error"].startswith("the training was ended by signal 9 (SIGKILL); see ")


def test_an_interrupted_training_continues(start: Callable[..., Any], tmp_path: Path) -> None:
    started = tmp_path / "learning" / "rounds" / "0001" / "started"
    with start(ENDLESS) as client:
        send(client, requests.saved())
        send(client, requests.START_TRAINING)
        wait_until(started.exists)
        assert send(client, requests.START_TRAINING) == {"status": "training is already running"}
        send(client, requests.saved(2))
        assert send(client, requests.START_TRAINING) == {"status": "training is already running; another one follows"}
        assert client.get("/health").status_code == 200
    assert [path.name for path in started.parent.parent.iterdir()] == ["0001"]
    with start(BETTER) as client:
        assert finished(client)["model_version"] == "run-1"
        assert client.get("/learning").json()["new_annotations"] == 1


def test_folders_belong_to_one_service_and_model(start: Callable[..., Any], tmp_path: Path) -> None:
    with start() as client:
        send(client, requests.saved())
        with pytest.raises(SpanwiseError, match="already collects annotations"), start():
            pass
    other = LearningFolder(tmp_path / "learning", tmp_path / "other")
    with pytest.raises(SpanwiseError, match="choose another --learn-folder"), other.opened():
        pass
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.yaml").write_text("")
    with pytest.raises(SpanwiseError, match="has other files"), LearningFolder(tmp_path / "run", tmp_path / "run").opened():
        pass
