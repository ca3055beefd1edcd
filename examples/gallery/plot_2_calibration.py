"""
Are the intervals right? A check before anyone relies on them
=============================================================

This example shows some numbers and two pictures, on rows that were used neither for training nor for calibration.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_friedman1
from sklearn.ensemble import HistGradientBoostingRegressor

from ibug import IBUGRegressor
from ibug.metrics import evaluate
from ibug.plotting import CalibrationDisplay, PITDisplay

X, y = make_friedman1(5000, noise=1.5, random_state=0)
X_train, X_val, X_test = np.split(X, [2000, 3000])
y_train, y_val, y_test = np.split(y, [2000, 3000])
model = HistGradientBoostingRegressor(random_state=0).fit(X_train, y_train)

# %%
# The same model twice: with the plain spread of 301 neighbours, and with the default, a stack whose parts and weights
# come from validation rows.
raw = IBUGRegressor(model, prefit=True, distribution="normal", k=301, calibrate=False).fit(X_train, y_train)
u = IBUGRegressor(model, prefit=True).fit(X_train, y_train, X_val=X_val, y_val=y_val)
for name, estimator in (("301 neighbours", raw), ("calibrated", u)):
    scores = evaluate(estimator, X_test, y_test)
    print(
        f"{name:16} CRPS {scores['crps']:.3f}, 50 % intervals hold {scores['coverage_50']:.0%}, "
        f"90 % intervals {scores['coverage_90']:.0%}"
    )

# %%
# On the diagonal, intervals of every level cover as many values as they claim. Above it they are too wide: the means of
# 301 neighbours differ, and this difference is part of their spread. The grey band is what chance alone does with this
# number of rows.
fig, ax = plt.subplots(figsize=(6, 5), layout="constrained")
CalibrationDisplay.from_estimator({"301 neighbours": raw, "calibrated": u}, X_test, y_test, ax=ax)
plt.show()

# %%
# F(y) should be uniform. A hump means that the distributions are too wide, high ends that they are too narrow.
fig, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", sharey=True)
for ax, name, estimator in zip(axes, ("301 neighbours", "calibrated"), (raw, u), strict=True):
    PITDisplay.from_estimator(estimator, X_test, y_test, n_bins=20, ax=ax)
    ax.set_xlabel(f"F(y), {name}")
plt.show()
