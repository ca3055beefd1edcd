"""
An interval band around a boosted model
=======================================

The noise of this curve grows to the right. The model is trained first and wrapped afterwards. Its prediction stays the
same, and the band comes from the training rows that share leaves with each row.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import GradientBoostingRegressor

from ibug import IBUGRegressor
from ibug.metrics import coverage

rng = np.random.default_rng(0)


def sample(n):
    x = rng.uniform(0, 10, n)
    return x[:, None], x * np.sin(x) + rng.normal(scale=0.3 + 0.25 * x)


X_train, y_train = sample(800)
X_val, y_val = sample(400)
X_test, y_test = sample(2000)
model = GradientBoostingRegressor(n_estimators=100, max_depth=3, random_state=0).fit(X_train, y_train)

# %%
# Wrap the trained model. One half of the validation rows chooses the number of neighbours and calibrates the width; the
# other half guarantees the coverage.
u = IBUGRegressor(model, prefit=True, conformal="scale", random_state=0)
u.fit(X_train, y_train, X_val=X_val, y_val=y_val)
print(f"The 90 % intervals hold {coverage(y_test, u.predict_interval(X_test, 0.9)):.1%} of the test values.")

# %%
# The band is narrow on the left and wide on the right, although the model was not told about the noise.
grid = np.linspace(0, 10, 500)[:, None]
lower, upper = u.predict_interval(grid, coverage=0.9).T
fig, ax = plt.subplots(figsize=(8, 4.2), layout="constrained")
ax.scatter(X_test[:500, 0], y_test[:500], s=8, color="0.6", label="test values")
ax.fill_between(grid[:, 0], lower, upper, color="tab:blue", alpha=0.25, linewidth=0, label="90 % interval")
ax.plot(grid[:, 0], model.predict(grid), color="tab:blue", label="the model")
ax.plot(grid[:, 0], grid[:, 0] * np.sin(grid[:, 0]), color="black", linestyle="--", linewidth=1, label="true mean")
ax.set(xlabel="x", ylabel="y")
ax.legend(loc="lower left")
plt.show()
