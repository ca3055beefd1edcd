"""Files that several threads load at a time."""

import ast
import io
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import ibug
from ibug.persistence._container import read_npy_header
from tests.persistence.forge import npy
from tests.persistence.same import assert_same

pytestmark = [pytest.mark.once, pytest.mark.kernel]


@pytest.mark.parametrize(
    "array",
    [
        np.zeros(()),
        np.arange(3, dtype=np.int8),
        np.zeros((0, 4), np.uint32),
        np.ones((2, 3, 4), ">f4"),
        np.array([True]),
        np.array(["a", "bc"]),
        np.asfortranarray(np.zeros((3, 2))),
    ],
)
def test_headers_are_read_as_numpy_reads_them(array):
    data = npy(array)
    file = io.BytesIO(data)
    np.lib.format.read_magic(file)
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
    assert read_npy_header(data) == (shape, fortran, dtype, file.tell())


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<f8', 'fortran_order': False, 'shape': (3), }\n",
        "{'descr': '|O', 'fortran_order': False, 'shape': (3,), }\n",
        "{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (3,), }\n",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (-3,), }\n",
        "{'descr': '<f8', 'fortran_order': 0, 'shape': (3,), }\n",
        "{'descr': '<f8', 'shape': (3,), }\n",
        "__import__('os').abort()\n",
        "",
    ],
)
def test_other_headers_are_refused(header):
    data = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + bytes(100)
    with pytest.raises(ValueError, match=r"header|shape|type"):
        read_npy_header(data)


@pytest.mark.parametrize("data", [b"", b"\x93NUMPY", b"\x93NUMPY\x02\x00", b"\x93NUMPY\x01\x00\xff\xff{}"])
def test_headers_that_end_early(data):
    with pytest.raises(ValueError, match=r"header|begin"):
        read_npy_header(data)


def test_no_array_is_read_by_pythons_parser(wrapped, rows, tmp_path, monkeypatch):
    """That parser counts its depth for all threads together: two loads at a time failed now and then."""
    wrapped.save(tmp_path / "model.ibug", compress=False)

    def disturbed(*args, **options):
        raise SystemError("AST constructor recursion depth mismatch")

    monkeypatch.setattr(ast, "parse", disturbed)
    monkeypatch.setattr(ast, "literal_eval", disturbed)
    assert_same(wrapped, ibug.load(tmp_path / "model.ibug"), rows["numbers"])


def test_many_threads_load_one_file(wrapped, rows, tmp_path):
    wrapped.save(tmp_path / "model.ibug", compress=False)
    stop = threading.Event()

    def parse():
        while not stop.is_set():
            ast.literal_eval("[(1, [2, (3,)])]")

    with ThreadPoolExecutor(6) as pool:
        noise = [pool.submit(parse) for _ in range(2)]
        loaded = list(pool.map(lambda _: ibug.load(tmp_path / "model.ibug"), range(24)))
        stop.set()
        for future in noise:
            future.result()
    expected = wrapped.predict_quantiles(rows["numbers"][:5])
    assert all(np.array_equal(u.predict_quantiles(rows["numbers"][:5]), expected) for u in loaded)
