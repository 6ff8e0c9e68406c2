"""The HTTP API: responses, errors, limits, the token, metrics and logs."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from base64 import b64encode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from fake_service import TEXT, FakePredictor, wait_until
from fastapi.testclient import TestClient

from spanwise import SpanwiseError
from spanwise.serve import schema
from spanwise.serve.app import make_app
from spanwise.serve.batching import WORDS_PER_SHARE
from spanwise.serve.limits import Limits
from spanwise.serve.metrics import Metrics
from spanwise.serve.middleware import RequestMiddleware

JSON = {"content-type": "application/json"}


@pytest.fixture
def fake() -> FakePredictor:
    return FakePredictor()


@pytest.fixture
def client(fake: FakePredictor) -> Iterator[TestClient]:
    with TestClient(make_app(fake)) as running:
        yield running


def predict(client: TestClient, **request: Any) -> Any:
    response = client.post("/predict", json=request)
    assert response.status_code == 200, response.text
    return schema.PredictResponse.model_validate(response.json()).model_dump(mode="json")["results"]


def types_of(sentence: Any) -> list[str]:
    return [f"{entity['type']}: {entity['text']}" for entity in sentence["entities"]]


def test_character_offsets_refer_to_the_text(client: TestClient) -> None:
    [result] = predict(client, text=TEXT)
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
    discontinuous = first["entities"][3]
    assert [TEXT[a:b] for a, b in discontinuous["characters"]] == ["breast", "cancer"]
    assert {(r["type"], r["head"], r["tail"]) for r in first["relations"]} == {("treats", x, y) for x in (0, 1) for y in (3, 4)}


def test_several_texts_and_words(client: TestClient) -> None:
    results = predict(client, texts=["In New York.", "", "Rain. New York."])
    assert [[types_of(sentence) for sentence in result["sentences"]] for result in results] == [
        [["Place: New York"]], [], [[], ["Place: New York"]]
    ]  # fmt: skip
    [result] = predict(client, tokens=["New", "York", "New York"])
    assert [s["text"] for s in result["sentences"]] == ["New York New York"]
    assert result["sentences"][0]["words"] == [[0, 3], [4, 8], [9, 17]]


def test_characters_are_code_points(client: TestClient) -> None:
    [result] = predict(client, text="🌊🌊 New York\r\n")
    assert result["sentences"][0]["entities"][0]["characters"] == [[3, 11]]


def test_threshold_and_overlap(client: TestClient) -> None:
    def predicted(**options: Any) -> list[str]:
        return types_of(predict(client, text="ovarian cancer of New York University", **options)[0]["sentences"][0])

    assert predicted(threshold=0.1) == [
        "Organization: New York University",
        "Place: New York",
        "Disease: ovarian cancer",
        "Disease: cancer",
    ]
    assert predicted(threshold=0.85) == ["Disease: ovarian cancer"]
    assert predicted(threshold={"Disease": 0.95}) == ["Organization: New York University", "Place: New York"]
    assert predicted(threshold=0.1, overlap="outermost") == ["Organization: New York University", "Disease: ovarian cancer"]
    assert predicted(overlap="flat") == predicted(overlap="outermost")
    assert predicted(overlap=None) == predicted(overlap="nested") == predicted()


@pytest.mark.parametrize(
    ("body", "status", "error"),
    [
        ("{}", 422, schema.EXPECTED_KEYS),
        ("[]", 422, schema.EXPECTED_KEYS),
        ("null", 422, schema.EXPECTED_KEYS),
        ("", 422, schema.EXPECTED_KEYS),
        ('{"text": 5}', 422, "text: Input should be a valid string"),
        ('{"text": null}', 422, "text: Input should be a valid string"),
        ('{"text": "a", "texts": ["b"]}', 422, schema.EXPECTED_KEYS),
        ('{"text": "a", "text_": "b"}', 422, "unknown key 'text_' (did you mean 'text'?); known: overlap, text, threshold"),
        ('{"texts": [], "treshold": 0.1}', 422, "unknown key 'treshold' (did you mean 'threshold'?); known: overlap, texts, threshold"),
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
        ('{"text": "\\ud800"}', 422, "text: unpaired surrogate; expected valid Unicode"),
        ('{"text": "a", "\\ud800": 1}', 422, "Input should be a valid string, unable to parse raw data as a unicode string"),
        ('{"text": "a"', 400, "the body is not valid JSON in UTF-8"),
        ('{"text": "a\nb"}', 400, "the body is not valid JSON in UTF-8"),
        (b'{"text": "\xff\xfe"}', 400, "the body is not valid JSON in UTF-8"),
        ("[" * 100_000, 400, "the body is not valid JSON in UTF-8"),
        ('{"text": "a", "threshold": ' + "9" * 10_000 + "}", 400, "the body is not valid JSON in UTF-8"),
    ],
)  # fmt: skip
def test_request_errors_are_one_line(client: TestClient, body: str | bytes, status: int, error: str) -> None:
    response = client.post("/predict", content=body, headers=JSON)
    assert (response.status_code, response.json()) == (status, {"error": error})


def test_errors_do_not_quote_long_keys(client: TestClient) -> None:
    response = client.post("/predict", json={"text": "a", "x" * 5000: 1})
    assert response.status_code == 422
    assert len(response.content) < 200


def test_other_types_paths_and_methods(client: TestClient) -> None:
    form = client.post("/predict", content="text=a", headers={"content-type": "application/x-www-form-urlencoded"})
    assert (form.status_code, form.json()) == (415, {"error": "expected the content type application/json"})
    bare = client.post("/predict", content=b'{"text": "a"}')
    assert (bare.status_code, bare.json()) == (form.status_code, form.json())
    assert client.get("/predict").status_code == 405
    assert client.get("/predict").headers["allow"] == "POST"
    assert client.get("/docs").json() == {"error": "Not Found"}
    assert client.get("/health").json() == {"status": "ok"}


def test_unusual_characters(client: TestClient) -> None:
    strange = "\x00\x01\x1b[0m \u202e New York \ufeff\u2028 😀\u0301"
    [result] = predict(client, text=strange)
    assert "".join(sentence["text"] for sentence in result["sentences"]) == strange
    assert [t for sentence in result["sentences"] for t in types_of(sentence)] == ["Place: New York"]
    [result] = predict(client, text="x" * 100_000)
    assert len(result["sentences"][0]["words"]) == 1


def test_limits_on_size(fake: FakePredictor) -> None:
    with TestClient(make_app(fake, limits=Limits(max_body=1000, max_characters=20))) as client:
        assert predict(client, text="a" * 20)
        for request in ({"text": "a" * 21}, {"texts": ["a" * 11, "b" * 10]}, {"tokens": ["a" * 11, "b" * 10]}):
            response = client.post("/predict", json=request)
            assert (response.status_code, response.json()["error"]) == (413, "the text has 21 characters; the limit is 20")
        for body in (b" " * 1001, iter([b" " * 600, b" " * 600])):  # with and without a Content-Length header
            response = client.post("/predict", content=body, headers=JSON)
            assert (response.status_code, response.json()["error"]) == (413, "the body is larger than 1,000 bytes")
    assert len(fake.batches) == 1


def test_limits_on_time_and_queue(fake: FakePredictor) -> None:
    with TestClient(make_app(fake, limits=Limits(max_requests=2, timeout=2))) as client, ThreadPoolExecutor(2) as threads:
        fake.gate.clear()
        waiting = [threads.submit(client.post, "/predict", json={"text": "first"})]
        wait_until(lambda: fake.batches)
        waiting.append(threads.submit(client.post, "/predict", json={"text": "second"}))
        wait_until(lambda: "spanwise_requests_in_progress 2.0" in client.get("/metrics").text)
        full = client.post("/predict", json={"text": "third"})
        assert (full.status_code, full.headers["retry-after"]) == (503, "1")
        assert client.get("/health").status_code == 200
        for response in waiting:
            assert (response.result().status_code, response.result().json()) == (504, {"error": "no prediction within 2 s"})
        fake.gate.set()
        assert predict(client, text="fourth")
    assert fake.batches == [["first"], ["fourth"]], "a request that timed out before its turn is never predicted"


def test_waiting_requests_are_predicted_together(fake: FakePredictor) -> None:
    texts = [f"{'rain ' * number}New York. And {number}." for number in range(40)]
    with TestClient(make_app(fake)) as client:
        alone = [predict(client, text=text) for text in texts]
        fake.batches.clear()
        fake.gate.clear()
        with ThreadPoolExecutor(41) as threads:
            first = threads.submit(predict, client, text="first")
            wait_until(lambda: fake.batches)
            others = [
                threads.submit(predict, client, text=text, threshold=0.5 * (number % 2)) for number, text in enumerate(texts)
            ]
            wait_until(lambda: "spanwise_requests_in_progress 41.0" in client.get("/metrics").text)
            fake.gate.set()
            assert [other.result() for other in others] == alone
            assert first.result()
        assert [len(batch) for batch in fake.batches] == [1, 40, 40], "the first request, and one batch per threshold"
        assert 'spanwise_batch_requests_bucket{le="64.0"} 42.0' in client.get("/metrics").text


def test_failed_request_does_not_affect_others_and_is_not_logged(fake: FakePredictor, caplog: pytest.LogCaptureFixture) -> None:
    with TestClient(make_app(fake)) as client, ThreadPoolExecutor(3) as threads, caplog.at_level(logging.DEBUG):
        fake.gate.clear()
        first = threads.submit(predict, client, text="first")
        wait_until(lambda: fake.batches)
        bad = threads.submit(client.post, "/predict", json={"text": "the poison secret"})
        good = threads.submit(predict, client, text="New York")
        wait_until(lambda: "spanwise_requests_in_progress 3.0" in client.get("/metrics").text)
        fake.gate.set()
        assert types_of(good.result()[0]["sentences"][0]) == ["Place: New York"]
        assert (bad.result().status_code, bad.result().json()) == (500, {"error": "internal error"})
        assert first.result()
        assert predict(client, text="next request")
    messages = [record.getMessage() for record in caplog.records if record.name.startswith(("spanwise", "uvicorn"))]
    assert len(messages) == 1
    assert messages[0].startswith("ZeroDivisionError\n")
    assert "in predict_chunk" in messages[0]
    assert "the secret" not in messages[0].replace('raise ZeroDivisionError("the secret text")', ""), (
        "only as a line of code in the traceback"
    )


def test_an_error_of_the_model_is_not_one_of_the_request(
    client: TestClient, fake: FakePredictor, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*args: Any, **options: Any) -> Any:
        raise SpanwiseError("/srv/models/secret/head.onnx: the graph does not fit the exported model")

    monkeypatch.setattr(fake, "predict_chunk", fail)
    response = client.post("/predict", json={"text": "New York"})
    assert (response.status_code, response.json()) == (500, {"error": "internal error"})
    [message] = [record.getMessage() for record in caplog.records if record.name == "spanwise.serve"]
    assert message.startswith("SpanwiseError\n")
    assert client.post("/predict", json={"text": "a", "threshold": {"Plase": 0.2}}).status_code == 422


def test_the_token(fake: FakePredictor) -> None:
    with TestClient(make_app(fake, token="open-sesame")) as client:
        assert client.get("/health").status_code == 200
        assert client.get("/").status_code == 200
        for headers in (
            {},
            {"authorization": "Bearer open"},
            {"authorization": "open-sesame"},
            {"authorization": b"Bearer \xff"},
        ):
            for response in (
                client.post("/predict", json={"text": "a"}, headers=headers),
                client.get("/metrics", headers=headers),
            ):
                assert response.status_code == 401
                assert response.headers["www-authenticate"] == "Bearer"
        for scheme in ("Basic", "basic"):
            basic = {"authorization": f"{scheme} {b64encode(b'user:open-sesame').decode()}"}
            assert client.get("/metrics", headers=basic).status_code == 200
        assert client.get("/metrics", headers={"authorization": "bearer open-sesame"}).status_code == 200
        valid = {"authorization": "Bearer open-sesame"}
        assert client.post("/predict", json={"text": "a"}, headers=valid).status_code == 200
        assert client.get("/metrics", headers=valid).status_code == 200
        assert "open-sesame" not in client.get("/").text


def test_metrics_parse_as_prometheus_text(client: TestClient) -> None:
    from prometheus_client.parser import text_string_to_metric_families

    predict(client, text=TEXT)
    client.post("/predict", json={})
    client.get("/unknown/path")
    response = client.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    samples = {(s.name, *s.labels.values()): s.value for f in text_string_to_metric_families(response.text) for s in f.samples}
    assert samples["spanwise_requests_total", "/predict", "200"] == 1
    assert samples["spanwise_requests_total", "/predict", "422"] == 1
    assert samples["spanwise_requests_total", "other", "404"] == 1
    assert samples["spanwise_sentences_total",] == 2
    assert samples["spanwise_words_total",] == 17
    assert samples["spanwise_requests_in_progress",] == 0


def test_security_headers(client: TestClient) -> None:
    for response in (
        client.get("/"),
        client.get("/unknown"),
        client.post("/predict", json={"text": "a"}),
        client.post("/predict"),
    ):
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["cache-control"] == "no-store"
        assert "default-src 'none'" in response.headers["content-security-policy"]
        assert "unsafe" not in response.headers["content-security-policy"]


def test_openapi_document(client: TestClient) -> None:
    description = client.get("/openapi.json").json()
    assert set(description["paths"]) == {"/predict", "/health", "/metrics"}
    responses = description["paths"]["/predict"]["post"]["responses"]
    assert set(responses) == {"200", "400", "401", "403", "408", "413", "415", "422", "500", "503", "504"}
    assert responses["200"]["content"]["application/json"]["schema"]["$ref"].endswith("/PredictResponse")
    names = ["Disease", "Organization", "Place", "treats"]
    names += ["entity:Disease", "entity:Organization", "entity:Place", "relation:treats"]
    number, by_type = description["components"]["schemas"]["TextRequest"]["properties"]["threshold"]["oneOf"]
    assert (number["type"], by_type["propertyNames"]) == ("number", {"enum": names})
    assert "http" not in json.dumps(description), "no external URL"


def test_shutdown_completes_open_requests(fake: FakePredictor) -> None:
    with TestClient(make_app(fake)) as client, ThreadPoolExecutor(1) as threads:
        fake.gate.clear()
        response = threads.submit(predict, client, text="New York")
        wait_until(lambda: fake.batches)
        threading.Timer(0.1, fake.gate.set).start()
        assert response.result()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("model")]


def test_timeout_of_the_body() -> None:
    sent: list[Any] = []

    async def fail(*args: object) -> None:
        raise AssertionError("the application was called")

    async def never() -> Any:
        await asyncio.sleep(60)

    async def record(message: Any) -> None:
        sent.append(message)

    middleware = RequestMiddleware(fail, Limits(timeout=0.01), Metrics(), None)
    asyncio.run(middleware({"type": "http", "path": "/predict", "method": "POST", "headers": []}, never, record))
    assert sent[0]["status"] == 408
    assert json.loads(sent[1]["body"]) == {"error": "the body did not arrive within 0.01 s"}


def test_long_text_does_not_delay_short_ones(fake: FakePredictor) -> None:
    long = "New York.\n" * 2000  # three words a line
    with TestClient(make_app(fake)) as client, ThreadPoolExecutor(2) as threads:
        fake.gate.clear()
        slow = threads.submit(predict, client, text=long)
        wait_until(lambda: fake.batches)
        quick = threads.submit(predict, client, text="Quick.")
        wait_until(lambda: "spanwise_requests_in_progress 2.0" in client.get("/metrics").text)
        fake.gate.set()
        assert quick.result()
        [result] = slow.result()
    assert [types_of(sentence) for sentence in result["sentences"]] == [["Place: New York"]] * 2000
    assert "Quick." in fake.batches[1]
    assert len(fake.batches) > 5
    assert max(map(len, fake.batches)) <= WORDS_PER_SHARE // 3 + 1


def test_timed_out_text_is_dropped(fake: FakePredictor) -> None:
    with TestClient(make_app(fake, limits=Limits(timeout=1))) as client:
        fake.gate.clear()
        assert client.post("/predict", json={"text": "New York.\n" * 2000}).status_code == 504
        fake.gate.set()
        assert predict(client, text="Quick.")
    assert len(fake.batches) == 2


def test_too_long_sentence(client: TestClient) -> None:
    assert predict(client, tokens=["a"] * 1000)
    response = client.post("/predict", json={"text": "a " * 1001})
    assert response.status_code == 422
    assert response.json()["error"].startswith("a sentence has 1,001 words; the limit is 1,000")


def test_context_does_not_depend_on_turns(fake: FakePredictor, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each sentence gets its neighbours of the same text as context, in every turn."""
    seen: dict[str, set[tuple[str | None, int | None]]] = {}

    def predict_chunk(sentences: Any, context: Any, **options: Any) -> Any:
        positions = {(sentence.document, sentence.position) for sentence in (*sentences, *context)}
        for sentence in sentences:
            seen[sentence.id] = {(sentence.document, sentence.position + step) for step in (-1, 1)} & positions
        return sentences

    monkeypatch.setattr(fake, "predict_chunk", predict_chunk)
    with TestClient(make_app(fake)) as client:
        predict(client, texts=["Rain came.\n" * 1500, "Rain."])
    assert len(seen) == 1501
    at_the_edge = [name for name, neighbours in seen.items() if len(neighbours) < 2]
    assert len(at_the_edge) == 3, "the first and last sentence of one text, and the only one of the other"
