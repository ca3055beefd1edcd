"""
Have the data drifted?
======================

From one day on the noise is twice as large. The model does not notice; a comparison of new rows with the validation
rows does, and calibrating again brings the coverage back.
"""

import matplotlib.pyplot as plt
import numpy as np
from lightgbm import LGBMRegressor

from ibug import IBUGRegressor
from ibug.metrics import coverage
from ibug.plotting import DriftDisplay

rng = np.random.default_rng(0)
X = rng.uniform(size=(6000, 4))
noise = np.where(np.arange(6000) < 3000, 1.0, 2.0) * (0.3 + X[:, 1])
y = 6 * X[:, 0] + rng.normal(size=6000) * noise
(X_train, X_val, X_new, X_test), (y_train, y_val, y_new, y_test) = (np.split(a, [2000, 3000, 4500]) for a in (X, y))
model = LGBMRegressor(n_estimators=100, verbose=-1).fit(X_train, y_train)
u = IBUGRegressor(model, prefit=True, conformal="scale", random_state=0).fit(X_train, y_train, X_val=X_val, y_val=y_val)

DriftDisplay.from_estimator(u, X_new, y_new, kind="pit")
plt.show()

# %%
# The tests behind the picture, and the coverage before and after.
print(u.monitor(X_new, y_new))
before = coverage(y_test, u.predict_interval(X_test, 0.9))
u.recalibrate(X_new, y_new)
print(f"90 % intervals hold {before:.0%}; calibrated again, {coverage(y_test, u.predict_interval(X_test, 0.9)):.0%}")
