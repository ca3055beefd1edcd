"""The sources of neighbours against brute force: one record per batch, and nothing that is filled on the way."""

import pickle

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingRegressor

from ibug.exceptions import InvalidInputError
from ibug.leaves import reader_of
from ibug.neighbors import CrossFittedSource, JoinedIndex, LeafIndex, LocalSource, Residuals, Sampling
from tests.oracles import nearest_rows

pytestmark = [pytest.mark.once, pytest.mark.kernel]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(260, 4))
    y = np.sin(5 * X[:, 0]) + rng.normal(scale=0.2, size=260)
    model = GradientBoostingRegressor(n_estimators=20, random_state=0).fit(X[:200], y[:200])
    return X[:200], y[:200], X[200:], y[200:], model


def build(data, residuals=None, **sampling):
    X, y, _, _, model = data
    rng = np.random.RandomState(0)
    honest = None if residuals is None else Residuals(residuals, "clones")
    return LocalSource.build(model, reader_of(model), X, y, Sampling(**sampling), rng, residuals=honest)


def test_a_batch_has_all_that_belongs_to_its_rows(data):
    X, y, X_new, _, model = data
    residuals = np.random.default_rng(1).normal(size=200)
    source = build(data, residuals)
    affinities, rows = nearest_rows(model.apply(X), model.apply(X_new), 9)
    (batch,) = source.batches(X_new, {"targets": 9, "residuals": 4})
    assert (batch.where, batch.n_rows) == (slice(0, 60), 60)
    np.testing.assert_allclose(batch.mean, model.predict(X_new), rtol=1e-9)
    np.testing.assert_array_equal(batch.affinities, affinities)
    np.testing.assert_array_equal(batch.rows, rows)
    np.testing.assert_array_equal(batch.values["targets"], y[rows])
    np.testing.assert_array_equal(batch.values["residuals"], residuals[rows[:, :4]])


@pytest.mark.parametrize("sampling", [{}, {"tree_fraction": 0.5, "row_fraction": 0.6}])
def test_chunks_change_nothing(data, sampling, monkeypatch):
    source, X_new = build(data, **sampling), data[2]
    (whole,) = source.batches(X_new, {"targets": 5})
    monkeypatch.setattr("ibug.neighbors._leaf_numbers._NUMBERS_PER_CHUNK", 7 * 40)
    parts = list(source.batches(X_new, {"targets": 5}))
    assert len(parts) > 5
    assert [part.where.start for part in parts] == [0, *(part.where.stop for part in parts[:-1])]
    for name in ("mean", "affinities", "rows"):
        np.testing.assert_array_equal(np.concatenate([getattr(part, name) for part in parts]), getattr(whole, name))
    np.testing.assert_array_equal(np.concatenate([part.values["targets"] for part in parts]), whole.values["targets"])
    assert whole.rows.max() < 200


def test_residuals_of_validation_rows_and_none_is_its_own_neighbour(data):
    _, _, X_val, y_val, model = data
    source = build(data)
    assert not source.has_training_residuals
    residuals, leaves = y_val - model.predict(X_val), model.apply(X_val)
    other = source.with_residuals_of(X_val, residuals)
    assert source.residuals is None  # the first one is as it was
    assert (other.n_neighbors("residuals"), other.leaving_out_self().n_neighbors("residuals")) == (60, 59)
    (batch,) = other.batches(X_val, {"residuals": 3})
    np.testing.assert_array_equal(batch.values["residuals"], residuals[nearest_rows(leaves, leaves, 3)[1]])
    assert batch.rows.shape == (60, 0)
    (batch,) = other.leaving_out_self().batches(X_val, {"residuals": 3})
    for i in range(60):
        others = np.delete(np.arange(60), i)
        nearest = others[nearest_rows(leaves[others], leaves[[i]], 3)[1][0]]
        np.testing.assert_array_equal(batch.values["residuals"][i], residuals[nearest])


def test_a_pickle_is_the_state(data):
    source = build(data, tree_fraction=0.5)
    other = pickle.loads(pickle.dumps(source))
    assert other.state().keys() == source.state().keys()
    (one,), (same,) = (each.batches(data[2], {"targets": 5}) for each in (source, other))
    for name in ("mean", "affinities", "rows"):
        np.testing.assert_array_equal(getattr(one, name), getattr(same, name))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"targets": np.zeros(7)}, "index does not match its targets"),
        ({"targets": np.zeros(200, np.float32)}, "no numbers"),
        ({"n_model_trees": 21}, "has 20 trees, and 21 were indexed"),
        ({"trees": np.array([3, 1])}, "not ascending"),
        ({"trees": np.array([1, 3])}, "number of trees is another one"),
        ({"residuals": np.zeros(3), "residual_kind": "clones"}, "residuals do not match its targets"),
        ({"residuals": np.zeros(3)}, "kind of residuals is impossible"),
        ({"residual_kind": "guesses"}, "kind of residuals is impossible"),
    ],
)
def test_parts_that_do_not_belong_together_are_refused(data, change, message):
    with pytest.raises(InvalidInputError, match=message):
        LocalSource.from_state(data[4], {**build(data).state(), **change})


def test_cross_fitted_rows_come_by_position():
    rng = np.random.default_rng(0)
    neighbors = rng.integers(0, 50, (20, 6)).astype(np.int32)
    mean, affinities = rng.normal(size=20), rng.uniform(size=(20, 6)).astype(np.float32)
    targets, residuals = rng.normal(size=(2, 50))
    source = CrossFittedSource(mean, affinities, neighbors, targets, residuals)
    chosen = np.array([3, 4, 19])
    (batch,) = source.batches(chosen, {"targets": 6, "residuals": 2})
    np.testing.assert_array_equal(batch.mean, mean[chosen])
    np.testing.assert_array_equal(batch.rows, neighbors[chosen])
    np.testing.assert_array_equal(batch.values["residuals"], residuals[neighbors[chosen, :2]])
    assert (source.n_trees, source.n_neighbors("targets")) == (1, 6)


def test_several_indexes_are_as_good_as_one():
    rng = np.random.default_rng(0)
    leaves, queries = rng.integers(0, 5, (90, 12)), rng.integers(0, 5, (10, 12))
    joined = JoinedIndex([LeafIndex.build(leaves[:30]), LeafIndex.build(leaves[30:31]), LeafIndex.build(leaves[31:])])
    for found, expected in zip(joined.query(queries, 40), nearest_rows(leaves, queries, 40), strict=True):
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(joined.leaf_sizes(queries), LeafIndex.build(leaves).leaf_sizes(queries))
