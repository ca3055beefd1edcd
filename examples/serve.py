"""A web service for a saved model: predictions with intervals, quantiles and the training rows behind them.

    u.save("model.ibug", compress=False)  # so that workers can map the file and share its memory
    python examples/serve.py model.ibug --port 8000 --workers 2

    curl localhost:8000/predict -H "content-type: application/json" -d '{"row": {"age": 3, "bmi": 2}, "coverage": 0.9}'

``POST /predict`` answers one row, ``POST /predict/batch`` many, ``POST /point`` the model's own prediction alone, and
``GET /health`` says which worker answers with which model. Needs ``ibug-learn[serve]`` and the model's library.
"""

import argparse
import asyncio
import contextlib
import json
import math
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
import uvicorn
from fastapi import FastAPI, HTTPException
from fastapi.exceptions import RequestValidationError
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, create_model
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.supervisors import multiprocess

import ibug
from ibug.exceptions import InvalidInputError

Probability = Annotated[float, Field(gt=0, lt=1)]
BUSY = "The service is busy. Try again in a second."
MOST_ERRORS = 100  # told in one answer


class Limits(BaseModel):
    """The limits of each worker."""

    threads: int = 1  # predictions at a time; the search releases Python's lock
    in_flight: int = 128  # requests that run or wait; more are refused for now
    rows: int = 10_000  # in one request
    bytes: int = 8_000_000  # of one request
    buffer: int = 256_000_000  # bytes of all requests that are being received
    seconds: float = 10.0  # for one request to be received


class Options(BaseModel):
    """What a client may ask for in addition to the point prediction."""

    model_config = ConfigDict(extra="forbid")
    coverage: Probability = 0.9
    quantiles: list[Probability] = Field(default=[], max_length=99)
    neighbors: int = Field(default=0, ge=0, le=100)


class Limiter:
    """Refuse requests that are too large, too slow or too many, before they are parsed.

    413: the body is larger than allowed, or has too many rows. 408: it has not come in time. 503 with Retry-After: as
    many requests as allowed are in flight. Health checks always pass. A request counts as in flight from the time when
    all of it is there until its answer begins: clients that send or read slowly do not shut others out.
    """

    def __init__(self, app: ASGIApp, limits: Limits) -> None:
        self.app, self.limits, self.in_flight, self.buffered = app, limits, 0, 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http" or scope["method"] != "POST":
            await self.app(scope, receive, send)
            return
        body, unread = bytearray(), [1]

        async def hear() -> Message:
            message = await receive()
            if not message.get("more_body", False):
                unread.clear()
            return message

        try:
            if await self.accepted(scope, hear, body):
                await self.answered(scope, bytes(body), receive, send)
        except HTTPException as refused:
            if refused.status_code == 503:
                await answer(refused, {"Retry-After": "1"})(scope, receive, send)
            else:
                self.buffered -= len(body)
                body.clear()
                await self.close(answer(refused, {"Connection": "close"}), scope, hear, send, unread)
        finally:
            self.buffered -= len(body)

    async def accepted(self, scope: Scope, receive: Receive, body: bytearray) -> bool:
        """Read the body of a request that is to be answered; False if the client leaves meanwhile."""
        length = dict(scope["headers"]).get(b"content-length", b"0")
        if not length.isdigit() or int(length) > self.limits.bytes:
            raise self.too_large("bytes")
        try:
            if not await asyncio.wait_for(self.received(receive, body), self.limits.seconds):
                return False
        except TimeoutError:
            raise HTTPException(408, f"A request has to come within {self.limits.seconds:g} seconds.") from None
        if scope["path"].endswith("/batch") and has_more_rows(body, self.limits.rows):
            raise self.too_large("rows")
        if self.in_flight >= self.limits.in_flight:
            raise HTTPException(503, BUSY)
        return True

    async def close(self, refusal: Response, scope: Scope, receive: Receive, send: Send, unread: Sequence[int]) -> None:
        """Answer, and read and drop what the client still sends, for as long as a request may take; then close.

        A connection that is closed with unread bytes is reset, and the reset destroys the answer on its way. Many
        clients send all of a body before they read.
        """

        async def unfinished(message: Message) -> None:
            await send({**message, "more_body": True} if message["type"] == "http.response.body" else message)

        async def dropped() -> None:
            while unread:
                await receive()

        await refusal(scope, receive, unfinished)
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(dropped(), self.limits.seconds)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    def too_large(self, unit: str) -> HTTPException:
        """Return the refusal of a request that has too much."""
        most = getattr(self.limits, unit)
        return HTTPException(413, f"A request may have {most} {unit} at most. Send smaller batches.")

    async def received(self, receive: Receive, body: bytearray) -> bool:
        """Read the body, which may be longer than its header says; False if the client leaves meanwhile."""
        more = True
        while more:
            message = await receive()
            if message["type"] != "http.request":
                return False
            part = message.get("body", b"")
            body += part
            self.buffered += len(part)
            more = message.get("more_body", False)
            if len(body) > self.limits.bytes:
                raise self.too_large("bytes")
            if self.buffered > self.limits.buffer:
                raise HTTPException(503, BUSY)
        return True

    async def answered(self, scope: Scope, body: bytes, receive: Receive, send: Send) -> None:
        """Pass a request on, and count it until its answer begins."""
        parts: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
        held = [1]

        async def replay() -> Message:
            return parts.pop() if parts else await receive()

        async def told(message: Message) -> None:
            self.in_flight -= held.pop() if held else 0
            await send(message)

        self.in_flight += 1
        try:
            await self.app(scope, replay, told)
        finally:
            self.in_flight -= held.pop() if held else 0


def answer(refused: HTTPException, headers: dict[str, str]) -> Response:
    """Return a refusal as JSON."""
    return JSONResponse({"detail": refused.detail}, refused.status_code, headers)


def has_more_rows(body: bytes, most: int) -> bool:
    """Tell whether a batch has more rows than allowed, without parsing it: each row is an object inside of one."""
    if body.count(b"{") - 1 <= most:
        return False
    # Braces in texts do not count; quotes in texts are behind a backslash.
    marks = body.replace(rb"\\", b"").replace(rb"\"", b"").translate(None, NO_MARKS)
    return sum(part.count(b"{") for part in marks.split(b'"')[::2]) - 1 > most


NO_MARKS = bytes(set(range(256)) - set(b'"{'))


class Service:
    """A loaded model, and answers from it."""

    def __init__(self, path: Path, limits: Limits) -> None:
        self.u = ibug.load(path, mmap=True)
        one_thread(self.u)
        self.limits = limits
        self.pool = ThreadPoolExecutor(limits.threads)
        self.named = hasattr(self.u, "feature_names_in_")
        self.columns = [
            {**column, "name": column["name"] if self.named else f"column_{i}"}
            for i, column in enumerate(self.u.feature_types_)
        ]
        fields: dict[str, Any] = {f"f{i}": (_type(c), Field(alias=c["name"])) for i, c in enumerate(self.columns)}
        self.row_type = create_model("Row", __config__=ConfigDict(extra="forbid"), **fields)

    async def run(self, work: Any, *arguments: Any) -> Any:
        """Compute in a thread, so that other requests are read and health checks answered meanwhile."""
        return await asyncio.get_running_loop().run_in_executor(self.pool, work, *arguments)

    def point(self, rows: list[Any]) -> list[float | None]:
        """Return the model's own predictions."""
        return _plain(self.u.predict(self.frame(rows)))

    def predict(self, rows: list[Any], options: Options) -> list[dict[str, Any]]:
        """Return predictions with their intervals, and quantiles and neighbours where they are asked for."""
        if options.neighbors and not hasattr(self.u, "kneighbors"):
            raise InvalidInputError(f"A {type(self.u).__name__} has no neighbours to show: ask without neighbors.")
        X = self.frame(rows)
        predicted, *near = self.asked(X, options.neighbors)
        columns = [_plain(values) for values in (self.u.predict(X), *predicted.interval(options.coverage))]
        answers = [dict(zip(("prediction", "lower", "upper"), row, strict=True)) for row in zip(*columns, strict=True)]
        if options.quantiles:
            for answer, values in zip(answers, predicted.ppf(np.array([options.quantiles])), strict=True):
                answer["quantiles"] = _plain(values)
        if options.neighbors:
            for answer, affinities, found in zip(answers, *near, strict=True):
                pairs = zip(found.tolist(), affinities.tolist(), strict=True)
                answer["neighbors"] = [{"row": row, "affinity": affinity} for row, affinity in pairs]
        return answers

    def asked(self, X: Any, neighbors: int) -> tuple[Any, ...]:
        """Return the distributions, and with neighbours their affinities and row numbers, by one search."""
        try:
            return self.u.predict_with_neighbors(X, neighbors) if neighbors else (self.u.predict_dist(X),)
        except InvalidInputError:
            raise
        except Exception as error:
            if not pd.DataFrame(X).isna().to_numpy().any():
                raise
            raise InvalidInputError(f"The model does not take these missing values: {error}") from error

    def frame(self, rows: list[Any]) -> Any:
        """Return rows in the form that the model was trained on."""
        values = {c["name"]: [getattr(row, f"f{i}") for row in rows] for i, c in enumerate(self.columns)}
        if not self.named:
            return np.array(list(values.values()), np.float64).T
        columns = zip(values.items(), self.columns, strict=True)
        return pd.DataFrame({name: _series(column, c) for (name, column), c in columns})


def create_app(path: Path | None = None, limits: Limits | None = None) -> FastAPI:
    """Make the application; uvicorn's workers find model and limits in the environment."""
    path = path or Path(os.environ["IBUG_SERVE_MODEL"])
    limits = limits or Limits.model_validate_json(os.environ.get("IBUG_SERVE_LIMITS", "{}"))
    service = Service(path, limits)
    app = FastAPI(title="ibug", summary="Predictions with their uncertainty")
    app.add_middleware(Limiter, limits=limits)
    one = create_model("One", __base__=Options, row=(service.row_type, ...))
    batch = create_model(
        "Batch", __base__=Options, rows=(list[service.row_type], Field(min_length=1, max_length=limits.rows))
    )

    @app.get("/health")
    async def health() -> dict[str, Any]:
        facts = {"model": type(service.u).__name__, "features": len(service.columns), "ibug": ibug.__version__}
        return {"status": "ok", "pid": os.getpid(), **facts}

    @app.post("/predict")
    async def predict(request: one) -> Any:
        answers = await service.run(service.predict, [request.row], request)
        return JSONResponse(answers[0])

    @app.post("/predict/batch")
    async def predict_batch(request: batch) -> Any:
        return JSONResponse({"predictions": await service.run(service.predict, request.rows, request)})

    @app.post("/point")
    async def point(request: one) -> Any:
        (value,) = await service.run(service.point, [request.row])
        return JSONResponse({"prediction": value})

    @app.exception_handler(RequestValidationError)
    async def explain(_: Any, error: RequestValidationError) -> Response:
        # Without the values themselves: NaN and half a surrogate pair cannot be sent back.
        told = [{name: each[name] for name in ("type", "loc", "msg")} for each in error.errors()[:MOST_ERRORS]]
        return Response(json.dumps({"detail": told}), 422, media_type="application/json")

    @app.exception_handler(InvalidInputError)
    async def refuse(_: Any, error: InvalidInputError) -> JSONResponse:
        return JSONResponse({"detail": str(error)}, 422)

    return app


def one_thread(part: Any) -> None:
    """Make a regressor and the fitted models inside use one thread each: requests already run in parallel.

    For a single row, LightGBM waits longer for its threads than it computes; on busy processors, many times as long.
    """
    if hasattr(part, "get_params"):
        part.set_params(**{name: 1 for name in part.get_params() if name.split("__")[-1] == "n_jobs"})
    for inner in ("estimator_", "regressor_"):  # those of wrappers, beside the unfitted ones in their parameters
        if hasattr(part, inner):
            one_thread(getattr(part, inner))
    for member in getattr(part, "estimators_", ()):
        one_thread(member)


def _type(column: dict[str, Any]) -> Any:
    """Return the type of a column's values in JSON; null is a missing value."""
    name = column["dtype"].lower().partition("[")[0].replace("double", "float64")  # "double[pyarrow]"
    if "categories" in column:
        return Literal[tuple(column["categories"])] | None
    if name.startswith("bool"):
        return bool | None
    if name.startswith(("int", "uint")):
        range_ = np.iinfo(name)
        return Annotated[int, Field(ge=int(range_.min), le=int(range_.max))] | None
    if name.startswith("float"):
        most = float(np.finfo(name).max)
        return Annotated[float, Field(ge=-most, le=most, allow_inf_nan=False)] | None
    return Annotated[str, AfterValidator(_encodable)] | None


def _encodable(text: str) -> str:
    text.encode()  # which half a surrogate pair is not: a ValueError
    return text


def _series(values: list[Any], column: dict[str, Any]) -> Any:
    """Return the values of a column as the model knows them."""
    if "categories" in column:
        return pd.Series(values, dtype=pd.CategoricalDtype(column["categories"]))
    kind = column["dtype"]
    if None in values and kind.startswith(("int", "uint", "bool")):  # NumPy's, which have no missing value
        kind = "float64"
    return pd.Series(values, dtype=kind)


def _plain(values: Any) -> list[float | None]:
    """Return numbers for JSON, which has no infinity: conformal intervals of too few rows become null."""
    return [value if math.isfinite(value) else None for value in np.asarray(values, np.float64).tolist()]


class Worker(multiprocess.Process):
    """A worker process whose death is seen at once.

    uvicorn's parent asks its workers in turn whether they are alive. It keeps their end of the pipe open itself. So if
    a worker is killed while it is asked, the parent waits until the timeout, and starts no other worker meanwhile.
    """

    def start(self) -> None:
        """Start the process, and leave its end of the pipe to it alone."""
        super().start()
        self.child_conn.close()


def main() -> None:
    """Start the workers, and replace those that die; SIGTERM lets running requests finish."""
    parser = argparse.ArgumentParser(description="Serve a saved model of ibug.")
    parser.add_argument("model", type=Path)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--workers", type=int, default=1)
    for name, field in Limits.model_fields.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=field.annotation, default=field.default)
    options = parser.parse_args()
    limits = Limits(**{name: getattr(options, name) for name in Limits.model_fields})
    os.environ["IBUG_SERVE_MODEL"] = str(options.model.resolve())
    os.environ["IBUG_SERVE_LIMITS"] = limits.model_dump_json()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    multiprocess.Process = Worker
    uvicorn.run(
        "serve:create_app",
        factory=True,
        app_dir=str(Path(__file__).parent),
        host=options.host,
        port=options.port,
        workers=options.workers,
        timeout_graceful_shutdown=30,
        timeout_worker_healthcheck=60,  # a worker that is still importing on a busy machine is not dead
        access_log=False,
    )


if __name__ == "__main__":
    main()
