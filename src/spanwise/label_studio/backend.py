"""The protocol of Label Studio's machine learning backends, as routes of a service.

Label Studio calls ``/setup`` with the labelling configuration when the model is connected and before it
asks for predictions, ``/predict`` with tasks, ``/webhook`` after changes of annotations, and
``/versions``. It closes connections to ``/setup`` after three seconds and to ``/webhook`` after one, and
it repeats no request.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response

from spanwise.core.counting import counted
from spanwise.core.errors import FormatError, SpanwiseError
from spanwise.formats import Ledger
from spanwise.label_studio import messages
from spanwise.label_studio.collection import Change
from spanwise.label_studio.configuration import Configuration, parse_configuration
from spanwise.label_studio.learner import Learner
from spanwise.label_studio.tasks import simplify_results, text_of, to_prediction
from spanwise.serve.batching import Query, Results
from spanwise.serve.errors import RequestError
from spanwise.serve.extension import Encoder, Extension, ServedModel, Service
from spanwise.serve.middleware import to_bytes

SAVED = ("ANNOTATION_CREATED", "ANNOTATIONS_CREATED", "ANNOTATION_UPDATED")
JSON = "application/json"


class Backend(Extension):
    """Answers Label Studio. With a learner, annotations are collected and trainings can be started."""

    posts = frozenset(("/setup", "/webhook"))
    gets = frozenset(("/versions", "/learning"))

    def __init__(self, learner: Learner | None = None) -> None:
        self.learner = learner

    @asynccontextmanager
    async def running(self, service: Service) -> AsyncIterator[None]:
        if self.learner is None:
            yield
            return
        async with self.learner.running(service):
            yield

    def add_routes(self, app: FastAPI, service: Service) -> None:
        def add(path: str, answer: Callable[[Any], Awaitable[dict[str, Any]]]) -> None:
            """Add a route whose body is parsed in a thread if it is large."""

            async def respond(request: Request) -> Response:
                body, content_type = await request.body(), request.headers.get("content-type", "")
                value = await service.workers.call(len(body), messages.parse_body, body, content_type, service.limits)
                return Response(to_bytes(await answer(value)), media_type=JSON)

            app.add_route(path, respond, methods=["POST"], include_in_schema=False)

        async def setup(value: Any) -> dict[str, Any]:
            configuration = parse_configuration(messages.validate(messages.SetupRequest, value).configuration)
            self._check_types(configuration, service.model)
            return {"model_version": service.model.title}

        async def webhook(value: Any) -> dict[str, Any]:
            return await self._handle_action(value, service)

        add("/setup", setup)
        add("/webhook", webhook)

        @app.get("/versions", include_in_schema=False)
        async def versions() -> dict[str, Any]:
            return {"versions": [service.model.title]}

        if self.learner is not None:
            learner = self.learner

            @app.get("/learning", include_in_schema=False)
            async def learning() -> dict[str, Any]:
                return learner.status

    def parse(self, body: bytes, content_type: str, service: Service, model: ServedModel) -> tuple[Query, Encoder] | None:
        """Parse a request with tasks; other requests to ``/predict`` are those of the service itself."""
        if b'"tasks"' not in body:
            return None
        value, limits = messages.parse_body(body, content_type, service.limits), service.limits
        if not isinstance(value, dict) or "tasks" not in value:
            return None
        request = messages.validate(messages.PredictRequest, value)
        count = len(request.tasks)
        if count > limits.max_texts:
            raise RequestError(413, f"the request has {count:,} tasks; the limit is {limits.max_texts:,} (--max-texts)")
        configuration = parse_configuration(request.label_config)
        texts = [text_of(task.data, configuration, task.id) for task in request.tasks]
        query = Query([text.text for text in texts])
        if query.characters > limits.max_characters:
            problem = f"the texts have {query.characters:,} characters; the limit is {limits.max_characters:,}"
            raise RequestError(413, f"{problem} (--max-characters)")

        def encode(results: Results) -> bytes:
            predictions = zip(results, texts, strict=True)
            return to_bytes({"results": [to_prediction(rows, text, configuration, model.title) for rows, text in predictions]})

        return query, encode

    def _check_types(self, configuration: Configuration, model: ServedModel) -> None:
        """Refuse a project for which nothing can be predicted, unless the model can learn its labels."""
        types = model.predictor.types
        if self.learner is None and not set(types) & set(configuration.types):
            shown = ", ".join(configuration.types[:10])
            raise SpanwiseError(
                f"the model predicts none of the labels of this project ({shown}); its types are {', '.join(types[:10])}"
            )

    async def _handle_action(self, value: Any, service: Service) -> dict[str, Any]:
        action = messages.validate(messages.Action, value).action
        learner = self.learner
        if action == "START_TRAINING":
            if learner is None:
                raise RequestError(409, "this service does not learn; start it with --learn")
            return {"status": learner.train(service)}
        if learner is None:
            return {"status": "ignored"}
        problems: list[str] = []
        if action in SAVED:
            changes, problems = await asyncio.to_thread(saved_changes, messages.validate(messages.AnnotationsSaved, value))
        elif action == "ANNOTATIONS_DELETED":
            deleted = messages.validate(messages.AnnotationsDeleted, value)
            changes = [Change(deleted.project.id, item.id, is_deleted=True) for item in deleted.annotations]
        elif action == "TASKS_DELETED":
            tasks = messages.validate(messages.TasksDeleted, value)
            ids = [id for task in tasks.tasks for id in learner.collection.of_task(tasks.project.id, task.id)]
            changes = [Change(tasks.project.id, id, is_deleted=True) for id in ids]
        else:
            return {"status": "ignored"}
        stored = [await learner.add(change, service) for change in changes]
        if problems:
            raise RequestError(422, problems[0])
        return {"status": "stored" if any(stored) else "known", "annotations": learner.collection.annotations}


def saved_changes(message: messages.AnnotationsSaved) -> tuple[list[Change], list[str]]:
    """Convert saved annotations; return also the problems of those that cannot be read."""
    project = message.project
    if project.label_config is None:
        raise RequestError(422, f"project {project.id} is unknown: expected its label_config")
    if len(message.annotation) != len(message.task):
        raise RequestError(422, f"expected a task for each of {counted(len(message.annotation), 'annotation')}")
    configuration = parse_configuration(project.label_config)
    changes, problems = [], []
    for annotation, task in zip(message.annotation, message.task, strict=True):
        try:
            changes.append(_saved_change(annotation, task, project.id, configuration))
        except FormatError as error:
            problems.append(f"annotation {annotation.id}: {error.problem}")
        except UnicodeEncodeError:
            problems.append(f"annotation {annotation.id}: unpaired surrogate; expected valid Unicode")
        except SpanwiseError as error:
            problems.append(str(error))
    return changes, problems


def _saved_change(
    annotation: messages.Annotation, task: messages.Task, project: int, configuration: Configuration
) -> Change:  # fmt: skip
    text = text_of(task.data, configuration, task.id)
    change = Change(
        project, annotation.id, task.id, text.text, simplify_results(annotation.result or [], text, configuration),
        configuration.types, annotation.updated_at, bool(annotation.was_cancelled), bool(annotation.ground_truth),
    )  # fmt: skip
    change.to_line().encode()
    list(change.sentences(Path("annotation"), 1, Ledger()))
    return change
