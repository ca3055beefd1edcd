"""
One row at a time
=================

A service answers single requests, and learns the true values later. Save the model, load it in the service, predict row
by row, and watch whether the intervals still have the coverage that they promise.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from lightgbm import LGBMRegressor

import ibug
from ibug import IBUGRegressor

rng = np.random.default_rng(0)


def sample(n, noise=1.0):
    X = rng.uniform(size=(n, 4))
    return X, 5 * X[:, 0] + 3 * X[:, 1] ** 2 + rng.normal(scale=noise * (0.3 + X[:, 0]))


X_train, y_train = sample(3000)
X_val, y_val = sample(600)
model = LGBMRegressor(n_estimators=100, learning_rate=0.05, num_leaves=15, verbose=-1).fit(X_train, y_train)
u = IBUGRegressor(model, prefit=True, conformal="scale", random_state=0)
u.fit(X_train, y_train, X_val=X_val, y_val=y_val)

# %%
# A file that is saved without compression is mapped into memory when it is loaded, and several processes share it.
folder = tempfile.TemporaryDirectory()
path = Path(folder.name) / "model.ibug"
u.save(path, compress=False)
served = ibug.load(path)

# %%
# Four hundred requests. After the first half the data get noisier, and the model does not know.
X_calm, y_calm = sample(200)
X_rough, y_rough = sample(200, noise=2.5)
inside = []
for x, observed in zip(np.vstack([X_calm, X_rough]), np.concatenate([y_calm, y_rough]), strict=True):
    lower, upper = served.predict_interval(x[None], coverage=0.9)[0]
    inside.append(lower <= observed <= upper)
print(f"first half: {np.mean(inside[:200]):.0%} inside, second half: {np.mean(inside[200:]):.0%}")

# %%
# The share inside over the last 50 requests shows it. When it stays below the promised coverage, calibrate again on new
# rows; this trains nothing.
served.recalibrate(X_rough, y_rough, distribution="auto")
X_later, y_later = sample(500, noise=2.5)
lower, upper = served.predict_interval(X_later, coverage=0.9).T
print(f"calibrated again: {np.mean((lower <= y_later) & (y_later <= upper)):.0%} inside")

share = np.convolve(inside, np.ones(50) / 50, mode="valid")
fig, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
ax.plot(np.arange(50, 401), share, color="tab:blue")
ax.axhline(0.9, color="black", linestyle="--", linewidth=1)
ax.axvline(200, color="tab:orange", linewidth=1)
ax.annotate("noise grows", (200, 0.5), (6, 0), textcoords="offset points", color="tab:orange")
ax.set(xlabel="request", ylabel="inside, last 50 requests", ylim=(0.4, 1.02))
plt.show()
folder.cleanup()
