"""Names of columns, categories, files and targets are texts: neither markup, nor emoji, nor orders to the terminal."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ibug.cli._terminal import visible
from tests.cli.conftest import Files

pytestmark = pytest.mark.once

NAMES = ["load [kW]", "load [/kW]", "[bold red]x", "a\x1b[31mred", "b\x9b2J", ":warning:", "tail\\", "[/]\\",
         "c\td\r", "new\nerror: fake", "\u202edne", "{x} %s $y"]  # fmt: skip
KIND, TARGET, ID = "kind [/x]\x1b[7m", "[/price]\x1b[1m \u2066", "id\x1b]0;title\x07"
TRAIN, TEST, MODEL = "train [bold]\x1b[2J.parquet", "test [x]\x9b.parquet", "model :warning:\x1bc.ibug"
UNSEEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """Files whose every name is hostile, and a model that was trained on them."""
    pytest.importorskip("lightgbm")
    files = Files(tmp_path_factory.mktemp("hostile"), NAMES)
    rng, n = np.random.default_rng(0), 400
    frame = pd.DataFrame(rng.normal(size=(n, len(NAMES))), columns=NAMES)
    frame[KIND] = rng.choice(NAMES, n)
    frame[TARGET] = frame[NAMES[0]] + frame[NAMES[3]] * rng.normal(size=n)
    frame[ID] = [f"{NAMES[i % len(NAMES)]}{i}" for i in range(n)]
    frame[:250].to_parquet(files[TRAIN])
    frame[250:].to_parquet(files[TEST])
    frame[250:].assign(**{KIND: "un[/]seen\x1b[5m"}).to_parquet(files["unseen.parquet"])
    frame[250:].drop(columns=NAMES[3]).rename(columns={NAMES[1]: NAMES[1] + "s"}).to_parquet(files["lacks.parquet"])
    frame[250:].assign(**{NAMES[4]: "[/]\x1b[1m"}).to_parquet(files["text.parquet"])
    shown(files, "fit", TRAIN, "-t", TARGET, "--id", ID, "-b", "lightgbm", "--trees", "20", "-o", MODEL, "--verbose")
    return files


def shown(files, *arguments, code=0):
    """Run a command with these files, and return what the terminal gets."""
    paths = [
        files[each] if each.endswith((".parquet", ".ibug", ".csv", ".html", ".json")) else each for each in arguments
    ]
    result = files.run(*paths, ok=False)
    text = result.stdout + result.stderr
    assert result.exit_code == code, (text, result.exception)
    assert not UNSEEN.findall(text)
    assert "⚠" not in text
    assert not any(line.startswith("error: fake") for line in text.splitlines())
    return text


COMMANDS = [
    ("info", MODEL),
    ("predict", MODEL, TEST, "-o", "out.parquet", "--id", ID, "--flags", "--verbose"),
    ("predict", MODEL, "unseen.parquet", "-o", "out.parquet", "--flags", "--verbose"),
    ("evaluate", MODEL, TEST, "--groups", KIND, "--verbose"),
    ("monitor", MODEL, TEST, "--alpha", "1e-9"),
    ("monitor", MODEL, TEST, "--alpha", "1e-9", "--log", "log [x]\x1b.json"),
    ("recalibrate", MODEL, TEST, "-o", "new\x1b.ibug", "--verbose"),
    ("explain", MODEL, TEST, "--row", "3", "--verbose"),
    ("explain", MODEL, "unseen.parquet", "--id", f"{ID}={NAMES[3]}{3 + 21 * len(NAMES)}"),
    ("report", MODEL, TEST, "-o", "out\x1b.html", "--groups", KIND, "--width-seconds", "0", "--verbose"),
]


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_every_command(hostile, command, form):
    if command[0] == "report":
        pytest.importorskip("plotly")
    text = shown(hostile, *command, *(["--json"] if form == "json" else []))
    if form == "json":
        facts = json.loads(text)
        names = {"info": lambda: [column["name"] for column in facts["columns"]], "explain": lambda: facts["features"]}
        if command[0] in names:
            assert set(names[command[0]]()) == {*NAMES, KIND}
    elif command[0] == "info":
        assert [name for name in [*NAMES, KIND, TARGET] if visible(name) not in text] == []
    elif command[0] == "explain":
        assert visible(KIND) in text


REFUSED = [
    (1, ("predict", MODEL, "lacks.parquet", "-o", "no.csv")),
    (1, ("predict", MODEL, "text.parquet", "-o", "no.csv")),
    (1, ("predict", MODEL, TEST, "-o", "no.csv", "--id", "no [/]\x1b[1m")),
    (1, ("predict", "no [red]\x1b[1m.ibug", TEST, "-o", "no.csv")),
    (1, ("predict", MODEL, "no [red]\x1b[1m.parquet", "-o", "no.csv")),
    (1, ("evaluate", MODEL, TEST, "-t", "no [/]\x1b[1m")),
    (1, ("explain", MODEL, TEST, "--id", f"{ID}=no [/]\x1b[1m")),
    (1, ("fit", TRAIN, "-t", "no [/]\x1b[1m", "-o", "no.ibug")),
    (1, ("fit", TRAIN, "-t", TARGET, "--drop", "no [/]\x1b[1m", "-o", "no.ibug")),
    (1, ("fit", TRAIN, "-t", KIND, "-o", "no.ibug")),
    (1, ("fit", TRAIN, "-t", TARGET, "-p", "no [/]\x1b[1m=3", "-o", "no.ibug")),
    (2, ("fit", TRAIN, "-t", TARGET, "-t", TARGET, "-o", "no.ibug")),
    (2, ("explain", MODEL, TEST, "--id", "no [/]\x1b[1m")),
    (2, ("predict", MODEL, TEST, "--interval", "0.9\x1b[1m", "-o", "no.csv")),
    (2, ("predict", MODEL, TEST, "--no [/]\x1b[1m", "-o", "no.csv")),
    (2, ("fit", TRAIN, "-t", TARGET, "-b", "no [/]\x1b[1m", "-o", "no.ibug")),
    (2, ("no [/]\x1b[1m",)),
    (2, ("--no [/]\x1b[1m",)),
]


@pytest.mark.parametrize(("code", "command"), REFUSED, ids=lambda each: each[0] if isinstance(each, tuple) else None)
def test_every_refusal(hostile, code, command):
    text = shown(hostile, *command, code=code)
    assert "\\x1b" in text
    assert not list(Path(hostile.folder).glob("no*"))
    if code == 1:
        assert json.loads(shown(hostile, *command, "--json", code=code))["exit_code"] == 1


def test_bars_and_tracebacks(hostile, monkeypatch):
    monkeypatch.setenv("IBUG_DEBUG", "1")
    assert "Traceback" in shown(hostile, "predict", MODEL, "lacks.parquet", "-o", "no.csv", code=1)
