"""Real data as files: from IBUG_DATA, or the folder beside the repository, or scikit-learn's own."""

import json
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")

from typer.testing import CliRunner  # noqa: E402 - after the skip

BESIDE = Path(__file__).parents[3] / "shared" / "data"


def real_data():
    """Return a table with numbers, a column of categories, an id and a target; and where it is from."""
    folder = Path(os.environ.get("IBUG_DATA", BESIDE))
    path = folder / "bike.parquet"
    if path.exists():
        frame = pd.read_parquet(path).sample(900, random_state=0).reset_index(drop=True)
        frame["hour"] = "h" + frame.pop("hr").astype(str)
        return frame
    from sklearn.datasets import load_diabetes

    frame = load_diabetes(as_frame=True, scaled=False).frame
    frame["hour"] = np.where(frame.pop("sex") > 1.5, "h1", "h2")
    return frame


@dataclass
class Files:
    """The files of a test, and the command that works on them."""

    folder: Path
    features: list

    def __getitem__(self, name):
        return str(self.folder / name)

    def run(self, *arguments, ok=True, **options):
        from ibug.cli._app import app

        result = CliRunner().invoke(app, list(map(str, arguments)), **options)
        if ok:
            assert result.exit_code == 0, (result.stderr, result.exception)
        return result

    def json(self, *arguments):
        return json.loads(self.run(*arguments, "--json").stdout)


@pytest.fixture(scope="session")
def shared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    frame = real_data()
    frame.insert(0, "order", [f"{i:04d}" for i in range(len(frame))])
    n = len(frame)
    parts = {"train": frame[: n // 2], "valid": frame[n // 2 : 3 * n // 4], "test": frame[3 * n // 4 :]}
    for name, part in parts.items():
        part = part.reset_index(drop=True)
        part.to_csv(folder / f"{name}.csv", index=False)
        part.to_csv(folder / f"{name}.csv.gz", index=False)
        part.to_csv(folder / f"{name}.tsv", index=False, sep="\t")
        part.to_parquet(folder / f"{name}.parquet")
        part.to_feather(folder / f"{name}.feather")
    files = Files(folder, [column for column in frame if column not in ("order", "target")])
    files.run(
        "fit", files["train.csv"], "-t", "target", "--id", "order", "-b", "lightgbm", "--trees", "30", "-o",
        files["model.ibug"],
    )  # fmt: skip
    return files


@pytest.fixture
def files(shared, tmp_path):
    """The shared files, and a folder of the test's own for what it writes."""
    pytest.importorskip("lightgbm")
    for path in shared.folder.iterdir():
        if path.is_file():
            (tmp_path / path.name).symlink_to(path)
    return Files(tmp_path, shared.features)


@pytest.fixture
def table(files):
    """The test rows as a frame of texts, to make other files of."""
    return pd.read_csv(files["test.csv"], dtype=str, keep_default_na=False)
