"""Headless Chromium for tests, and what is missing where there is none."""

import importlib.util
import shutil

_FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
)  # fmt: skip


def found(*names):
    return next((path for path in map(shutil.which, names) if path), None)


def missing():
    """Return what has to be installed, in words; empty where nothing is missing."""
    lacks = []
    if importlib.util.find_spec("selenium") is None:
        lacks.append('selenium (pip install "ibug-learn[dev]")')
    if importlib.util.find_spec("plotly") is None:
        lacks.append('plotly (pip install "ibug-learn[report]")')
    if not found("chromium", "chromium-browser", "google-chrome"):
        lacks.append("chromium (Debian: apt-get install chromium)")
    if not found("chromedriver"):
        lacks.append("chromedriver (Debian: apt-get install chromium-driver)")
    return ", ".join(lacks)


def start(profile):
    """Start a browser with an empty profile in the given folder."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = found("chromium", "chromium-browser", "google-chrome")
    for flag in (*_FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=Service(found("chromedriver")))


if __name__ == "__main__":
    lacks = missing()
    if lacks:
        raise SystemExit(f"The browser tests need: {lacks}. Nothing is installed by itself.")
