"""The types that a stored scikit-learn model may hold, beyond those that skops trusts by itself.

skops trusts scikit-learn's estimators, and the universal functions of NumPy and SciPy. Here is what these estimators
hold besides: each entry is there because some estimator of scikit-learn, fitted, has it
(``tests/persistence/test_transformers.py`` saves and loads them all). No function in the list does more than
arithmetic. What scikit-learn does not check, the numbers in its trees, is checked before anything is predicted.
"""

from __future__ import annotations

_TREES = (
    "sklearn.tree._tree.Tree",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.neighbors._ball_tree.BallTree",
    "sklearn.neighbors._kd_tree.KDTree",
)

_LOSSES = (
    "sklearn._loss.link.IdentityLink",
    "sklearn._loss.link.Interval",
    "sklearn._loss.link.LogLink",
    "sklearn._loss.loss.AbsoluteError",
    "sklearn._loss.loss.HalfGammaLoss",
    "sklearn._loss.loss.HalfPoissonLoss",
    "sklearn._loss.loss.HalfSquaredError",
    "sklearn._loss.loss.HalfTweedieLoss",
    "sklearn._loss.loss.HalfTweedieLossIdentity",
    "sklearn._loss.loss.HuberLoss",
    "sklearn._loss.loss.PinballLoss",
)

# What estimators keep of their fit, or are given to fit with.
_PARTS = (
    "sklearn.cluster._bisect_k_means._BisectingTree",
    "sklearn.compose._column_transformer._RemainderColsList",
    "sklearn.compose._column_transformer.make_column_selector",
    "sklearn.ensemble._hist_gradient_boosting.binning._BinMapper",
    "sklearn.impute._iterative.IterativeImputer",  # an estimator, which only those see who ask for experimental ones
    "sklearn.impute._iterative._ImputerTriplet",
    "sklearn.metrics._dist_metrics.ChebyshevDistance",
    "sklearn.metrics._dist_metrics.ChebyshevDistance64",
    "sklearn.metrics._dist_metrics.EuclideanDistance",
    "sklearn.metrics._dist_metrics.EuclideanDistance64",
    "sklearn.metrics._dist_metrics.ManhattanDistance",
    "sklearn.metrics._dist_metrics.ManhattanDistance64",
    "sklearn.model_selection._split.GroupKFold",
    "sklearn.model_selection._split.KFold",
    "sklearn.model_selection._split.RepeatedKFold",
    "sklearn.model_selection._split.ShuffleSplit",
    "sklearn.model_selection._split.TimeSeriesSplit",
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
    "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
    "sklearn.utils._bunch.Bunch",
)

_KERNELS = tuple(
    f"sklearn.gaussian_process.kernels.{name}"
    for name in (
        "CompoundKernel", "ConstantKernel", "DotProduct", "ExpSineSquared", "Exponentiation", "Matern",
        "PairwiseKernel", "Product", "RBF", "RationalQuadratic", "Sum", "WhiteKernel",
    )
)  # fmt: skip

_FUNCTIONS = (
    "sklearn.cluster._kmeans._kmeans_single_elkan",
    "sklearn.cluster._kmeans._kmeans_single_lloyd",
    "sklearn.feature_selection._mutual_info.mutual_info_classif",
    "sklearn.feature_selection._mutual_info.mutual_info_regression",
    "sklearn.feature_selection._univariate_selection.chi2",
    "sklearn.feature_selection._univariate_selection.f_classif",
    "sklearn.feature_selection._univariate_selection.f_regression",
    "sklearn.feature_selection._univariate_selection.r_regression",
    "sklearn.utils.validation.check_array",  # with which HistGradientBoosting reads columns that are not categorical
    "functools.partial",  # as a partial function: one of a function that must be trusted itself
)

# Beyond universal functions: what a FunctionTransformer, a FeatureAgglomeration or a SimpleImputer is given, and what
# SciPy's splines and sparse matrices are made of.
_NUMPY_AND_SCIPY = (
    "numpy.dtype",
    "numpy.number",
    "numpy.floating",
    "numpy.integer",
    *(
        f"numpy.{name}"
        for name in (
            "amax", "amin", "around", "clip", "max", "mean", "median", "min", "nan_to_num", "nanmax", "nanmean",
            "nanmedian", "nanmin", "nanstd", "nansum", "nanvar", "round", "std", "sum", "var",
        )
    ),
    "scipy._lib.array_api_compat.numpy._aliases.asarray",
    "scipy.interpolate._bsplines.BSpline",
    "scipy.sparse._csc.csc_array",
    "scipy.sparse._csc.csc_matrix",
    "scipy.sparse._csr.csr_array",
    "scipy.sparse._csr.csr_matrix",
)  # fmt: skip

#: The names of all types and functions that are allowed.
ALLOWED_TYPES: tuple[str, ...] = (*_TREES, *_LOSSES, *_PARTS, *_KERNELS, *_FUNCTIONS, *_NUMPY_AND_SCIPY)
