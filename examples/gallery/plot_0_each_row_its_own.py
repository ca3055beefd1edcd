"""
Each row its own interval
=========================

One error for all rows is too wide for the easy ones and too narrow for the hard ones. The intervals on the right come
from the training rows that share leaves with each row, and the model is the same.
"""

import matplotlib.pyplot as plt
import numpy as np
from lightgbm import LGBMRegressor
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from ibug import IBUGRegressor
from ibug.plotting import IntervalDisplay

data = load_breast_cancer()  # biopsies: ten mean measurements, and the area of the largest cell nuclei
X, y = data.data[:, :10], data.data[:, list(data.feature_names).index("worst area")]
X_rest, X_test, y_rest, y_test = train_test_split(X, y, random_state=0)
X_train, X_val, y_train, y_val = train_test_split(X_rest, y_rest, random_state=0)
model = LGBMRegressor(n_estimators=150, learning_rate=0.04, num_leaves=7, verbose=-1).fit(X_train, y_train)
u = IBUGRegressor(model, prefit=True).fit(X_train, y_train, X_val=X_val, y_val=y_val)

error = np.sqrt(np.mean((model.predict(X_val) - y_val) ** 2))
intervals = {
    "prediction ± 1.64 RMSE": model.predict(X_test)[:, None] + 1.645 * error * np.array([-1, 1]),
    "ibug": u.predict_interval(X_test, coverage=0.9),
}
fig, axes = plt.subplots(1, 2, figsize=(10, 4.4), sharey=True, layout="constrained")
for ax, (name, interval) in zip(axes, intervals.items(), strict=True):
    IntervalDisplay.from_predictions(y_test, interval, prediction=model.predict(X_test), ax=ax, unit="µm²")
    ax.text(0.03, 0.95, name, transform=ax.transAxes, va="top", weight="bold")
plt.show()
