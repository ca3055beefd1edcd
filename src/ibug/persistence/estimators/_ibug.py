"""IBUGRegressor as a description for a file, and from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ibug._inputs import require
from ibug.distributions import families, resolve_family
from ibug.neighbors import LocalSource
from ibug.persistence._session import Loading, Saving
from ibug.persistence.estimators._parts import (
    describe_columns,
    describe_estimator,
    restore_columns,
    restore_estimator,
)
from ibug.rule import AnyRule, JointRule, Rule, rule_from_state


def describe_ibug(regressor: Any, saving: Saving, fitted: bool) -> dict[str, Any]:
    """Return the description of an IBUGRegressor. What predictions need is described first: it may be refused."""
    learned = None
    if fitted:
        rule = regressor.rule_.state()
        learned = {**describe_columns(regressor), **regressor.source_.state(), **rule}
        if regressor.source_.targets.ndim > 1:
            learned["target_names_"] = regressor.target_names_
    parameters = regressor.get_params(deep=False)
    parameters["distribution"] = by_name(parameters["distribution"])
    description = describe_estimator(regressor, parameters, saving, fitted=fitted)
    if learned is not None:
        description["learned"] = saving.encoder.encode(learned, "learned")
    return description


def restore_ibug(cls: type, spec: dict[str, Any], loading: Loading) -> Any:
    """Return the IBUGRegressor of a description, after checking that its parts belong together."""
    regressor, model = restore_estimator(cls, spec, loading)
    if "learned" in spec:
        learned = loading.decoder.decode(spec["learned"])
        restore_columns(regressor, learned)
        source, rule = LocalSource.from_state(model, learned), rule_from_state(learned)
        check_features(source, regressor.n_features_in_)
        check_needs(source, rule)
        regressor.source_, regressor.rule_ = source, rule
        regressor.target_names_ = _target_names(learned, source) if source.targets.ndim > 1 else None
    return regressor


def check_features(source: LocalSource, n_features: int) -> None:
    """Check that the model has as many features as the columns that are described, if it knows its features."""
    expected = source.leaves.reader.n_features
    require(
        expected in (None, n_features),
        f"its model does not match its index: it expects {expected} features, and {n_features} are described",
    )


def _target_names(learned: Mapping[str, Any], source: LocalSource) -> list[str]:
    """Return the names of several targets."""
    names = learned["target_names_"]
    known = isinstance(names, list) and len(names) == source.targets.shape[1]
    require(known and all(isinstance(name, str) for name in names), "the names of its targets are impossible")
    return list(names)


def check_needs(source: LocalSource, rule: AnyRule) -> None:
    """Check that the source has the neighbours that the rule asks for."""
    if isinstance(rule, JointRule):
        require(source.targets.shape[1:] == (rule.n_targets,), "its numbers of targets do not agree")
        for one in rule.rules:
            _check_rule(source, one)
        _check_quantities(source, [*rule.needs.items()])
        require(rule.k <= source.index.n_rows, "its k is impossible")
        return
    require(source.targets.ndim == 1, "its numbers of targets do not agree")
    _check_rule(source, rule)


def _check_rule(source: LocalSource, rule: Rule) -> None:
    require(rule.k <= source.index.n_rows, "its k is impossible")
    needs = [(rule.spread.shape, rule.k), *rule.spread.n_neighbors.items(), *rule.needs.items()]
    _check_quantities(source, needs)
    residuals = 0 if rule.stack is None else rule.stack.needs["residuals"]
    # Experts weigh residuals by affinity, which only those of training rows come with.
    require(not residuals or source.has_training_residuals, "its experts ask for residuals that it does not have")


def _check_quantities(source: LocalSource, needs: Iterable[tuple[str, int]]) -> None:
    for quantity, k in needs:
        known = quantity == "targets" or (quantity == "residuals" and source.residuals is not None)
        require(known and 1 <= k <= source.n_neighbors(quantity), "it asks for more neighbours than it has")


def by_name(distribution: Any) -> Any:
    """Return families by their names: a class cannot be stored, and means the same."""
    if isinstance(distribution, (list, tuple)):
        return type(distribution)(by_name(one) for one in distribution)
    if isinstance(distribution, type):
        name, _ = resolve_family(distribution)
        return name if name in families() else distribution
    return distribution
