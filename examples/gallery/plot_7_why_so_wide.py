"""
Which features make it wide?
============================

An interval is wide for a reason. Shapley values divide log σ of one row among its features: some make the distribution
wider than usual, others narrower. This needs the `shap` package: ``pip install "ibug-learn[explain]"``.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.model_selection import train_test_split

from ibug import IBUGRegressor
from ibug.explain import influence
from ibug.plotting import DriversDisplay, WidthDisplay

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
X_train, X_rest, y_train, y_rest = train_test_split(X, y, test_size=200, random_state=1)
X_val, X_test, y_val, y_test = train_test_split(X_rest, y_rest, test_size=100, random_state=1)
model = GradientBoostingRegressor(n_estimators=60, random_state=0).fit(X_train, y_train)
u = IBUGRegressor(model, prefit=True).fit(X_train, y_train, X_val=X_val, y_val=y_val)

# %%
# The least certain of the test rows, compared with 50 training rows: the factors of its features lead from their
# typical σ to its own.
unsure = int(np.argmax(u.predict_var(X_test)))
WidthDisplay.from_estimator(u, X_test, X_train, row=unsure, n_features=6)
plt.show()

# %%
# The same numbers for shap's own plots are in ``explain_width(u, X_test, X_train)``. Over several rows: which features
# move the spread, beside which move the prediction.
DriversDisplay.from_estimator(u, X_test[:20], X_train, n_background=20)
plt.show()

# %%
# And the training rows: without the one that matters most, the interval would be another one.
found = influence(u, X_test.iloc[[unsure]], coverage=0.9, n_most=3)
print("the interval:", found.interval[0].round(1))
for row, without, change in zip(found.rows[0], found.without[0], found.width_change[0], strict=True):
    print(f"without training row {row}, target {y_train.iloc[row]:.0f}: {without.round(1)}, width {change:+.1f}")
