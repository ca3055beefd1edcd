"""
Two peaks
=========

Half of the machines run in a mode that no feature shows, so a row's target is near one of two values. A normal
distribution puts most of its probability where no target is. The default shows both peaks, because similar training
rows have both.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from ibug import IBUGRegressor

rng = np.random.default_rng(0)
X = rng.uniform(size=(4000, 3))
mode = rng.choice([-1, 1], size=4000)
y = 10 * X[:, 0] + mode * (0.5 + 3 * X[:, 1]) + 0.4 * rng.normal(size=4000)
X_train, X_val, X_test = np.split(X, [2500, 3500])
y_train, y_val, y_test = np.split(y, [2500, 3500])
model = HistGradientBoostingRegressor(max_iter=60, random_state=0).fit(X_train, y_train)

row = int(np.argmax(X_test[:, 1]))  # where the modes are far apart
grid = np.linspace(y_test[row] - 12, y_test[row] + 12, 500)
fig, ax = plt.subplots(figsize=(7, 3.8), layout="constrained")
for name, distribution, color in (("normal", "normal", "tab:gray"), ("the default", "auto", "tab:blue")):
    u = IBUGRegressor(model, prefit=True, distribution=distribution).fit(X_train, y_train, X_val=X_val, y_val=y_val)
    density = u.predict_dist(X_test[[row]])[0].pdf(grid)
    ax.plot(grid, density, color=color, label=name)
    ax.fill_between(grid, density, color=color, alpha=0.15, linewidth=0)
neighbors = u.kneighbors(X_test[[row]], 40)[1][0]
ax.plot(y_train[neighbors], np.full(40, -0.006), "|", color="black", label="targets of 40 neighbours")
ax.axvline(y_test[row], color="tab:orange", linestyle="--", label="observed")
ax.set(xlabel="y", ylabel="density")
ax.legend(loc="upper right")
plt.show()
