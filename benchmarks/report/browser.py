"""The report in a browser: does it respond at once? ``IBUG_DATA=folder python benchmarks/report_browser.py [--write]``.

It writes the report of 2,000 test rows of the bike data, opens it in headless Chromium, and tells how large the file is
and how long the page takes from a click or a key until it has painted the answer. ``--write`` puts this into
docs/command-line.md, ``--image`` makes the picture in the README again, and ``--screens FOLDER`` keeps pictures of the
whole page, wide and narrow, light and dark. It needs Chromium, chromedriver and selenium, and tells what is missing.
"""

from __future__ import annotations

import argparse
import base64
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from lightgbm import LGBMRegressor
from sklearn.model_selection import train_test_split

import ibug.report
from benchmarks.common import document
from benchmarks.common.arguments import parser_of
from benchmarks.common.data import load
from benchmarks.common.paths import ROOT, data_folder
from ibug import IBUGRegressor
from tests.report import browser  # what the tests start Chromium with

WIDE, NARROW = (1280, 1010), (390, 844)

# Each makes one change that a reader can make, by the events of the reader's own click or key.
ACTIONS = {
    "choose a row": "rows[(round * 7) % rows.length].click()",
    "choose the next by key": "grid.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowDown', bubbles: true}))",
    "sort by a column": "heads[round % heads.length].click()",
    "search a word": "type(['1', '20', '3', '45'][round % 4])",
    "search hum>0.5 hr<12": "type(`hum>0.${round % 9 + 1} hr<12`)",
    "clear the search": "type('')",
}
# From the event to the first task after the frame is painted; the first frame may still belong to what was before.
MEASURE = """
const [rounds, done] = arguments;
const grid = document.getElementById('grid'), search = document.getElementById('search');
const heads = document.querySelectorAll('#head button');
const type = (text) => { search.value = text; search.dispatchEvent(new Event('input', {bubbles: true})); };
const painted = () => new Promise((then) => requestAnimationFrame(() => {
  const channel = new MessageChannel();
  channel.port1.onmessage = then;
  channel.port2.postMessage(0);
}));
(async () => {
  const found = [];
  for (let round = 0; round < rounds; round++) {
    BEFORE;
    await painted();
    const rows = document.querySelectorAll('#body tr[data-row]');
    const began = performance.now();
    ACTION;
    await painted();
    found.push(performance.now() - began);
  }
  done(found);
})();
"""


def make_report(path: Path, n_rows: int) -> IBUGRegressor:
    """Write the report of a model of the bike data on rows that it has not seen."""
    X, y = load("bike", data_folder())
    X = X.drop(columns=["casual", "registered"], errors="ignore")  # their sum is the target
    X, X_test, y, y_test = train_test_split(X, y, test_size=n_rows, random_state=0)
    X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=2000, random_state=0)
    model = LGBMRegressor(n_estimators=300, learning_rate=0.1, random_state=0, verbose=-1).fit(X_train, y_train)
    u = IBUGRegressor(model, prefit=True).fit(X_train, y_train, X_val=X_val, y_val=y_val)
    names = {"title": "Bike rentals", "target": "bikes rented per hour", "data": "hours that the model has not seen"}
    ibug.report.write(u, X_test, y_test, path, X_train=X_train, **names)
    return u


def show(driver: Any, path: Path, size: tuple[int, int], *, dark: bool = False) -> None:
    """Open the report in a window of a size, in light or dark."""
    width, height = size
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    driver.get("about:blank")
    driver.get(path.as_uri())
    wait = "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 500)))"
    driver.execute_async_script(wait)


def responses(driver: Any, path: Path, rounds: int) -> list[str]:
    """Return a table of the times that the page takes to answer."""
    show(driver, path, WIDE)
    opened = driver.execute_script("return performance.getEntriesByType('navigation')[0].domComplete")
    lines = [f"opened after {opened:.0f} ms", "", f"{'':24}{'median':>8} {'slowest':>8}  of {rounds}, until painted"]
    for name, action in ACTIONS.items():
        before = "type('7')" if name == "clear the search" else ""
        script = MEASURE.replace("BEFORE", before).replace("ACTION", action)  # the page forbids eval
        found = driver.execute_async_script(script, rounds)
        lines.append(f"{name:24}{np.median(found):5.0f} ms {max(found):5.0f} ms")
    return lines


def picture(driver: Any, path: Path, *, full: bool = False) -> None:
    """Keep what the window shows, or all of the page."""
    clip = {}
    if full:
        for place in range(0, driver.execute_script("return document.documentElement.scrollHeight"), 500):
            driver.execute_script("scrollTo(0, arguments[0])", place)  # charts are drawn when they come into sight
            driver.execute_async_script("setTimeout(arguments[0], 150)")
        driver.execute_script("scrollTo(0, 0)")
        page = driver.execute_script(
            "return [document.documentElement.clientWidth, document.documentElement.scrollHeight]"
        )
        clip = {
            "clip": {"x": 0, "y": 0, "width": page[0], "height": page[1], "scale": 1},
            "captureBeyondViewport": True,
        }
    found = driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png", **clip})
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(base64.b64decode(found["data"]))
    print(path)


def readme_picture(driver: Any, report: Path, image: Path) -> None:
    """Keep the explorer with a row whose truth is outside its interval."""
    show(driver, report, WIDE)
    driver.execute_script("document.getElementById('explorer').scrollIntoView()")
    driver.execute_script("document.querySelector('#body td.outside').click()")
    driver.execute_async_script("setTimeout(arguments[0], 500)")
    picture(driver, image)


def main() -> None:
    options = parse_options()
    if browser.missing():
        raise SystemExit(f"This needs: {browser.missing()}.")
    if data_folder() is None:
        raise SystemExit("Set IBUG_DATA to the folder that has bike.parquet.")
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.html"
        make_report(report, options.rows)
        driver = browser.start(Path(folder) / "profile")
        try:
            driver.set_script_timeout(120)
            lines = [
                f"{options.rows} rows, {os.path.getsize(report) / 1e6:.1f} MB",
                *responses(driver, report, options.rounds),
            ]
            print("\n".join(lines))
            take_pictures(driver, report, options)
        finally:
            driver.quit()
    if options.write:
        document.write(ROOT / "docs" / "command-line.md", "report_browser.py", "\n".join(lines))


def take_pictures(driver: Any, report: Path, options: argparse.Namespace) -> None:
    """Keep the pictures that were asked for."""
    if options.image:
        readme_picture(driver, report, options.image)
    if options.screens:
        for name, size in (("wide", WIDE), ("narrow", NARROW)):
            for scheme in ("light", "dark"):
                show(driver, report, size, dark=scheme == "dark")
                picture(driver, options.screens / f"{name}-{scheme}.png", full=True)


def parse_options() -> argparse.Namespace:
    parser = parser_of(__doc__)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--write", action="store_true", help="put the results into docs/command-line.md")
    image = ROOT / "docs" / "images" / "report.png"
    parser.add_argument("--image", type=Path, nargs="?", const=image, help="make the picture of the README again")
    parser.add_argument("--screens", type=Path, help="folder for pictures of the whole page")
    return parser.parse_args()
