"""
All diagnostics in one figure
=============================

One call draws what you need before you rely on the intervals of a model.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.model_selection import train_test_split

from ibug import IBUGRegressor
from ibug.plotting import diagnose

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
X_train, X_rest, y_train, y_rest = train_test_split(X, y, test_size=200, random_state=1)
X_val, X_test, y_val, y_test = train_test_split(X_rest, y_rest, test_size=100, random_state=1)
model = GradientBoostingRegressor(n_estimators=60, random_state=0).fit(X_train, y_train)
u = IBUGRegressor(model, prefit=True).fit(X_train, y_train, X_val=X_val, y_val=y_val)

diagnose(u, X_test, y_test, unit="progression score")
plt.show()
