"""The service as a program meets it: answers, refusals, limits, the token, what is counted and what is kept quiet."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from fastapi.testclient import TestClient
from served import TEXT, Fake, until

from spanwise.serve import schema
from spanwise.serve.app import make_app
from spanwise.serve.batching import SHARE
from spanwise.serve.guard import Guard
from spanwise.serve.limits import Limits
from spanwise.serve.metrics import Metrics

JSON = {"content-type": "application/json"}


@pytest.fixture
def fake() -> Fake:
    return Fake()


@pytest.fixture
def client(fake: Fake) -> Iterator[TestClient]:
    with TestClient(make_app(fake)) as running:
        yield running


def ask(client: TestClient, **request: Any) -> Any:
    answer = client.post("/predict", json=request)
    assert answer.status_code == 200, answer.text
    return schema.Answer.model_validate(answer.json()).model_dump(mode="json")["results"]


def types_of(sentence: Any) -> list[str]:
    return [f"{entity['type']}: {entity['text']}" for entity in sentence["entities"]]


def test_a_text_is_answered_with_characters_of_the_text(client: TestClient) -> None:
    [result] = ask(client, text=TEXT)
    first, second = result["sentences"]
    assert types_of(first) == [
        "Organization: New York University Hospital", "Organization: New York University", "Place: New York",
        "Disease: breast cancer", "Disease: ovarian cancer",
    ]  # fmt: skip
    assert second["entities"] == [
        {"type": "Place", "text": "New York", "score": 0.6, "characters": [[82, 90]], "spans": [[3, 5]]}
    ]
    for sentence in (first, second):
        assert TEXT[sentence["start"] : sentence["end"]] == sentence["text"]
        for entity in sentence["entities"]:
            assert " ".join(TEXT[a:b] for a, b in entity["characters"]) == entity["text"]
            words = [TEXT[a:b] for a, b in sentence["words"]]
            assert " ".join(" ".join(words[a:b]) for a, b in entity["spans"]) == entity["text"]
    broken = first["entities"][3]
    assert [TEXT[a:b] for a, b in broken["characters"]] == ["breast", "cancer"]
    assert {(r["type"], r["head"], r["tail"]) for r in first["relations"]} == {("treats", x, y) for x in (0, 1) for y in (3, 4)}


def test_several_texts_and_words(client: TestClient) -> None:
    results = ask(client, texts=["In New York.", "", "Rain. New York."])
    assert [[types_of(sentence) for sentence in result["sentences"]] for result in results] == [
        [["Place: New York"]], [], [[], ["Place: New York"]]
    ]  # fmt: skip
    [result] = ask(client, tokens=["New", "York", "New York"])
    assert [s["text"] for s in result["sentences"]] == ["New York New York"]
    assert result["sentences"][0]["words"] == [[0, 3], [4, 8], [9, 17]]


def test_characters_are_code_points(client: TestClient) -> None:
    [result] = ask(client, text="🌊🌊 New York\r\n")
    assert result["sentences"][0]["entities"][0]["characters"] == [[3, 11]]


def test_threshold_and_overlap(client: TestClient) -> None:
    def found(**options: Any) -> list[str]:
        return types_of(ask(client, text="ovarian cancer of New York University", **options)[0]["sentences"][0])

    assert found(threshold=0.1) == [
        "Organization: New York University",
        "Place: New York",
        "Disease: ovarian cancer",
        "Disease: cancer",
    ]
    assert found(threshold=0.85) == ["Disease: ovarian cancer"]
    assert found(threshold={"Disease": 0.95}) == ["Organization: New York University", "Place: New York"]
    assert found(threshold=0.1, overlap="outermost") == ["Organization: New York University", "Disease: ovarian cancer"]
    assert found(overlap="flat") == found(overlap="outermost")
    assert found(overlap=None) == found(overlap="nested") == found()


@pytest.mark.parametrize(
    ("body", "status", "error"),
    [
        ("{}", 422, schema.GIVE_ONE),
        ("[]", 422, schema.GIVE_ONE),
        ("null", 422, schema.GIVE_ONE),
        ("", 422, schema.GIVE_ONE),
        ('{"text": 5}', 422, "text: Input should be a valid string"),
        ('{"text": null}', 422, "text: Input should be a valid string"),
        ('{"text": "a", "texts": ["b"]}', 422, schema.GIVE_ONE),
        ('{"text": "a", "text_": "b"}', 422, "text_: Extra inputs are not permitted"),
        ('{"texts": ["a", 5]}', 422, "texts.1: Input should be a valid string"),
        ('{"tokens": "ab"}', 422, "tokens: Input should be a valid list"),
        ('{"tokens": ["a", ""]}', 422, "tokens.1: String should have at least 1 character"),
        ('{"text": "a", "threshold": "0.5"}', 422, "threshold: Input should be a valid number"),
        ('{"text": "a", "threshold": true}', 422, "threshold: Input should be a valid number"),
        ('{"text": "a", "threshold": -1}', 422, "threshold: Input should be greater than or equal to 0"),
        ('{"text": "a", "threshold": NaN}', 422, "threshold: Input should be less than or equal to 1"),
        ('{"text": "a", "threshold": {"Place": 2}}', 422, "threshold.Place: Input should be less than or equal to 1"),
        ('{"text": "a", "threshold": {"Plase": 0.2}}', 422, "unknown type with a threshold 'Plase' (did you mean 'Place'?); known: Disease, Organization, Place, treats"),
        ('{"text": "a", "overlap": "none"}', 422, "overlap: Input should be 'nested', 'flat' or 'outermost'"),
        ('{"text": "\\ud800"}', 422, "text: Value error, half of a surrogate pair is no Unicode text"),
        ('{"text": "a", "\\ud800": 1}', 422, "Input should be a valid string, unable to parse raw data as a unicode string"),
        ('{"text": "a"', 400, "the body is not JSON in UTF-8"),
        ('{"text": "a\nb"}', 400, "the body is not JSON in UTF-8"),
        (b'{"text": "\xff\xfe"}', 400, "the body is not JSON in UTF-8"),
        ("[" * 100_000, 400, "the body is not JSON in UTF-8"),
        ('{"text": "a", "threshold": ' + "9" * 10_000 + "}", 400, "the body is not JSON in UTF-8"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_one_line(client: TestClient, body: str | bytes, status: int, error: str) -> None:
    answer = client.post("/predict", content=body, headers=JSON)
    assert (answer.status_code, answer.json()) == (status, {"error": error})


def test_a_mistake_does_not_come_back_whole(client: TestClient) -> None:
    answer = client.post("/predict", json={"text": "a", "x" * 5000: 1})
    assert answer.status_code == 422
    assert len(answer.content) < 200


def test_other_types_paths_and_methods(client: TestClient) -> None:
    form = client.post("/predict", content="text=a", headers={"content-type": "application/x-www-form-urlencoded"})
    assert (form.status_code, form.json()) == (415, {"error": "expected a body of type application/json"})
    bare = client.post("/predict", content=b'{"text": "a"}')
    assert (bare.status_code, bare.json()) == (form.status_code, form.json())
    assert client.get("/predict").status_code == 405
    assert client.get("/predict").headers["allow"] == "POST"
    assert client.get("/docs").json() == {"error": "Not Found"}
    assert client.get("/health").json() == {"status": "ok"}


def test_strange_text_is_text(client: TestClient) -> None:
    strange = "\x00\x01\x1b[0m \u202e New York \ufeff\u2028 😀\u0301"
    [result] = ask(client, text=strange)
    assert "".join(sentence["text"] for sentence in result["sentences"]) == strange
    assert [t for sentence in result["sentences"] for t in types_of(sentence)] == ["Place: New York"]
    [result] = ask(client, text="x" * 100_000)
    assert len(result["sentences"][0]["words"]) == 1


def test_limits_on_size(fake: Fake) -> None:
    with TestClient(make_app(fake, limits=Limits(body=1000, characters=20))) as client:
        assert ask(client, text="a" * 20)
        for request in ({"text": "a" * 21}, {"texts": ["a" * 11, "b" * 10]}, {"tokens": ["a" * 11, "b" * 10]}):
            answer = client.post("/predict", json=request)
            assert (answer.status_code, answer.json()["error"]) == (413, "21 characters of text, at most 20 are allowed")
        for body in (b" " * 1001, iter([b" " * 600, b" " * 600])):  # with its length said before, and without
            answer = client.post("/predict", content=body, headers=JSON)
            assert (answer.status_code, answer.json()["error"]) == (413, "the body is larger than 1,000 bytes")
    assert len(fake.batches) == 1


def test_limits_on_time_and_queue(fake: Fake) -> None:
    with TestClient(make_app(fake, limits=Limits(waiting=2, seconds=2))) as client, ThreadPoolExecutor(2) as threads:
        fake.gate.clear()
        waiting = [threads.submit(client.post, "/predict", json={"text": "first"})]
        until(lambda: fake.batches)
        waiting.append(threads.submit(client.post, "/predict", json={"text": "second"}))
        until(lambda: "spanwise_requests_held 2.0" in client.get("/metrics").text)
        full = client.post("/predict", json={"text": "third"})
        assert (full.status_code, full.headers["retry-after"]) == (503, "1")
        assert client.get("/health").status_code == 200
        for answer in waiting:
            assert (answer.result().status_code, answer.result().json()) == (504, {"error": "not answered within 2 s"})
        fake.gate.set()
        assert ask(client, text="fourth")
    assert fake.batches == [["first"], ["fourth"]], "what ran out of time before it began is never begun"


def test_those_who_wait_are_predicted_together_and_get_their_own_answers(fake: Fake) -> None:
    texts = [f"{'rain ' * number}New York. And {number}." for number in range(40)]
    with TestClient(make_app(fake)) as client:
        alone = [ask(client, text=text) for text in texts]
        fake.batches.clear()
        fake.gate.clear()
        with ThreadPoolExecutor(41) as threads:
            first = threads.submit(ask, client, text="first")
            until(lambda: fake.batches)
            others = [threads.submit(ask, client, text=text, threshold=0.5 * (number % 2)) for number, text in enumerate(texts)]
            until(lambda: "spanwise_requests_held 41.0" in client.get("/metrics").text)
            fake.gate.set()
            assert [other.result() for other in others] == alone
            assert first.result()
        assert [len(batch) for batch in fake.batches] == [1, 40, 40], "the first, and the two ways in which the others ask"
        assert 'spanwise_batch_requests_bucket{le="64.0"} 42.0' in client.get("/metrics").text


def test_a_request_that_fails_fails_alone_and_is_not_quoted(fake: Fake, caplog: pytest.LogCaptureFixture) -> None:
    with TestClient(make_app(fake)) as client, ThreadPoolExecutor(3) as threads, caplog.at_level(logging.DEBUG):
        fake.gate.clear()
        first = threads.submit(ask, client, text="first")
        until(lambda: fake.batches)
        bad = threads.submit(client.post, "/predict", json={"text": "the poison secret"})
        good = threads.submit(ask, client, text="New York")
        until(lambda: "spanwise_requests_held 3.0" in client.get("/metrics").text)
        fake.gate.set()
        assert types_of(good.result()[0]["sentences"][0]) == ["Place: New York"]
        assert (bad.result().status_code, bad.result().json()) == (500, {"error": "the service failed on this request"})
        assert first.result()
        assert ask(client, text="it lives")
    own = [record.getMessage() for record in caplog.records if record.name.startswith(("spanwise", "uvicorn"))]
    assert len(own) == 1
    assert own[0].startswith("ZeroDivisionError\n")
    assert "in find" in own[0]
    assert "the secret" not in own[0].replace('raise ZeroDivisionError("the secret text")', ""), "the line of code alone"


def test_the_token(fake: Fake) -> None:
    with TestClient(make_app(fake, token="open-sesame")) as client:
        assert client.get("/health").status_code == 200
        assert client.get("/").status_code == 200
        for headers in (
            {},
            {"authorization": "Bearer open"},
            {"authorization": "open-sesame"},
            {"authorization": b"Bearer \xff"},
        ):
            for answer in (
                client.post("/predict", json={"text": "a"}, headers=headers),
                client.get("/metrics", headers=headers),
            ):
                assert answer.status_code == 401
                assert answer.headers["www-authenticate"] == "Bearer"
        known = {"authorization": "Bearer open-sesame"}
        assert client.post("/predict", json={"text": "a"}, headers=known).status_code == 200
        assert client.get("/metrics", headers=known).status_code == 200
        assert "open-sesame" not in client.get("/").text


def test_metrics_are_what_prometheus_reads(client: TestClient) -> None:
    from prometheus_client.parser import text_string_to_metric_families

    ask(client, text=TEXT)
    client.post("/predict", json={})
    client.get("/nowhere/but/here")
    answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    samples = {(s.name, *s.labels.values()): s.value for f in text_string_to_metric_families(answer.text) for s in f.samples}
    assert samples["spanwise_requests_total", "/predict", "200"] == 1
    assert samples["spanwise_requests_total", "/predict", "422"] == 1
    assert samples["spanwise_requests_total", "other", "404"] == 1
    assert samples["spanwise_sentences_total",] == 2
    assert samples["spanwise_words_total",] == 17
    assert samples["spanwise_requests_held",] == 0


def test_every_answer_has_the_headers_that_keep_browsers_careful(client: TestClient) -> None:
    for answer in (
        client.get("/"),
        client.get("/nowhere"),
        client.post("/predict", json={"text": "a"}),
        client.post("/predict"),
    ):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert "unsafe" not in answer.headers["content-security-policy"]


def test_the_description_says_what_is_answered(client: TestClient) -> None:
    description = client.get("/openapi.json").json()
    assert set(description["paths"]) == {"/predict", "/health", "/metrics"}
    responses = description["paths"]["/predict"]["post"]["responses"]
    assert set(responses) == {"200", "400", "401", "408", "413", "415", "422", "500", "503", "504"}
    assert responses["200"]["content"]["application/json"]["schema"]["$ref"].endswith("/Answer")
    number, by_type = description["components"]["schemas"]["OfText"]["properties"]["threshold"]["oneOf"]
    assert (number["type"], by_type["propertyNames"]) == ("number", {"enum": ["Disease", "Organization", "Place", "treats"]})
    assert "http" not in json.dumps(description), "no address of anybody else"


def test_what_is_running_is_ended_before_the_end(fake: Fake) -> None:
    with TestClient(make_app(fake)) as client, ThreadPoolExecutor(1) as threads:
        fake.gate.clear()
        answer = threads.submit(ask, client, text="New York")
        until(lambda: fake.batches)
        threading.Timer(0.1, fake.gate.set).start()
        assert answer.result()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("model")]


def test_a_body_that_does_not_come_is_not_waited_for() -> None:
    sent: list[Any] = []

    async def nobody(*of: object) -> None:
        raise AssertionError("the service was asked")

    async def never() -> Any:
        await asyncio.sleep(60)

    async def keep(message: Any) -> None:
        sent.append(message)

    guard = Guard(nobody, Limits(seconds=0.01), Metrics(), None)
    asyncio.run(guard({"type": "http", "path": "/predict", "method": "POST", "headers": []}, never, keep))
    assert sent[0]["status"] == 408
    assert json.loads(sent[1]["body"]) == {"error": "the body did not arrive within 0.01 s"}


def test_a_long_text_does_not_hold_up_short_ones(fake: Fake) -> None:
    long = "New York.\n" * 2000  # three words a line
    with TestClient(make_app(fake)) as client, ThreadPoolExecutor(2) as threads:
        fake.gate.clear()
        slow = threads.submit(ask, client, text=long)
        until(lambda: fake.batches)
        quick = threads.submit(ask, client, text="Quick.")
        until(lambda: "spanwise_requests_held 2.0" in client.get("/metrics").text)
        fake.gate.set()
        assert quick.result()
        [result] = slow.result()
    assert [types_of(sentence) for sentence in result["sentences"]] == [["Place: New York"]] * 2000
    assert "Quick." in fake.batches[1]
    assert len(fake.batches) > 5
    assert max(map(len, fake.batches)) <= SHARE // 3 + 1


def test_a_text_that_is_given_up_is_forgotten(fake: Fake) -> None:
    with TestClient(make_app(fake, limits=Limits(seconds=0.3))) as client:
        fake.gate.clear()
        assert client.post("/predict", json={"text": "New York.\n" * 2000}).status_code == 504
        fake.gate.set()
        assert ask(client, text="Quick.")
    assert len(fake.batches) == 2


def test_a_sentence_without_end_is_refused(client: TestClient) -> None:
    assert ask(client, tokens=["a"] * 1000)
    answer = client.post("/predict", json={"text": "a " * 1001})
    assert answer.status_code == 422
    assert answer.json()["error"].startswith("a sentence has 1,001 words, at most 1,000 are allowed")


def test_a_model_that_reads_around_sees_the_same_in_every_turn(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each sentence has its neighbours beside it, of its own text alone, however many turns a text takes."""
    seen: dict[str, set[tuple[str | None, int | None]]] = {}

    def find(sentences: Any, around: Any, **options: Any) -> Any:
        places = {(one.document, one.position) for one in (*sentences, *around)}
        for one in sentences:
            seen[one.id] = {(one.document, one.position + step) for step in (-1, 1)} & places
        return sentences

    monkeypatch.setattr(fake, "find", find)
    with TestClient(make_app(fake)) as client:
        ask(client, texts=["Rain came.\n" * 1500, "Rain."])
    assert len(seen) == 1501
    alone = [name for name, beside in seen.items() if len(beside) < 2]
    assert len(alone) == 3, "the first and the last of one text, and the only one of the other"
