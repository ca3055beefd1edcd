"""The parameters of IBUGRegressor, checked once, with objects in place of strings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator

from ibug._parallel import check_n_jobs
from ibug._validation import check_count, check_flags
from ibug.calibration import ConformalCalibrator, check_calibrate, check_without_validation, conformal_calibrator
from ibug.distributions import Distribution, Normal, families, learns_from_targets, resolve_family
from ibug.exceptions import InvalidInputError
from ibug.metrics import Scoring, resolve_scoring
from ibug.neighbors import Sampling

Support = tuple[float, float]

LOCATIONS = ("model", "neighbors")


@dataclass(frozen=True)
class SpreadOption:
    """What the variance may be made of."""

    quantities: tuple[str, ...]  # what neighbours are asked for; the first one where there is nothing to choose on
    combines: bool = False  # whether a combination is a candidate; then later quantities are used where they exist

    @property
    def wants_residuals(self) -> bool:
        """Whether out-of-sample residuals are of use."""
        return "residuals" in self.quantities

    @property
    def requires_residuals(self) -> bool:
        """Whether nothing else will do."""
        return self.quantities == ("residuals",)


SPREADS = {
    "auto": SpreadOption(("targets", "residuals"), combines=True),
    "targets": SpreadOption(("targets",)),
    "residuals": SpreadOption(("residuals",)),
}


#: Who may make out-of-sample residuals of the training rows.
RESIDUALS = ("auto", "model", "none")


@dataclass(frozen=True, eq=False)
class Options:
    """What IBUGRegressor was asked for; see its parameters."""

    given_k: Any  # the number of neighbours, or "tune"; see `k`
    distribution: Any
    families: tuple[tuple[str, type[Distribution]], ...]  # names and classes to choose from
    chooses_family: bool  # whether there may be several
    no_stack: str  # why the stack that was asked for is no candidate, if it is not; else empty
    location: str
    support: Support | str | None  # "auto" to find them
    spread: SpreadOption
    residuals: str
    scoring: str | Scoring
    calibrate: bool | str
    conformal: str | ConformalCalibrator | None
    sampling: Sampling
    search: str | int  # "auto", "exact" or a number of cells
    cv: Any  # the folds that clones are trained in, if they were given
    held_out: float | None  # the share that is held out in place of them, if it was given
    refit: bool
    prefit: bool
    n_jobs: int | None
    verbose: bool

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> Options:
        """Check the parameters of an estimator, as ``get_params(deep=False)`` returns them."""
        given = dict(parameters)
        resolve_scoring(given["scoring"])
        check_flags(**{name: given[name] for name in ("refit", "prefit")})
        check_calibrate(given["calibrate"])
        if given["spread"] not in tuple(SPREADS):
            raise InvalidInputError(f"spread must be one of {tuple(SPREADS)}; got {given['spread']!r}.")
        cv, held_out = _folds_or_share(given["cv"])
        _check_residuals(given["residuals"], cv)
        conformal_calibrator(given["conformal"])
        check_n_jobs(given["n_jobs"])
        if given["location"] not in LOCATIONS:
            raise InvalidInputError(f"location must be one of {LOCATIONS}; got {given['location']!r}.")
        chosen, several = _families(given["distribution"])
        as_given = ("distribution", "location", "residuals", "scoring", "calibrate", "conformal", "refit", "n_jobs")
        return cls(
            **{name: given[name] for name in as_given},
            given_k=given["k"],
            families=chosen,
            chooses_family=several,
            no_stack=_no_stack(given),
            support=_support(given["support"]),
            spread=SPREADS[given["spread"]],
            sampling=_sampling(given["sampling"]),
            search=_search(given["search"]),
            cv=cv,
            held_out=held_out,
            prefit=given["prefit"] or isinstance(given["estimator"], FrozenEstimator),
            verbose=bool(given["verbose"]),
        )

    @property
    def stacks(self) -> bool:
        """Whether a stack of experts is a candidate, alone or beside families; the normal distribution is one."""
        return _is_one_of(self.distribution, "auto", "tune") and not self.no_stack

    @property
    def loss(self) -> str:
        """The score of the normal distribution that a combination of spreads is fitted to: CRPS for a user's own."""
        return self.scoring if isinstance(self.scoring, str) else "crps"

    @property
    def k(self) -> int | None:
        """The number of neighbours; None to choose it. It is a number once `check_k` has passed."""
        return None if self._chooses_k else int(self.given_k)

    @property
    def _chooses_k(self) -> bool:
        return isinstance(self.given_k, str) and self.given_k == "tune"

    @property
    def needs_validation(self) -> bool:
        """Whether there is something to choose or to calibrate on validation rows."""
        chooses = self.chooses_family or self.k is None
        return bool(chooses or self.calibrate or self.conformal is not None)

    @property
    def cross_fits(self) -> bool:
        """Whether out-of-fold predictions are tuned on where no validation rows are given."""
        return self.refit and (self.cv is not None or self.wants_clones)

    @property
    def share_held_out(self) -> float:
        """The share of the rows that is held out, where rows have to be."""
        return 0.2 if self.held_out is None else self.held_out

    @property
    def scales_errors(self) -> bool:
        """Whether errors of clones are scaled to those of the final model; conformal calibration keeps the larger."""
        return bool(self.calibrate) and self.conformal is None

    @property
    def wants_residuals(self) -> bool:
        """Whether out-of-sample residuals of the training rows are of use, and may be had."""
        return self.spread.wants_residuals and self.residuals != "none"

    @property
    def wants_clones(self) -> bool:
        """Whether clones are trained for residuals: if they may be, and of a model that is trained here."""
        by_default = self.residuals == "auto" and self.held_out is None and not self.prefit
        return self.wants_residuals and (self.cv is not None or by_default)

    @property
    def asks_model(self) -> bool:
        """Whether the model itself is asked for residuals, where no clones are trained."""
        return self.wants_residuals and not self.wants_clones

    @property
    def looks_at_targets(self) -> bool:
        """Whether some family learns from all training targets before it is fitted to neighbours."""
        return any(learns_from_targets(family) for _, family in self.families)

    def conformal_calibrator(self) -> Any:
        """Return an unfitted conformal calibrator, or None."""
        return conformal_calibrator(self.conformal)

    def check(self, n_rows: int, fit_params: Mapping[str, Any], *, has_validation: bool) -> None:
        """Check the options against what `fit` was given."""
        self.check_k(n_rows)
        if not self.prefit or self.cv is not None:
            if self.spread.requires_residuals and not has_validation:
                self._check_level()
            return
        # Residuals need weights if the model was trained with them.
        weights_of_use = self.sampling.weight_neighbors or (self.asks_model and has_validation)
        unused = sorted(name for name in fit_params if not (weights_of_use and is_weight(name)))
        if unused:
            raise InvalidInputError(
                f"With prefit=True the estimator is not trained, so {unused} would have no effect: "
                "leave them out, or set prefit=False."
            )
        if not has_validation:
            self._check_without_validation()

    def check_k(self, n_rows: int) -> None:
        """Check k against the rows that will be in the index at the end; one neighbour alone has no variance."""
        self.check_indexed_k(self.sampling.n_rows(n_rows))

    def check_indexed_k(self, n_indexed: int) -> None:
        """Check k against the rows that are in an index already."""
        if not self._chooses_k:
            check_count(self.given_k, min(2, n_indexed), n_indexed, 'k, unless it is "tune",')

    def check_residual_rows(self, n_rows: int) -> None:
        """Check that there are enough validation rows to take residuals from."""
        least = 3 if self.k is None else self.k + 1
        if n_rows < least:
            raise InvalidInputError(
                f'spread="residuals" takes the residuals of validation rows here; {n_rows} of them are too few for '
                f"k={self.given_k!r}: at least {least} are needed. Give more, or let cv=5 train clones for residuals "
                "of all training rows."
            )

    def _check_level(self) -> None:
        """Check that residuals alone can be had, at their right level, where no validation rows are given."""
        held_out = self.needs_validation and not self.prefit and not (self.residuals == "none" and self.refit)
        if not (self.residuals == "auto" or self.wants_clones or held_out):
            raise InvalidInputError(
                f'spread="residuals" with residuals="{self.residuals}" needs rows that the model has not seen: pass '
                'X_val and y_val, or set residuals="auto", which trains clones.'
            )

    def _check_without_validation(self) -> None:
        """Check that a trained model needs no rows that it has not seen."""
        if self.spread.requires_residuals:
            raise InvalidInputError(
                'spread="residuals" needs errors that the trained model made on rows it has not seen; on its own '
                "training rows they are too small. Either pass such rows, fit(X_train, y_train, X_val=X_val, "
                "y_val=y_val), or let IBUGRegressor(model, prefit=True, cv=5) train five clones for residuals of the "
                'training rows, or choose spread="targets".'
            )
        if self.k is None:
            raise InvalidInputError(
                'k="tune" needs rows that the trained model has not seen. Either pass them, '
                "fit(X_train, y_train, X_val=X_val, y_val=y_val), or fix the number of neighbours, "
                "IBUGRegressor(model, prefit=True, k=100), or let cv=5 train five clones to tune on."
            )
        if self.chooses_family:
            raise InvalidInputError(
                f"distribution={self.distribution!r} needs rows that the trained model has not seen: pass X_val and "
                "y_val, or name one family."
            )
        check_without_validation(self.calibrate, self.conformal)


def is_weight(name: str) -> bool:
    """Return whether a parameter of `fit` has the weights of rows: as it is, or for a step of a pipeline."""
    return name.rpartition("__")[2] == "sample_weight"


def _check_residuals(residuals: Any, cv: Any) -> None:
    if not isinstance(residuals, str) or residuals not in RESIDUALS:
        raise InvalidInputError(f"residuals must be one of {RESIDUALS}; got {residuals!r}.")
    if residuals == "model" and cv is not None:
        raise InvalidInputError(
            f'cv={cv!r} trains clones for out-of-sample residuals, and residuals="model" asks the trained '
            "model for them instead. Drop one of them."
        )


def _families(distribution: Any) -> tuple[tuple[tuple[str, type[Distribution]], ...], bool]:
    """Return names and classes of the families to choose from, and whether there may be several."""
    if _is_one_of(distribution, "auto"):
        return (("normal", Normal),), False
    several = _is_one_of(distribution, "tune") or isinstance(distribution, (list, tuple))
    if not several:
        return (resolve_family(distribution),), False
    chosen = families() if isinstance(distribution, str) else distribution
    return tuple(resolve_family(family) for family in chosen), True


def _is_one_of(distribution: Any, *names: str) -> bool:
    return isinstance(distribution, str) and distribution in names


def _no_stack(given: Mapping[str, Any]) -> str:
    """Return why the stack that was asked for is no candidate; nothing where it is one, or was not asked for."""
    if not _is_one_of(given["distribution"], "auto", "tune"):
        return ""
    if given["location"] != "model":
        return 'location="neighbors" fits one family to the neighbours.'
    return "" if given["calibrate"] else "Weights of experts are a calibration: calibrate=False leaves them out."


def _sampling(sampling: Any) -> Sampling:
    if sampling is None:
        return Sampling()
    if not isinstance(sampling, Sampling):
        raise InvalidInputError(
            f"sampling must be None or an ibug.Sampling, Sampling(tree_fraction=0.5) say; got {sampling!r}."
        )
    return sampling


def _search(search: Any) -> str | int:
    if isinstance(search, str) and search in ("auto", "exact"):
        return search
    if isinstance(search, (int, np.integer)) and not isinstance(search, bool) and search >= 1:
        return int(search)
    raise InvalidInputError(f'search must be "auto", "exact" or a number of cells from 1 on; got {search!r}.')


def _folds_or_share(cv: Any) -> tuple[Any, float | None]:
    """Return the folds to train clones in, or else the share of the rows that is held out; None where not given."""
    if not isinstance(cv, (float, np.floating)):
        return cv, None
    if not 0 < cv < 1:
        raise InvalidInputError(
            "cv must be the share of the rows that is held out, a number between 0 and 1, or a whole number of folds, "
            f"a splitter or a list of splits; got {cv!r}."
        )
    return None, float(cv)


def _support(support: Any) -> Support | str | None:
    """Return the bounds of the target as floats; None and ``"auto"`` as they are."""
    if support is None or (isinstance(support, str) and support == "auto"):
        return support
    try:
        lower, upper = (float(bound) for bound in support)
    except (TypeError, ValueError):
        lower = upper = np.nan
    if not lower < upper:
        raise InvalidInputError(
            'support must be a pair (lower, upper), lower below upper, (0, inf) say, or "auto" or None; got '
            f"{support!r}."
        )
    return lower, upper
