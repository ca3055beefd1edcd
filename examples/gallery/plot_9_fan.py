"""
A fan of quantiles over time
============================

The demand of the next two weeks, hour by hour. One model gives all quantiles, so they never cross.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import TimeSeriesSplit

from ibug import IBUGRegressor

rng = np.random.default_rng(0)
hours = pd.date_range("2024-01-01", periods=24 * 120, freq="h")
busy = 1 - np.cos(2 * np.pi * hours.hour.to_numpy() / 24)  # quiet at night, and then the noise is small
demand = 20 + 30 * busy + 10 * (hours.weekday < 5) + (1 + 4 * busy) * rng.normal(size=len(hours))
rows = pd.DataFrame({"hour": hours.hour, "weekday": hours.weekday}, index=hours)
rows["a_week_ago"] = pd.Series(demand, hours).shift(168)
X, y = rows[168:], demand[168:]
past, future = slice(0, -24 * 14), slice(-24 * 14, None)

# %%
# Validation rows come after the rows of their training, as in use.
model = HistGradientBoostingRegressor(max_iter=60, random_state=0)
u = IBUGRegressor(model, cv=TimeSeriesSplit(5), random_state=0).fit(X[past], y[past])
lower, upper = u.predict_interval(X[future], coverage=[0.5, 0.8, 0.95]).transpose(1, 0, 2)

days = slice(0, 24 * 4)
times = X[future].index[days]
fig, ax = plt.subplots(figsize=(9, 3.8), layout="constrained")
for level, alpha, low, high in zip((95, 80, 50), (0.2, 0.3, 0.45), lower.T[::-1], upper.T[::-1], strict=True):
    label = f"{level} % interval"
    ax.fill_between(times, low[days], high[days], color="tab:blue", alpha=alpha, linewidth=0, label=label)
ax.plot(times, y[future][days], ".", color="black", markersize=4, label="observed")
ax.set(ylabel="demand")
ax.legend(ncols=4, loc="lower left", bbox_to_anchor=(0, 1), frameon=False)
ax.margins(x=0)
plt.show()
