"""
Rows far from the training data
===============================

A model predicts a value for every row, even for rows far from anything it was trained on. The affinity of a row's
neighbours, the share of the trees in which they share its leaf, is a warning that costs nothing.
"""

import matplotlib.pyplot as plt
import numpy as np
from lightgbm import LGBMRegressor

from ibug import IBUGRegressor

# %%
# Six measurements that are correlated, because two causes are behind them all.
rng = np.random.default_rng(0)
causes = rng.normal(size=(4000, 2))
X = causes @ rng.normal(size=(2, 6)) + 0.2 * rng.normal(size=(4000, 6))
y = causes[:, 0] ** 2 + 3 * causes[:, 1] + 0.5 * rng.normal(size=4000)
X_train, X_val, X_test = np.split(X, [2000, 3000])
y_train, y_val, y_test = np.split(y, [2000, 3000])
model = LGBMRegressor(n_estimators=100, num_leaves=15, verbose=-1).fit(X_train, y_train)
u = IBUGRegressor(model, prefit=True).fit(X_train, y_train, X_val=X_val, y_val=y_val)

# %%
# Strange rows: every single value is ordinary, but the values of a row do not belong together.
strange = np.column_stack([rng.permutation(column) for column in X_test.T])

# %%
# Scores of both, and the threshold that all but 1 % of the validation rows exceed.
ordinary_score, strange_score = u.affinity_score(X_test), u.affinity_score(strange)
for name, score in (("ordinary", ordinary_score), ("strange", strange_score)):
    print(
        f"{name:9} mean affinity {score.mean():.2f}, below the threshold {np.mean(score < u.affinity_threshold_):.0%}"
    )

fig, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
bins = np.linspace(0, max(ordinary_score.max(), strange_score.max()), 40)
ax.hist(ordinary_score, bins, color="tab:blue", alpha=0.6, label="test rows")
ax.hist(strange_score, bins, color="tab:orange", alpha=0.6, label="strange rows")
ax.axvline(u.affinity_threshold_, color="black", linestyle="--", label="threshold")
ax.set(xlabel="affinity score", ylabel="rows")
ax.legend()
plt.show()

# %%
# A low score is a warning; a high score proves nothing. Rows beyond the training data along one feature fall into the
# outermost leaves, together with the outermost training rows, and may look similar to them.
