"""The example service, in process and as processes on loopback."""

import asyncio
import concurrent.futures
import contextlib
import http.client
import importlib.util
import json
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

for _library in ("fastapi", "uvicorn", "httpx", "pandas"):
    pytest.importorskip(_library, reason="the extra serve and httpx are not installed")
lightgbm = pytest.importorskip("lightgbm")

import httpx
import pandas as pd
import pydantic
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import GradientBoostingRegressor

from ibug import IBUGRegressor, LeafIndex

pytestmark = pytest.mark.once

SCRIPT = Path(__file__).parents[2] / "examples" / "serve.py"


class InProcess:
    """A client of an application, without a server."""

    def __init__(self, app):
        self.app = app

    def post(self, path, **request):
        async def one():
            transport = httpx.ASGITransport(app=self.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://service") as client:
                return await client.post(path, **request)

        return asyncio.run(one())


ROW = {"size": 0.5, "rooms": 3, "city": "Graz", "stars": 4, "cheap": True, "weight": 2.5}
AS_JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def serve():
    spec = importlib.util.spec_from_file_location("serve", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def u():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "size": rng.normal(size=300),
            "rooms": rng.integers(1, 6, 300),
            "city": pd.Categorical(rng.choice(["Bern", "Graz", "Lyon"], 300)),
            "stars": rng.integers(1, 6, 300).astype(np.int8),
            "cheap": rng.integers(0, 2, 300).astype(bool),
            "weight": rng.normal(size=300).astype(np.float32),
        }
    )
    y = X["rooms"] + 2.0 * X["city"].cat.codes + rng.normal(size=300)
    model = lightgbm.LGBMRegressor(n_estimators=10, verbose=-1).fit(X[:200], y[:200])
    return IBUGRegressor(model, prefit=True).fit(X[:200], y[:200], X_val=X[200:], y_val=y[200:])


@pytest.fixture(scope="module")
def path(u, tmp_path_factory):
    path = tmp_path_factory.mktemp("serve") / "model.ibug"
    u.save(path, compress=False)
    return path


@pytest.fixture(scope="module")
def client(serve, path):
    return InProcess(serve.create_app(path, serve.Limits(rows=50, bytes=10_000)))


def frame(*rows):
    kinds = {"city": pd.CategoricalDtype(["Bern", "Graz", "Lyon"]), "size": float, "rooms": float, "stars": float}
    return pd.DataFrame(rows).astype(kinds | {"cheap": float, "weight": np.float32})


def test_one_row_with_everything(client, u):
    asked = {"row": ROW, "coverage": 0.5, "quantiles": [0.1, 0.9], "neighbors": 3}
    found = client.post("/predict", json=asked).json()
    X = frame(ROW)
    assert found["prediction"] == u.predict(X)[0]
    assert [found["lower"], found["upper"]] == u.predict_interval(X, 0.5)[0].tolist()
    assert found["quantiles"] == u.predict_quantiles(X, [0.1, 0.9])[0].tolist()
    affinities, rows = u.kneighbors(X, 3)
    expected = [{"row": r, "affinity": a} for r, a in zip(rows[0].tolist(), affinities[0].tolist(), strict=True)]
    assert found["neighbors"] == expected
    assert client.post("/point", json={"row": ROW}).json() == {"prediction": found["prediction"]}


def test_a_batch_with_missing_values(client, u):
    rows = [ROW, *(ROW | {name: None} for name in ROW), dict.fromkeys(ROW)]
    found = client.post("/predict/batch", json={"rows": rows}).json()["predictions"]
    X = frame(*rows)
    np.testing.assert_array_equal([answer["prediction"] for answer in found], u.predict(X))
    intervals = [[answer["lower"], answer["upper"]] for answer in found]
    np.testing.assert_array_equal(intervals, u.predict_interval(X, 0.9))


@pytest.mark.parametrize(
    ("row", "column"),
    [
        (ROW | {"city": "Oslo"}, "city"),
        (ROW | {"rooms": "many"}, "rooms"),
        (ROW | {"rooms": 2**63}, "rooms"),
        (ROW | {"rooms": 10**30}, "rooms"),
        (ROW | {"rooms": -(10**30)}, "rooms"),
        (ROW | {"rooms": 2.5}, "rooms"),
        (ROW | {"stars": 300}, "stars"),
        (ROW | {"stars": -129}, "stars"),
        (ROW | {"size": 10**400}, "size"),
        (ROW | {"weight": 1e39}, "weight"),  # too large for its type: it would be infinite
        (ROW | {"city": "\ud800"}, "city"),
        ({name: value for name, value in ROW.items() if name != "rooms"}, "rooms"),
        (ROW | {"colour": "red"}, "colour"),
    ],
)
def test_a_wrong_row_is_refused_with_its_column(client, row, column):
    one = client.post("/predict", content=json.dumps({"row": row}), headers=AS_JSON)
    assert one.status_code == 422
    assert one.json()["detail"][0]["loc"][:3] == ["body", "row", column]
    many = client.post("/predict/batch", content=json.dumps({"rows": [ROW, row]}), headers=AS_JSON)
    assert many.status_code == 422
    assert many.json()["detail"][0]["loc"][:4] == ["body", "rows", 1, column]


@pytest.mark.parametrize("wrong", [{"coverage": 1.0}, {"quantiles": [0.5, 2]}, {"neighbors": 101}, {"level": 0.5}])
def test_a_wrong_option_is_refused_with_its_name(client, wrong):
    answer = client.post("/predict", json={"row": ROW, **wrong})
    assert answer.status_code == 422
    assert answer.json()["detail"][0]["loc"][1] == next(iter(wrong))


@pytest.mark.parametrize("address", ["/predict", "/predict/batch", "/point"])
@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "1e400", "-1e400"])
@pytest.mark.parametrize("column", ["size", "rooms", "stars", "city", "cheap", "coverage"])
def test_what_is_no_number_is_refused(client, address, value, column):
    """Python's parser takes these, though JSON does not have them; they could not even be sent back."""
    row = json.dumps(ROW | ({column: "@"} if column in ROW else {})).replace('"@"', value)
    rest = f', "coverage": {value}' if column == "coverage" else ""
    rows = f'"rows": [{row}]' if "batch" in address else f'"row": {row}'
    answer = client.post(address, content=f"{{{rows}{rest}}}", headers=AS_JSON)
    assert answer.status_code == 422
    assert column in answer.json()["detail"][0]["loc"]


@pytest.mark.parametrize(
    "body", ["", "[", "{", "[" * 9000, '{"row": ' * 1000, "1" * 5000, '"\\ud800"', "\x00", "null", '{"row": null}']
)
def test_what_is_no_request_is_refused(client, body):
    answer = client.post("/predict", content=body, headers=AS_JSON)
    assert 400 <= answer.status_code < 500


def test_half_a_surrogate_pair_is_no_text(serve, client):
    answer = client.post("/predict", content=json.dumps({"row": ROW | {"\ud800": 1}}), headers=AS_JSON)
    assert answer.status_code == 422
    texts = pydantic.TypeAdapter(serve._type({"name": "street", "dtype": "object"}))
    assert texts.validate_python("größe") == "größe"
    with pytest.raises(pydantic.ValidationError, match="surrogates not allowed"):
        texts.validate_python("\ud800")


@pytest.mark.parametrize("dtype", ["int8", "UInt8", "int64[pyarrow]", "Int64", "float32", "Float64", "double[pyarrow]"])
def test_columns_of_numbers_take_numbers_of_their_range(serve, dtype):
    values = pydantic.TypeAdapter(serve._type({"name": "x", "dtype": dtype}))
    assert values.validate_python(3) == 3
    assert values.validate_python(None) is None
    for wrong in (float("nan"), 10**400, "many"):
        with pytest.raises(pydantic.ValidationError):
            values.validate_python(wrong)


def test_many_errors_are_not_all_told(client):
    answer = client.post("/predict/batch", json={"rows": [{}] * 50})
    assert answer.status_code == 422
    assert len(answer.json()["detail"]) == 100


def test_too_much_is_refused(client):
    many = client.post("/predict/batch", json={"rows": [ROW] * 51})
    assert many.status_code == 413
    assert "50 rows at most" in many.json()["detail"]
    assert client.post("/predict/batch", json={"rows": [ROW] * 1000}).status_code == 413

    async def parts():
        yield b" " * 6000
        yield b" " * 6000

    told_no_length = client.post("/predict", content=parts())
    assert told_no_length.status_code == 413
    assert client.post("/predict/batch", json={"rows": []}).status_code == 422


def test_too_many_rows_are_refused_before_they_are_parsed(serve, path, monkeypatch):
    client = InProcess(serve.create_app(path, serve.Limits(rows=3)))
    parsed = []
    before = json.loads
    monkeypatch.setattr(json, "loads", lambda text, **options: parsed.append(len(text)) or before(text, **options))
    assert client.post("/predict/batch", json={"rows": [ROW] * 4}).status_code == 413
    assert not parsed
    assert client.post("/predict/batch", json={"rows": [ROW] * 3}).status_code == 200
    assert parsed


@pytest.mark.parametrize(
    ("body", "rows"),
    [
        (b'{"rows": [{"a": 1}, {"a": 2}]}', 2),
        (b'{"rows": [{"a": "{{{{"}, {"{": "}"}]}', 2),
        (rb'{"rows": [{"a": "\"{"}, {"a": "\\"}, {"a": "{\\\"{"}]}', 3),
        (b'{"rows": []}', 0),
        (b"", -1),
        (b'{"', 0),
    ],
)
def test_rows_are_counted_without_parsing(serve, body, rows):
    assert not serve.has_more_rows(body, rows)
    assert rows < 1 or serve.has_more_rows(body, rows - 1)


class Client:
    """One connection, message by message: what it sends is what `send` was given, and `answer` what came back."""

    def __init__(self, app, path="/predict"):
        self.messages, self.answer = asyncio.Queue(), []
        scope = {"type": "http", "method": "POST", "path": path, "headers": [(b"content-type", b"application/json")]}
        scope |= {"query_string": b"", "root_path": "", "scheme": "http", "http_version": "1.1", "asgi": {}}
        self.task = asyncio.ensure_future(app(scope, self.messages.get, self._hear))

    def send(self, body, more_body=False):
        self.messages.put_nowait({"type": "http.request", "body": body, "more_body": more_body})

    async def _hear(self, message):
        self.answer.append(message)

    async def status(self):
        await self.task
        return self.answer[0]["status"]


def test_bodies_that_trickle_shut_nobody_out(serve, path):
    app = serve.create_app(path, serve.Limits(in_flight=2, seconds=5.0))  # to begin 421 requests takes a while, too
    whole = json.dumps({"row": ROW}).encode()

    async def attack():
        slow = [Client(app) for _ in range(420)]
        for each in slow:
            each.send(b"{", more_body=True)
        await asyncio.sleep(0.1)
        honest = Client(app)
        honest.send(whole)
        assert await honest.status() == 200
        assert not any(each.answer for each in slow)
        for each in slow:  # a byte from time to time does not help
            each.send(b" ", more_body=True)
        assert {await each.status() for each in slow} == {408}
        assert b"within 5 seconds" in slow[0].answer[1]["body"]

    asyncio.run(attack())


def test_all_bodies_that_are_received_have_one_limit(serve, path):
    app = serve.create_app(path, serve.Limits(buffer=1000))

    async def attack():
        one, two = Client(app), Client(app)
        one.send(b" " * 800, more_body=True)
        await asyncio.sleep(0.05)
        two.send(b" " * 800, more_body=True)
        assert await two.status() == 503
        one.messages.put_nowait({"type": "http.disconnect"})
        await one.task
        again = Client(app)
        again.send(b" " * 800 + json.dumps({"row": ROW}).encode())
        assert await again.status() == 200

    asyncio.run(attack())


def test_a_client_that_does_not_read_its_answer_holds_no_place(serve, path):
    app = serve.create_app(path, serve.Limits(in_flight=1))
    whole = json.dumps({"row": ROW}).encode()

    async def attack():
        deaf, reached = Client(app), asyncio.Event()

        async def stuck(message):
            reached.set()
            await asyncio.Event().wait()

        deaf.task.cancel()
        scope = {"type": "http", "method": "POST", "path": "/predict", "headers": [], "query_string": b""}
        messages = asyncio.Queue()
        messages.put_nowait({"type": "http.request", "body": whole, "more_body": False})
        task = asyncio.ensure_future(app(scope, messages.get, stuck))
        await reached.wait()
        honest = Client(app)
        honest.send(whole)
        assert await honest.status() == 200
        task.cancel()

    asyncio.run(attack())


def test_neighbours_come_from_the_search_of_the_prediction(client, monkeypatch):
    searched, before = [], LeafIndex.query
    monkeypatch.setattr(LeafIndex, "query", lambda *a, **o: searched.append(len(a[1])) or before(*a, **o))
    answer = client.post("/predict/batch", json={"rows": [ROW] * 7, "neighbors": 3})
    assert len(answer.json()["predictions"][0]["neighbors"]) == 3
    assert searched == [7]


def test_more_neighbours_than_training_rows_are_refused(serve, tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 2))
    model = GradientBoostingRegressor(n_estimators=3)
    own = IBUGRegressor(model, k=5, spread="targets", calibrate=False).fit(X, X[:, 0])
    own.save(tmp_path / "model.ibug", compress=False)
    client = InProcess(serve.create_app(tmp_path / "model.ibug"))
    row = {"column_0": 0.5, "column_1": 1.0}
    answer = client.post("/predict", json={"row": row, "neighbors": 100})
    assert answer.status_code == 422
    assert "from 1 to the 60 training rows" in answer.json()["detail"]
    missing = client.post("/predict", json={"row": row | {"column_0": None}})  # the model takes none
    assert missing.status_code == 422
    assert "does not take these missing values" in missing.json()["detail"]


def test_arrays_without_names_are_columns_by_number(serve, tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 2))
    model = lightgbm.LGBMRegressor(n_estimators=3, verbose=-1)
    own = IBUGRegressor(model, k=5, spread="targets", calibrate=False).fit(X, X[:, 0])
    own.save(tmp_path / "model.ibug", compress=False)
    client = InProcess(serve.create_app(tmp_path / "model.ibug"))
    found = client.post("/predict", json={"row": {"column_0": X[0, 0], "column_1": X[0, 1]}}).json()
    assert found["prediction"] == own.predict(X[:1])[0]


@contextlib.contextmanager
def running(path, *options):
    """Start the service as a user would, and wait until it answers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, str(SCRIPT), str(path), "--port", str(port), *options]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
        try:
            wait_for(lambda: client.get("/health").status_code == 200)
            yield process, client
        finally:
            if process.poll() is None:
                process.terminate()
            process.communicate(timeout=60)


def wait_for(condition, seconds=90):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(httpx.TransportError):
            if condition():
                return
        time.sleep(0.1)
    raise AssertionError(f"It did not happen within {seconds} seconds.")


def test_overload_is_shed_and_a_stop_lets_requests_finish(path):
    batch = {"rows": [ROW] * 4000, "quantiles": [i / 100 for i in range(1, 99)]}
    with running(path, "--in-flight", "2") as (process, client):

        def post(_):
            return client.post("/predict/batch", json=batch)

        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            answers = list(pool.map(post, range(24)))
        codes = [answer.status_code for answer in answers]
        assert set(codes) == {200, 503}
        refused = answers[codes.index(503)]
        assert refused.headers["retry-after"] == "1"
        assert client.post("/predict", json={"row": ROW}).status_code == 200  # it has recovered

        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            last = pool.submit(post, 0)
            time.sleep(0.2)
            process.send_signal(signal.SIGTERM)
            assert len(last.result().json()["predictions"]) == 4000
        process.wait(timeout=60)
        with pytest.raises(httpx.TransportError):
            client.get("/health")


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_that_is_too_large_is_answered_not_reset(path, chunked):
    """The client sends the whole body before it reads, as most do."""
    size, step = 9_000_000, 1_000_000
    with running(path, "--seconds", "20") as (_, client):
        for _ in range(5):  # whether a reset overtakes the answer is a matter of chance
            connection = http.client.HTTPConnection(client.base_url.host, client.base_url.port, timeout=30)
            parts = (b" " * step for _ in range(size // step))
            headers = AS_JSON if chunked else AS_JSON | {"content-length": str(size)}
            connection.request("POST", "/predict", parts, headers, encode_chunked=chunked)
            answer = connection.getresponse()
            assert answer.status == 413
            assert "8000000 bytes at most" in json.loads(answer.read())["detail"]
            connection.close()
        assert client.post("/predict", json={"row": ROW}).status_code == 200


def test_an_endless_body_is_dropped_for_as_long_as_a_request_may_take(path):
    with running(path, "--seconds", "1") as (_, client):
        address = client.base_url.host, client.base_url.port
        with socket.create_connection(address, timeout=30) as endless:
            endless.sendall(b"POST /predict HTTP/1.1\r\nhost: a\r\ncontent-length: 999999999999\r\n\r\n")
            assert b" 413 " in endless.recv(4096).splitlines()[0]  # at once
            started = time.monotonic()
            with contextlib.suppress(ConnectionError):
                while time.monotonic() < started + 20:
                    endless.sendall(b" " * 65536)
            assert time.monotonic() < started + 10


def test_a_killed_worker_comes_back(path):
    def answering(client):
        with httpx.Client(base_url=client.base_url) as fresh:  # a new connection may meet another worker
            return fresh.get("/health").json()["pid"]

    with running(path, "--workers", "2") as (_, client):
        seen = set()
        wait_for(lambda: seen.add(answering(client)) or len(seen) == 2)
        killed = seen.pop()
        os.kill(killed, signal.SIGKILL)
        later = set()
        wait_for(lambda: later.add(answering(client)) or len(later - seen - {killed}) == 1)
        assert client.post("/predict", json={"row": ROW}).status_code == 200


def test_a_worker_that_is_killed_while_it_is_asked_is_not_waited_for(serve):
    """Its end of the pipe is closed with it: the parent sees that at once, not when the time for an answer is over."""
    import uvicorn

    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        worker = serve.Worker(uvicorn.Config("serve:create_app", factory=True), [listening])
        worker.process = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(60,))  # never answers
        worker.start()
        threading.Timer(1.0, worker.process.kill).start()
        began = time.monotonic()
        assert not worker.is_alive(timeout=50)
        assert time.monotonic() - began < 40
        worker.kill()
        worker.join()


def test_models_inside_answer_with_one_thread(serve, u):
    X = frame(ROW)
    before = u.predict(X)
    wrapped = TransformedTargetRegressor(u.estimator_)
    wrapped.regressor_ = lightgbm.LGBMRegressor(n_jobs=2)
    serve.one_thread(wrapped)
    assert wrapped.regressor_.n_jobs == 1
    serve.one_thread(u)
    assert u.n_jobs == u.estimator_.n_jobs == 1
    assert u.predict(X) == before
