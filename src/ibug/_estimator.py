"""What every probabilistic regressor of ibug offers: all that follows from ``predict_dist``, and ``save``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from operator import attrgetter
from os import PathLike
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data

from ibug._frames import (
    FeatureType,
    check_output,
    columns_of_targets,
    feature_types,
    frame,
    index_of,
    interval_columns,
    quantile_columns,
    side_by_side,
    warn_unknown_categories,
)
from ibug._read_only import keeps_read_only
from ibug._typing import Floats, Rows
from ibug._validation import as_rows, check_divisible, check_probabilities, check_target_names, check_targets
from ibug._warnings import warn_infinite
from ibug.distributions import Distribution
from ibug.exceptions import InvalidInputError
from ibug.leaves import is_pandas
from ibug.persistence import save

Method = TypeVar("Method", bound=Callable[..., Any])


def view(part: str, path: str) -> Any:
    """Return a read-only attribute of a fitted estimator: what one of its learned parts has under a dotted name."""
    get = attrgetter(path)

    def value(self: Any) -> Any:
        learned = vars(self).get(part)
        if learned is None:
            raise NotFittedError(
                f"This {type(self).__name__} is not fitted yet: call fit before this attribute is read."
            )
        return get(learned)

    return property(value)


def all_or_nothing(fit: Method) -> Method:
    """Decorate a method that learns, so that an estimator on which it fails stays as it was.

    Otherwise the columns of the new rows would stand beside the model of the old ones.
    """

    @wraps(fit)
    def whole(self: Any, *args: Any, **options: Any) -> Any:
        before = dict(vars(self))
        try:
            return fit(self, *args, **options)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    return cast(Method, whole)


def answers(**right: str) -> Callable[[Method], Method]:
    """Decorate a method, so that a parameter's name in other libraries is answered with the right one."""

    def decorated(method: Method) -> Method:
        @wraps(method)
        def checked(self: Any, *args: Any, **options: Any) -> Any:
            for name in options.keys() & right.keys():
                raise TypeError(f"{type(self).__name__}.{method.__name__} has no parameter {name!r}: {right[name]}")
            return method(self, *args, **options)

        return cast(Method, checked)

    return decorated


#: What other libraries call the coverage of intervals, and the probabilities of quantiles.
answers_coverage = answers(
    alpha="give the probability that the interval shall hold, coverage=0.9 where alpha would be 0.1.",
    confidence="give the probability that the interval shall hold, coverage=0.9.",
)
answers_alpha = answers(
    quantiles="give their probabilities, alpha=[0.05, 0.5, 0.95].",
    q="give their probabilities, alpha=[0.05, 0.5, 0.95].",
)


@keeps_read_only
class ProbabilisticRegressorMixin:
    """Intervals, quantiles, variances and points from ``predict_dist``, the checks of rows that they share, and files.

    Subclasses put it before scikit-learn's ``RegressorMixin`` and ``BaseEstimator``.
    """

    n_features_in_: int
    feature_types_: list[FeatureType]
    _takes_multioutput = False  # whether `fit` takes several targets at once

    def __sklearn_is_fitted__(self) -> bool:
        raise NotImplementedError(f"{type(self).__name__} has to say whether it is fitted.")

    def predict_dist(self, X: Any) -> Distribution:
        """Return the predicted distributions, ``mean var std median pdf logpdf cdf sf ppf interval rvs crps``."""
        raise NotImplementedError(f"{type(self).__name__} has to say what it predicts.")

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the point predictions, of shape (n_rows,)."""
        return self.predict_dist(X).mean()

    @answers_coverage
    def predict_interval(
        self, X: Any, coverage: ArrayLike = 0.9, *, joint: bool = False, output: str | None = None
    ) -> Any:
        """Return the central interval of the given coverage: lower and upper ends.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_features)
            The rows to predict.
        coverage : float or array-like of shape (n_coverages,)
            The probability that the interval shall hold, between 0 and 1; or several.
        joint : bool
            Of several targets: boxes that hold all of them at once with this probability, in place of one interval for
            each by itself.
        output : {None, "pandas", "polars"}
            ``None``: an array. Else a data frame, with the index of X where both are of pandas.

        Returns
        -------
        ndarray of shape (n_rows, 2) or (n_rows, 2, n_coverages), or data frame
            The second axis has the lower and the upper end, so that the intervals of the i-th of several coverages are
            ``[:, :, i]``, of shape (n_rows, 2) again. The columns of a frame are ``lower`` and ``upper``; for several
            coverages ``lower_50``, ``upper_50``, ``lower_90`` and so on. Of several targets an array has one axis more,
            (n_rows, n_targets, 2) or (n_rows, n_targets, 2, n_coverages), and columns begin with the target's name.
        """
        check_output(output)
        check_probabilities(coverage, "coverage")
        if joint:
            self._require_boxes()  # before anything is searched
        ends = self._ends(X, coverage, joint)
        calibrator = getattr(self, "conformal_", None)
        if joint or calibrator is not None:
            warn_infinite(ends, coverage, "predict_interval", joint=joint, conformal=calibrator)
        return self._framed(ends, lambda one: interval_columns(one, coverage), output, X)

    @answers_alpha
    def predict_quantiles(self, X: Any, alpha: ArrayLike = (0.05, 0.5, 0.95), *, output: str | None = None) -> Any:
        """Return the quantiles at the probabilities `alpha`.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_features)
            The rows to predict.
        alpha : float or array-like of shape (n_alpha,)
            Probabilities between 0 and 1.
        output : {None, "pandas", "polars"}
            ``None``: an array. Else a data frame, with the index of X where both are of pandas.

        Returns
        -------
        ndarray of shape (n_rows, n_alpha), or data frame with the columns ``q0.05``, ``q0.5`` and so on
            Of several targets (n_rows, n_targets, n_alpha), and columns begin with the target's name.
        """
        check_output(output)
        probabilities = np.atleast_1d(check_probabilities(alpha, "alpha"))
        found = self._quantiles(X, probabilities)
        return self._framed(found, lambda one: quantile_columns(one, probabilities), output, X)

    def predict_var(self, X: Any, *, output: str | None = None) -> Any:
        """Return the variances of the distributions.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_features)
            The rows to predict.
        output : {None, "pandas", "polars"}
            ``None``: an array. Else a data frame, with the index of X where both are of pandas.

        Returns
        -------
        ndarray of shape (n_rows,), or data frame with the column ``variance``
            Of several targets (n_rows, n_targets), and columns begin with the target's name.
        """
        check_output(output)
        return self._framed(self._variances(X), lambda one: {"variance": one}, output, X)

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Return the coefficient of determination R² of `predict`; of several targets, the mean of theirs.

        Parameters
        ----------
        X, y : array-like or data frame of shape (n_rows, n_features), array-like of shape (n_rows,)
            The rows and their observed values, (n_rows, n_targets) of several targets.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the rows.
        """
        check_target_names(getattr(self, "target_names_", None), y, "y")
        return float(super().score(X, y, sample_weight))  # type: ignore[misc] # RegressorMixin, which comes after, has it

    def save(
        self,
        path: str | PathLike[str],
        *,
        compress: bool = True,
        metadata: Mapping[str, Any] | None = None,
        trusted: Iterable[str] = (),
    ) -> None:
        """Save the fitted regressor to one file, which ``ibug.load`` reads.

        The file is a zip container: the tree model in its library's own format, arrays as ``.npy``, and a manifest with
        parameters, learned values, versions and checksums. It holds no pickle, so that loading it runs no code. It is
        complete before it takes the place of `path`, so that an old file stays whole if anything fails.

        Parameters
        ----------
        path
            The file, ``"model.ibug"`` say. One that is there is replaced.
        compress
            ``True``: a small file. ``False``: arrays lie in the file as they do in memory, so that `load` can map them
            instead of reading them, and processes share them.
        metadata
            Whatever is to be kept along with it, as JSON knows it: where the data came from, say. It is in the
            manifest (``ibug.persistence.inspect``), and changes nothing.
        trusted
            Names of types and functions of your own that a scikit-learn model holds, ``"module.function"`` say. Whoever
            loads the file has to pass the same ones.

        Raises
        ------
        NotStorableError
            If a part that predictions need cannot be saved without pickle, or would not be loaded again: a family or a
            model of one's own, say, or a lambda. Nothing is written then.
        """
        save(self, path, compress=compress, metadata=metadata, trusted=trusted)

    def _require_boxes(self) -> None:
        """Raise InvalidInputError unless there are boxes of several targets."""
        check_is_fitted(self)
        raise InvalidInputError(
            "joint=True makes boxes of several targets, and this estimator has one: leave joint out, or fit an "
            "IBUGRegressor to y of shape (n_rows, n_targets)."
        )

    def _ends(self, X: Any, coverage: ArrayLike, joint: bool) -> Floats:
        """Return the ends of intervals, (n_rows, 2) or (n_rows, 2, n_coverages)."""
        return self._from_distributions(X, lambda distribution: side_by_side(*distribution.interval(coverage)))

    def _quantiles(self, X: Any, probabilities: Floats) -> Floats:
        """Return quantiles, (n_rows, n_alpha)."""
        return self._from_distributions(X, lambda distribution: distribution.ppf(probabilities[None, :]))

    def _framed(
        self, values: Floats, make: Callable[[Floats], Mapping[str, Floats]], output: str | None, X: Any
    ) -> Any:
        """Return values as they are, or as a data frame with the columns that a function makes of one target's."""
        if output is None:
            return values
        names = getattr(self, "target_names_", None)
        return frame(columns_of_targets(make, values, names), output, index_of(X))

    def _variances(self, X: Any) -> Floats:
        """Return the variances, (n_rows,); one that knows them without the distributions need not make these."""
        return self.predict_dist(X).var()

    def _from_distributions(self, X: Any, function: Callable[[Distribution], Floats]) -> Floats:
        """Return what a function makes of the distributions; one that predicts in batches need not keep them all."""
        return function(self.predict_dist(X))

    def _check_training_rows(self, X: Any, y: Any) -> Rows:
        if y is None:
            raise InvalidInputError(f"This {type(self).__name__} requires y to be passed, but the target y is None.")
        X = as_rows(X)
        check_divisible(X)
        validate_data(self, X, skip_check_array=True)
        self.feature_types_ = feature_types(X)
        return X, check_targets(X, y, "y", multioutput=self._takes_multioutput)

    def _check_validation_rows(self, X_val: Any, y_val: Any, names: Sequence[str] | None = None) -> Rows | None:
        """Return validation rows and their targets, which must have these names if they have some."""
        if X_val is None and y_val is None:
            return None
        if X_val is None or y_val is None:
            missing = "X_val" if X_val is None else "y_val"
            raise InvalidInputError(f"X_val and y_val belong together: {missing} is missing.")
        X_val = as_rows(X_val)
        validate_data(self, X_val, reset=False, skip_check_array=True)
        return X_val, check_targets(X_val, y_val, "y_val", multioutput=self._takes_multioutput, names=names)

    def _check_labelled_rows(self, X: Any, y: Any, missing: str) -> Rows:
        """Return rows and targets that a fitted estimator is given later; `missing` is said where one is None."""
        if X is None or y is None:
            raise InvalidInputError(missing)
        X = self._check_rows(X)
        names = getattr(self, "target_names_", None)
        return X, check_targets(X, y, "y", multioutput=self._takes_multioutput, names=names)

    def _check_rows(self, X: Any) -> Any:
        if self._is_plain(X):  # nothing to complain of: a single row should not pay for finding that out in detail
            warn_unknown_categories(X, self.feature_types_)
            return X
        check_is_fitted(self)
        X = as_rows(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        if _num_samples(X) == 0:
            raise InvalidInputError("Found array with 0 sample(s); at least one row is needed.")
        warn_unknown_categories(X, self.feature_types_)
        return X

    def _is_plain(self, X: Any) -> bool:
        """Return at once whether X is an array or a pandas frame just as it should be."""
        if not self.__sklearn_is_fitted__():
            return False
        names = getattr(self, "feature_names_in_", None)
        if type(X) is np.ndarray:
            return names is None and X.ndim == 2 and X.shape[1] == self.n_features_in_ and len(X) > 0
        return names is not None and is_pandas(X) and len(X) > 0 and X.columns.tolist() == names.tolist()
