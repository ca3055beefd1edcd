"""Thousands of damaged files: each loads to identical predictions or raises our error; none crashes or hangs."""

import copy
import faulthandler
import json
import random
import sys
import warnings

import numpy as np
import pytest

import ibug
from ibug.exceptions import IBUGError
from tests.persistence.forge import manifest_of, put_together, take_apart

pytestmark = [pytest.mark.once, pytest.mark.kernel]

SECONDS = 60  # for a part of the variants; one that hangs ends the process with a trace
# Together more than the 2,000 that are asked for.
BLOCKS, FLIPS_PER_BLOCK, TRUNCATIONS_PER_BLOCK, FORGERIES_PER_BLOCK = 8, 250, 60, 60


@pytest.fixture(autouse=True)
def watchdog():
    faulthandler.dump_traceback_later(10 * SECONDS, exit=True, file=sys.__stderr__)
    yield
    faulthandler.cancel_dump_traceback_later()


@pytest.fixture(scope="module", params=[True, False], ids=["compressed", "stored"])
def saved(request, wrapped, rows, tmp_path_factory):
    path = tmp_path_factory.mktemp("fuzz") / "model.ibug"
    wrapped.save(path, compress=request.param)
    X = rows["numbers"][:5]
    return path, X, wrapped.predict_quantiles(X)


def loads_the_same_or_raises(path, X, expected, **options):
    """Return whether it loaded."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            u = ibug.load(path, **options)
    except IBUGError:
        return False
    assert np.array_equal(u.predict_quantiles(X), expected)
    return True


@pytest.mark.parametrize("block", range(BLOCKS))
def test_flipped_bytes(block, saved, tmp_path):
    """One to three bytes anywhere, the container's own structure too."""
    path, X, expected = saved
    original = path.read_bytes()
    rng = random.Random(block)
    variant = tmp_path / "variant.ibug"
    for _ in range(FLIPS_PER_BLOCK // 2):
        data = bytearray(original)
        for _ in range(rng.choice([1, 1, 1, 2, 3])):
            # Half of them in the last part, where the directory of the container is.
            at = rng.randrange(len(data)) if rng.random() < 0.5 else len(data) - 1 - rng.randrange(4000)
            data[at] ^= rng.choice([1 << rng.randrange(8), rng.randrange(1, 256)])
        variant.write_bytes(data)
        loads_the_same_or_raises(variant, X, expected)


@pytest.mark.parametrize("block", range(BLOCKS))
def test_truncated_and_shifted(block, saved, tmp_path):
    """The end cut off, or a piece taken out, doubled or zeroed."""
    path, X, expected = saved
    original = path.read_bytes()
    rng = random.Random(100 + block)
    variant = tmp_path / "variant.ibug"
    for _ in range(TRUNCATIONS_PER_BLOCK):
        start = rng.randrange(len(original))
        stop = min(len(original), start + rng.choice([1, 8, 64, 1000]))
        data = rng.choice(
            [
                original[:start],
                original[:start] + original[stop:],
                original[:stop] + original[start:],
                original[:start] + bytes(stop - start) + original[stop:],
            ]
        )
        variant.write_bytes(data)
        if data != original:
            loads_the_same_or_raises(variant, X, expected)


@pytest.mark.parametrize("block", range(BLOCKS))
def test_forged_manifests(block, saved, tmp_path):
    """A value of the manifest replaced by another one, with right checksums: our error, or an estimator that works."""
    path, X, _ = saved
    members = take_apart(path)
    original = manifest_of(members)
    rng = random.Random(200 + block)
    places = list(_places(original))
    strange = [None, True, -1, 0, 10**9, 1e300, "", "x", "targets", [], [1], {}, {"$float": "nan"}, {"$array": "x"}]
    for _ in range(FORGERIES_PER_BLOCK):
        manifest = copy.deepcopy(original)
        *way, last = rng.choice(places)
        parent = manifest
        for step in way:
            parent = parent[step]
        parent[last] = rng.choice(strange)
        variant = put_together(tmp_path / "variant.ibug", members, manifest)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                u = ibug.load(variant)
        except IBUGError:
            continue
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                u.predict_interval(X)
        except (MemoryError, RecursionError):
            pytest.fail(f"forged: {json.dumps([*way, last])}")
        except Exception:  # a strange parameter may be found out only when it is used: as an error, not as a crash
            continue


def _places(value, way=()):
    """Yield the way to every value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*way, key)
        yield from _places(item, (*way, key))


def test_there_are_enough_variants():
    per_file = BLOCKS * (FLIPS_PER_BLOCK // 2 + TRUNCATIONS_PER_BLOCK + FORGERIES_PER_BLOCK)
    assert 2 * per_file >= 2000
    assert 2 * BLOCKS * (FLIPS_PER_BLOCK // 2 + TRUNCATIONS_PER_BLOCK) >= 2000
