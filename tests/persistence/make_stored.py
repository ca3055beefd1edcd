"""Write the stored file of the present format version, with the predictions it must give forever.

Run it once for a new version of the format, never again for an old one::

    python tests/persistence/make_stored.py
"""

from pathlib import Path

import numpy as np
from lightgbm import LGBMRegressor
from sklearn.datasets import load_diabetes

from ibug import IBUGRegressor
from ibug.persistence import FORMAT_VERSION

DATA = Path(__file__).parent / "data"


def main() -> None:
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    model = LGBMRegressor(n_estimators=4, num_leaves=4, verbose=-1, n_jobs=1)
    u = IBUGRegressor(model, conformal="distribution", random_state=0, n_jobs=1)
    u.fit(X[:150], y[:150])
    u.save(DATA / f"version-{FORMAT_VERSION}.ibug")
    np.savez_compressed(
        DATA / f"version-{FORMAT_VERSION}.npz",
        X=X[:20].to_numpy(),
        predict=u.predict(X[:20]),
        quantiles=u.predict_quantiles(X[:20]),
        variance=u.predict_var(X[:20]),
        neighbors=np.stack(u.kneighbors(X[:20], 5)),
    )


if __name__ == "__main__":
    main()
