"""The example service, in process and as processes on loopback."""

import asyncio
import concurrent.futures
import contextlib
import importlib.util
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
from sklearn.compose import TransformedTargetRegressor

from ibug import IBUGRegressor

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


ROW = {"size": 0.5, "rooms": 3, "city": "Graz"}


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
    return pd.DataFrame(rows).astype({"city": pd.CategoricalDtype(["Bern", "Graz", "Lyon"])})


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
    rows = [ROW, {"size": None, "rooms": 1, "city": "Lyon"}, {"size": 1, "rooms": 2, "city": None}]
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
        (ROW | {"rooms": None}, "rooms"),
        ({"size": 1.0, "city": "Graz"}, "rooms"),
        (ROW | {"colour": "red"}, "colour"),
    ],
)
def test_a_wrong_row_is_refused_with_its_column(client, row, column):
    one = client.post("/predict", json={"row": row})
    assert one.status_code == 422
    assert one.json()["detail"][0]["loc"][:3] == ["body", "row", column]
    many = client.post("/predict/batch", json={"rows": [ROW, row]})
    assert many.status_code == 422
    assert many.json()["detail"][0]["loc"][:4] == ["body", "rows", 1, column]


@pytest.mark.parametrize("wrong", [{"coverage": 1.0}, {"quantiles": [0.5, 2]}, {"neighbors": 101}, {"level": 0.5}])
def test_a_wrong_option_is_refused_with_its_name(client, wrong):
    answer = client.post("/predict", json={"row": ROW, **wrong})
    assert answer.status_code == 422
    assert answer.json()["detail"][0]["loc"][1] == next(iter(wrong))


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
