"""
Why is this row uncertain?
==========================

Training rows are behind each interval. They answer a question that a number cannot: are similar cases really that
different, or are there no similar cases?
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.model_selection import train_test_split

from ibug import IBUGRegressor
from ibug.plotting import DensityDisplay

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
X_train, X_rest, y_train, y_rest = train_test_split(X, y, test_size=200, random_state=1)
X_val, X_test, y_val, y_test = train_test_split(X_rest, y_rest, test_size=100, random_state=1)
model = GradientBoostingRegressor(n_estimators=60, random_state=0).fit(X_train, y_train)
u = IBUGRegressor(model, prefit=True).fit(X_train, y_train, X_val=X_val, y_val=y_val)

# %%
# The most and the least certain of the test rows.
std = u.predict_dist(X_test).std()
sure, unsure = int(np.argmin(std)), int(np.argmax(std))
for name, row in (("most certain", sure), ("least certain", unsure)):
    lower, upper = u.predict_interval(X_test.iloc[[row]], 0.9)[0]
    print(f"{name:14} prediction {u.predict(X_test.iloc[[row]])[0]:.0f}, 90 % interval from {lower:.0f} to {upper:.0f}")

# %%
# The training rows that share the most leaves with the uncertain row, with their targets. To the model these patients
# are similar, but their disease took different courses.
affinity, rows = u.kneighbors(X_test.iloc[[unsure]], n_neighbors=6)
table = X_train.iloc[rows[0]][["age", "bmi", "bp", "s5"]].assign(target=y_train.iloc[rows[0]], affinity=affinity[0])
print("the row itself:", X_test.iloc[unsure][["age", "bmi", "bp", "s5"]].round(1).to_dict())
print(table.round(1).to_string(index=False))

# %%
# The same as a picture: each predicted density over a rug of its neighbours' targets.
fig, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
DensityDisplay.from_estimator(u, X_test, y_test, rows=[sure, unsure], unit="progression score", ax=ax)
plt.show()
