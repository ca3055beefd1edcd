"""
A skewed target: a stack, or which family?
==========================================

Costs are positive and skewed to the right. A normal distribution can have the right mean and width, and still give
negative costs a probability. The default, a stack, takes the shape from the neighbours. A family is chosen after
training, so trying several is cheap.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from ibug import IBUGRegressor
from ibug.metrics import crps, nll

rng = np.random.default_rng(1)
X = rng.uniform(size=(4000, 4))
y = np.exp(1.5 * X[:, 0] + X[:, 1] + rng.normal(scale=0.3 + 0.5 * X[:, 0]))
X_train, X_val, X_test = np.split(X, [2000, 3000])
y_train, y_val, y_test = np.split(y, [2000, 3000])
model = HistGradientBoostingRegressor(max_iter=60, random_state=0).fit(X_train, y_train)

# %%
# One model, the stack (``"auto"``) and four families, judged on rows that none of them has seen. Lower is better in
# both scores. ``support=(0, inf)`` keeps the stack from negative costs.
predicted = {}
for family in ("auto", "normal", "gumbel", "weibull", "lognormal"):
    support = (0, np.inf) if family == "auto" else None
    u = IBUGRegressor(model, prefit=True, distribution=family, support=support, scoring="nll")
    u.fit(X_train, y_train, X_val=X_val, y_val=y_val)
    predicted[family] = u.predict_dist(X_test)
    below = float(np.mean(predicted[family].cdf(-1e-9)))
    print(
        f"{family:10} CRPS {crps(y_test, predicted[family]):.3f}   NLL {nll(y_test, predicted[family]):.3f}   "
        f"probability of a negative cost {below:.1%}"
    )

# %%
# ``distribution="tune"`` compares all families, with every number of neighbours, on the validation rows.
best = IBUGRegressor(model, prefit=True, distribution="tune", scoring="nll")
best.fit(X_train, y_train, X_val=X_val, y_val=y_val)
print("chosen:", best.distribution_)

# %%
# The densities that the stack and two of the families predict for the same row. The stack is skewed without being told.
row = int(np.argmax(y_test > 6))
grid = np.linspace(-5, 25, 600)
fig, ax = plt.subplots(figsize=(7, 3.8), layout="constrained")
for family, color in (("normal", "tab:gray"), ("lognormal", "tab:blue"), ("auto", "tab:green")):
    density = predicted[family][row].pdf(grid)
    ax.plot(grid, density, color=color, label="stack" if family == "auto" else family)
    ax.fill_between(grid, density, color=color, alpha=0.15, linewidth=0)
ax.axvline(y_test[row], color="tab:orange", linestyle="--", label="observed")
ax.axvline(0, color="black", linewidth=0.8)
ax.set(xlabel="cost", yticks=[], ylim=0)
ax.legend()
plt.show()
