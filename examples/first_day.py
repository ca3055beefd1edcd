"""What a new user meets on the first day, with made files and the real command: run it, and read what is said.

    python examples/first_day.py

Each step writes a small file as people have them, runs ``ibug`` on it, and shows what it answers: names with brackets
and commas, semicolons and decimal commas, dates, ids among the features, misspelt parameters, tables without rows, and
the classic mistakes. Needs ``ibug-learn[cli,skops]``; LightGBM is used if it is there.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

QUICK = ["--trees", "20", "--distribution", "normal", "--spread", "targets", "--k", "20"]


def table(n: int = 400) -> pd.DataFrame:
    """Return orders with a price; columns have names as people give them."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "order": 1000 + np.arange(n),
            "a [USD]": rng.normal(10, 3, n).round(2),
            "b: x": rng.normal(size=n).round(3),
            "zone, type": rng.choice(["north", "south"], n),
            "größe": rng.integers(1, 9, n),
            "when": pd.date_range("2024-01-05", periods=n).strftime("%Y-%m-%d"),
        }
    )
    return frame.assign(price=(20 * frame["a [USD]"] + 5 * frame["größe"] + rng.normal(size=n)).round(2))


def run(arguments: tuple[str, ...], folder: Path) -> tuple[int, str, str]:
    """Run the command in the folder; return its exit code, and what it has written to both streams."""
    command = [sys.executable, "-m", "ibug.cli", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, encoding="utf-8", check=False)
    return done.returncode, done.stdout, done.stderr


def ibug(folder: Path, title: str, *arguments: str, expect: int = 0) -> str:
    """Run the command in the folder, show it with what it says, and return that."""
    print(f"\n# {title}\n$ ibug {' '.join(repr(a) if ' ' in a or ',' in a else a for a in arguments)}")
    code, out, err = run(arguments, folder)
    said = err + "".join(line + "\n" for line in out.splitlines()[:3])
    print(said.rstrip() or "(nothing to say)")
    if code != expect:
        raise SystemExit(f"exit code {code}, expected {expect}")
    return said


def write_files(folder: Path) -> None:
    """Write the made files."""
    frame = table()
    train, valid, test = frame[:250], frame[250:330], frame[330:]
    for name, part in (("train", train), ("valid", valid), ("test", test), ("empty", test[:0]), ("five", valid[:5])):
        part.to_csv(folder / f"{name}.csv", index=False, encoding="utf-8")
    train.to_csv(folder / "german.csv", index=False, sep=";", decimal=",", encoding="utf-8")
    test.to_csv(folder / "german_test.csv", index=False, sep=";", decimal=",", encoding="utf-8")
    train.assign(**{"a [USD]": train["a [USD]"].astype(str).str.replace(".", ",")}).to_csv(
        folder / "quoted.csv", index=False, encoding="utf-8"
    )


def main() -> None:
    """Go through the list."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_files(folder)
        fit = ("fit", "train.csv", "-t", "price", *QUICK, "-o", "model.ibug")
        ibug(folder, "An id among the features, and dates, are noted", *fit)
        ibug(folder, "Columns with commas are named one by one", *fit, "--id", "order", "--drop", "zone, type")
        ibug(folder, "Names are the user's own", "info", "model.ibug")
        ibug(folder, "Predictions", "predict", "model.ibug", "test.csv", "--id", "order")
        ibug(folder, "A table without rows gives a table without rows", "predict", "model.ibug", "empty.csv")
        german = ("fit", "german.csv", "-t", "price", "--id", "order", *QUICK, "-o", "german.ibug")
        ibug(folder, "Semicolons and decimal commas are recognised", *german)
        ibug(folder, "In new rows, too", "predict", "german.ibug", "german_test.csv", "--id", "order")
        quoted = ("fit", "quoted.csv", "-t", "price", *QUICK, "-o", "quoted.ibug")
        ibug(folder, "Numbers with commas never become categories", *quoted, expect=1)
        ibug(folder, "A misspelt parameter", *fit, "--param", "max_dept=5", expect=1)
        ibug(folder, "Validation rows that are training rows: a note", *fit, "--valid", "train.csv")
        ibug(folder, "… or an error", *fit, "--valid", "train.csv", "--strict", expect=1)
        few = (*fit, "--valid", "five.csv", "--conformal", "scale")
        ibug(folder, "Five validation rows promise no interval of 90 %", *few)
        ibug(folder, "… and predictions say so", "predict", "model.ibug", "test.csv", "--id", "order")
        ibug(folder, "Training rows are not for scores", "evaluate", "model.ibug", "train.csv")


if __name__ == "__main__":
    main()
