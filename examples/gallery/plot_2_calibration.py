"""
Are the intervals right? A check before anyone relies on them
=============================================================

Three numbers and two pictures on rows that were neither trained nor calibrated on.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import train_test_split

from ibug import IBUGRegressor
from ibug.metrics import evaluate
from ibug.plotting import CalibrationDisplay, PITDisplay

X, y = load_diabetes(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=150, random_state=0)

# %%
# Not enough rows to spare for validation: five clones, each trained without a fifth of the rows, take their place.
u = IBUGRegressor(HistGradientBoostingRegressor(max_iter=60, max_leaf_nodes=8, random_state=0), random_state=0)
u.fit(X_train, y_train)
scores = evaluate(u, X_test, y_test)
for name in ("crps", "crps_skill", "coverage_50", "coverage_90"):
    print(f"{name:12} {scores[name]:7.3f}   {scores.meanings[name]}")

# %%
# On the diagonal intervals hold as much as they say, at every level. The same model without calibration stands beside
# it; the grey band is what chance alone would do with so few rows.
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
CalibrationDisplay.from_estimator({"calibrated": u, "not": u.uncalibrated()}, X_test, y_test, ax=left)
PITDisplay.from_estimator(u, X_test, y_test, n_bins=10, ax=right)
plt.show()
