"""
Two targets at once
===================

Two targets that are high together or low together. Their joint distribution shows it, and a box holds both with the
probability that you ask for.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.multioutput import MultiOutputRegressor

from ibug import IBUGRegressor
from ibug.plotting import JointDisplay

rng = np.random.default_rng(0)
X = rng.uniform(-2, 2, size=(3000, 4))
side = rng.choice([-1.0, 1.0], size=(3000, 1))  # both are up, or both are down: no feature says which
Y = np.column_stack([X[:, 0] + X[:, 1], X[:, 1] * X[:, 2]]) + side + 0.3 * rng.normal(size=(3000, 2))
(X_train, X_val, X_test), (Y_train, Y_val, Y_test) = (np.split(a, [1800, 2400]) for a in (X, Y))
model = MultiOutputRegressor(HistGradientBoostingRegressor(max_iter=60, random_state=0)).fit(X_train, Y_train)
u = IBUGRegressor(model, prefit=True, random_state=0).fit(X_train, Y_train, X_val=X_val, y_val=Y_val)

JointDisplay.from_estimator(u, X_test[:1], Y_test[:1])
plt.show()

# %%
# The box of each row, against two intervals that hold each target by itself.
for name, boxes in (
    ("boxes", u.predict_interval(X_test, 0.9, joint=True)),
    ("two intervals", u.predict_interval(X_test, 0.9)),
):
    inside = ((boxes[:, :, 0] <= Y_test) & (Y_test <= boxes[:, :, 1])).all(axis=1)
    print(f"{name:14} hold both targets of {inside.mean():.0%} of the rows")
