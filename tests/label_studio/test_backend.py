"""The protocol of Label Studio's machine learning backends, with requests as a real server sends them."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import label_studio_requests as requests
import pytest
from fake_service import TEXT, FakePredictor
from fastapi.testclient import TestClient

from spanwise.formats import Ledger
from spanwise.label_studio import messages
from spanwise.label_studio.backend import Backend, saved_changes
from spanwise.label_studio.configuration import write_configuration
from spanwise.serve.app import make_app
from spanwise.serve.hosts import AllowedHosts
from spanwise.serve.limits import Limits


@pytest.fixture
def client() -> Iterator[TestClient]:
    with TestClient(make_app(FakePredictor(), title="run", extension=Backend())) as running:
        yield running


def results(client: TestClient, request: dict[str, Any]) -> list[dict[str, Any]]:
    response = client.post("/predict", json=request)
    assert response.status_code == 200, response.text
    predictions: list[dict[str, Any]] = response.json()["results"]
    return predictions


def test_connecting_a_model(client: TestClient) -> None:
    assert client.get("/health").status_code == 200
    assert client.post("/setup", json=requests.setup()).json() == {"model_version": "run"}
    assert client.get("/versions").json() == {"versions": ["run"]}


def test_predictions_are_nested_regions_and_relations(client: TestClient) -> None:
    first, second = results(client, requests.predict(requests.task(), requests.task("No entity here.", 2)))
    assert second == {"result": [], "score": 1.0, "model_version": "run"}
    assert first["model_version"] == "run"
    assert first["score"] == 0.6, "the least certain entity"
    regions = [result for result in first["result"] if result["type"] == "labels"]
    assert {(result["from_name"], result["to_name"]) for result in regions} == {("label", "text")}
    labelled = [(region["value"]["text"], *region["value"]["labels"]) for region in regions]
    assert labelled == [
        ("New York University Hospital", "Organization"), ("New York University", "Organization"), ("New York", "Place"),
        ("ovarian cancer", "Disease"), ("New York", "Place"),
    ], "without the discontinuous entity"  # fmt: skip
    for item in regions:
        assert TEXT[item["value"]["start"] : item["value"]["end"]] == item["value"]["text"]
    texts = {item["id"]: item["value"]["text"] for item in regions}
    assert len(texts) == len(regions)
    relations = [result for result in first["result"] if result["type"] == "relation"]
    assert {(texts[r["from_id"]], *r["labels"], texts[r["to_id"]]) for r in relations} == {
        ("New York University Hospital", "treats", "ovarian cancer"), ("New York University", "treats", "ovarian cancer"),
    }  # fmt: skip


def test_only_labels_of_the_project_are_predicted(client: TestClient) -> None:
    xml = (
        '<View><Labels name="a" toName="body"><Label value="Place"/></Labels><Labels name="b" toName="body">'
        '<Label value="Disease"/></Labels><Text name="body" value="$article"/></View>'
    )
    request = requests.predict({"id": 5, "data": {"article": TEXT, "text": "New York"}}, configuration=xml)
    [prediction] = results(client, request)
    assert [(r["from_name"], r["to_name"], *r["value"]["labels"]) for r in prediction["result"]] == [
        ("a", "body", "Place"), ("b", "body", "Disease"), ("a", "body", "Place"),
    ]  # fmt: skip
    xml = write_configuration(["Disease", "Organization"], ["causes"])
    [prediction] = results(client, requests.predict(requests.task(), configuration=xml))
    assert {result["type"] for result in prediction["result"]} == {"labels"}, "the relation treats is not in the project"


def test_characters_are_code_points_and_markup_is_skipped(client: TestClient) -> None:
    [prediction] = results(client, requests.predict(requests.task("😀 New York")))
    assert (prediction["result"][0]["value"]["start"], prediction["result"][0]["value"]["end"]) == (2, 10)
    page = {"id": 1, "data": {"page": "<p>In <b>New</b> York &amp; <i>Oslo</i></p>"}}
    [prediction] = results(client, requests.predict(page, configuration=requests.HYPERTEXT))
    [result] = prediction["result"]
    assert result["type"] == "hypertextlabels"
    assert result["value"]["globalOffsets"] == {"start": 3, "end": 11}
    assert (result["value"]["hypertextlabels"], result["value"]["text"]) == (["Place"], "New York")


# Label Studio counts the text nodes of the body and its <br>; these are the offsets in Chromium.
PAGE = (
    "  \n <style>b {}</style> <h1>😀 News &amp; more</h1>\n<p>The <b>New York</b> office<br/>or <i>New</i> York.</p>\n"
    "<style>p {}</style><p>In New York<!-- New York --></p><pre>\n New York</pre><script>var x;</script>New York<hr>"
    "<table><tr>\r\n<td>New York</td></tr></table>&nbsp;New York"
)
SHOWN = [18, 37, 54, 63, 71, 80, 89]  # of each "New York"


def test_offsets_in_html(client: TestClient) -> None:
    task = {"id": 1, "data": {"page": PAGE}}
    [prediction] = results(client, requests.predict(task, configuration=requests.HYPERTEXT))
    assert [result["value"]["globalOffsets"]["start"] for result in prediction["result"]] == SHOWN
    region = {"id": "a", "to_name": "html", "type": "hypertextlabels"}
    annotated = [
        {**region, "value": {"globalOffsets": {"start": start, "end": start + 8}, "hypertextlabels": ["Place"]}}
        for start in SHOWN
    ]
    message = requests.saved(result=annotated) | {"project": requests.project(requests.HYPERTEXT), "task": task}
    [change], _ = saved_changes(messages.validate(messages.AnnotationsSaved, message))
    sentences = list(change.sentences(Path("page"), 1, Ledger()))
    entities = [sentence.text_of(entity) for sentence in sentences for entity in sentence.entities]
    assert entities == ["New York"] * len(SHOWN)


def test_requests_of_the_service_itself_still_work(client: TestClient) -> None:
    for text in ("tasks", 'the "tasks" of New York'):
        response = client.post("/predict", json={"text": text})
        assert response.json()["results"][0]["sentences"][0]["text"] == text


@pytest.mark.parametrize(
    ("path", "body", "status", "error"),
    [
        ("/setup", {}, 422, "schema: Field required"),
        ("/setup", [], 422, "expected a JSON object"),
        ("/setup", requests.setup("<View>"), 422, "labelling configuration:1: not XML: no element found"),
        ("/setup", requests.setup(requests.PEOPLE.replace("Place", "Town")), 422,
         "the model predicts none of the labels of this project (Person, Town); its types are Disease, Organization, Place"),
        ("/predict", requests.predict({"id": 7, "data": {"body": "x"}}), 422,
         "task 7: expected a text in data.text; the keys of data are 'body'"),
        ("/predict", requests.predict({"id": 7, "data": {"text": 5}}), 422,
         "task 7: expected a text in data.text; the keys of data are 'text'"),
        ("/predict", requests.predict({"id": 7}), 422, "tasks.0.data: Field required"),
        ("/predict", {"tasks": [requests.task()]}, 422, "label_config: Field required"),
        ("/predict", requests.predict(requests.task(), configuration="<View/>"), 422,
         "labelling configuration: expected <Text> or <HyperText> with <Labels> for it, each with a name and a <Label>"),
        ("/predict", requests.predict(*[requests.task("a")] * 3), 413, "the request has 3 tasks; the limit is 2 (--max-texts)"),
        ("/predict", requests.predict(requests.task("a" * 101)), 413,
         "the texts have 101 characters; the limit is 100 (--max-characters)"),
        ("/webhook", {}, 422, "action: Field required"),
        ("/webhook", requests.START_TRAINING, 409, "this service does not learn; start it with --learn"),
    ],
)  # fmt: skip
def test_wrong_requests(path: str, body: Any, status: int, error: str) -> None:
    with TestClient(make_app(FakePredictor(), limits=Limits(max_texts=2, max_characters=100), extension=Backend())) as client:
        response = client.post(path, json=body)
    assert (response.status_code, response.json()) == (status, {"error": error})


def test_surrogates_content_types_and_large_bodies() -> None:
    limits = Limits(max_body=5000)
    with TestClient(make_app(FakePredictor(), limits=limits, extension=Backend())) as client:
        headers = {"content-type": "application/json"}
        body = b'{"tasks": [{"id": 1, "data": {"text": "\\ud800"}}], "label_config": %s}'
        xml = b"\"<View><Labels name='l' toName='t'><Label value='a'/></Labels><Text name='t' value='$text'/></View>\""
        response = client.post("/predict", content=body % xml, headers=headers)
        assert (response.status_code, response.json()["error"]) == (
            422, "task 1: data.text: unpaired surrogate; expected valid Unicode"
        )  # fmt: skip
        for path in ("/setup", "/webhook"):
            assert client.post(path, content=b"{}", headers={"content-type": "text/plain"}).status_code == 415
            assert client.post(path, content=b"{", headers=headers).status_code == 400
            assert client.post(path, content=b"[" * 1500, headers=headers).status_code == 413
            assert client.post(path, content=b" " * 5001, headers=headers).status_code == 413
            assert client.get(path).status_code == 405


def test_the_token_is_the_password_of_the_model_or_a_header_of_the_webhook() -> None:
    with TestClient(make_app(FakePredictor(), token="open-sesame", extension=Backend())) as client:
        basic = b64encode(b"anyone:open-sesame").decode()
        for path, body in (("/setup", requests.setup()), ("/predict", requests.predict()), ("/webhook", requests.deleted(1))):
            assert client.post(path, json=body).status_code == 401
            assert client.post(path, json=body, headers={"authorization": "Basic eDp5"}).status_code == 401
            for value in (f"Basic {basic}", "Bearer open-sesame"):
                assert client.post(path, json=body, headers={"authorization": value}).status_code == 200
        assert client.get("/versions").status_code == 401
        assert client.get("/health").status_code == 200


def test_host_names_are_checked() -> None:
    with TestClient(make_app(FakePredictor(), hosts=AllowedHosts(), extension=Backend()), base_url="http://evil.org") as client:
        assert client.post("/webhook", json=requests.deleted(1)).status_code == 403


def test_without_the_option_there_are_no_routes() -> None:
    with TestClient(make_app(FakePredictor())) as client:
        assert client.post("/setup", json=requests.setup()).status_code == 404
        assert client.post("/predict", json=requests.predict(requests.task())).status_code == 422
