"""The report in a real browser: it opens from disk, sorts, searches, explains, and runs nothing of the data."""

import json

import numpy as np
import pytest

import ibug.report
from ibug.describe import number
from tests.report import browser

pd = pytest.importorskip("pandas")

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(bool(browser.missing()), reason=f"missing: {browser.missing()}"),
    # selenium leaves sockets to the garbage collector
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning"),
]


class Page:
    """The open report."""

    def __init__(self, driver, path, again=True):
        self.driver = driver
        if again or driver.current_url.partition("#")[0] != path.as_uri():
            self.open(path)

    def open(self, path, width=1300, height=1000, dark=False):
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        still = {"name": "prefers-reduced-motion", "value": "reduce"}  # a click shall not meet a page that scrolls
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme, still]})
        self.driver.get("about:blank")
        self.driver.get(path.as_uri())
        self.wait("document.documentElement.dataset.ready === 'true'")

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def wait(self, condition):
        from selenium.webdriver.support.ui import WebDriverWait

        WebDriverWait(self.driver, 60).until(lambda driver: driver.execute_script(f"return {condition}"))

    def find(self, selector):
        return self.driver.find_element("css selector", selector)

    def keys(self, *keys):
        from selenium.webdriver import ActionChains

        ActionChains(self.driver).send_keys(*keys).perform()

    def column(self, key):
        return self.run(f"return [...document.querySelectorAll('#body td[data-key={key}]')].map(e => e.textContent)")

    def chosen(self):
        """Return the chosen row, once its details are shown."""
        self.run("return new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        shown = "document.getElementById('detail-title').textContent.match(/row (\\d+)\\)$/)[1]"
        return int(self.run(f"return {shown}"))

    def fact(self, name):
        return self.find(f"#detail dd[data-fact='{name}']").text

    def errors(self):
        return [entry for entry in self.driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    driver = browser.start(tmp_path_factory.mktemp("chromium"))
    yield driver
    driver.quit()


@pytest.fixture
def page(driver, written):
    opened = Page(driver, written.path)
    yield opened
    assert opened.errors() == []
    assert opened.driver.title != "hacked"


def test_opens_with_charts_and_the_widest_row(page, written):
    interval = written.u.predict_interval(written.X, 0.9)
    widest = int(np.argmax(interval[:, 1] - interval[:, 0]))
    assert page.chosen() == widest
    for chart in ("calibration", "pit", "intervals", "spread", "tuning"):
        page.run("document.getElementById(arguments[0]).scrollIntoView()", chart)
        page.wait(f"document.querySelector('#{chart} .main-svg') !== null")
    inside = np.mean((interval[:, 0] <= written.y) & (written.y <= interval[:, 1]))
    assert f"{100 * inside:.1f} % of the observed values are inside the 90 % intervals" in page.find("#headlines").text
    assert "corrected for 4 comparisons" in page.find("#drift").text
    assert page.run("return performance.getEntriesByType('resource').length") == 0  # nothing was fetched


def test_sorts_by_any_column(page, written):
    expected = {"prediction": written.u.predict(written.X), "observed": written.y}
    for key, values in expected.items():
        page.find(f"#head th[data-key={key}] button").click()
        assert page.find(f"#head th[data-key={key}]").get_attribute("aria-sort") == "descending"
        shown = page.column(key)
        assert shown == [number(value) for value in np.sort(values)[::-1][: len(shown)]]
        page.find(f"#head th[data-key={key}] button").click()
        shown = page.column(key)
        assert shown == [number(value) for value in np.sort(values)[: len(shown)]]


def test_only_rows_on_the_screen_are_drawn(page, written):
    assert 0 < page.run("return document.querySelectorAll('#body tr[data-row]').length") < 60
    page.run("document.getElementById('scroll').scrollTop = 1e6")
    page.wait("document.querySelector('#body tr[data-row]').getAttribute('aria-rowindex') !== '2'")
    last = page.run("return [...document.querySelectorAll('#body tr[data-row]')].at(-1).getAttribute('aria-rowindex')")
    assert int(last) == len(written.y) + 1


def count(page, text):
    """Return the number of rows that a search finds."""
    script = "const s = document.getElementById('search'); s.value = arguments[0]; s.dispatchEvent(new Event('input'))"
    page.run(script, text)
    return int(page.find("#count").text.split()[0].replace(",", ""))


def test_searches_and_filters(page, written):
    frame = written.X.assign(width=np.diff(written.u.predict_interval(written.X, 0.9), axis=1).ravel())
    assert count(page, "size>5") == np.sum(frame["size"] > 5)
    median = round(np.median(frame["width"]), 6)
    assert count(page, f"width>{median} size<=5") == np.sum((frame["width"] > median) & (frame["size"] <= 5))
    assert count(page, "age=missing") == np.sum(frame["age"] == -1)
    assert count(page, "onload 7") > 0
    assert count(page, "row=17") == 1  # rows have names, too
    assert count(page, "surely-not-there") == 0
    assert page.find("#empty").is_displayed()
    assert page.find("#search-notes").text == ""
    count(page, " ")
    page.run("const f = document.getElementById('filter'); f.value = 'outside'; f.dispatchEvent(new Event('change'))")
    interval = written.u.predict_interval(written.X, 0.9)
    outside = np.sum((written.y < interval[:, 0]) | (written.y > interval[:, 1]))
    assert int(page.find("#count").text.split()[0]) == outside


@pytest.fixture(scope="module")
def searched(model, tmp_path_factory):
    """Return a report of columns of every kind, and the rows as a data frame."""
    u, encoded, _, y = model
    rng, n = np.random.default_rng(1), 120
    frame = pd.DataFrame(
        {
            "hum": rng.integers(0, 101, n) / 100,  # most have no exact value in 32 bits
            "Count": rng.integers(0, 9000, n),
            "hr": rng.integers(0, 24, n).astype(str),
            "price": [f"{value:.1f}".replace(".", ",") for value in rng.uniform(0, 3, n)],
            "wind speed": rng.normal(0, 10, n).round(1),
            "wind": rng.integers(0, 4, n),
            "load [kW]": rng.uniform(0, 2, n).round(2),
            "temp:max>x": rng.integers(0, 40, n),
            "city": rng.choice(["York", "New York", "a:b", "12:30", "x->y", "<20"], n),
            "day": rng.choice(["2024-01-05", "2024-02-11", "2023-12-31"], n),
        }
    )
    frame.loc[::7, ["hum", "hr", "city"]] = None
    path = tmp_path_factory.mktemp("searched") / "report.html"
    ibug.report.write(u, encoded[300:], y[300:], path, X_shown=frame)
    points, interval = u.predict(encoded[300:]), u.predict_interval(encoded[300:], 0.9)
    affinity = u.affinity_score(encoded[300:])
    shown = frame.assign(prediction=points, width=interval[:, 1] - interval[:, 0], similarity=affinity)
    numbers = {"hour": pd.to_numeric(frame["hr"]), "cost": frame["price"].str.replace(",", ".").astype(float)}
    return path, shown.assign(**numbers)


@pytest.fixture
def searching(driver, searched):
    opened = Page(driver, searched[0], again=False)
    yield opened
    assert opened.errors() == []


SEARCHES = [  # what is typed, and what pandas is asked
    ("hum>0.5", "hum > 0.5"),
    ("hum > 0.5", "hum > 0.5"),
    ("hum>0,5", "hum > 0.5"),
    ("  hum  >=  .7 ", "hum >= 0.7"),
    ("hum>.7", "hum > 0.7"),
    ("hum<=0.07", "hum <= 0.07"),
    ("hum ≤ 0,07", "hum <= 0.07"),
    ("hum=0,30", "hum == 0.3"),
    ("hum = 0.3", "hum == 0.3"),
    ("hum==0.3", "hum == 0.3"),
    ("hum=missing", "hum.isna()"),
    ("hum!=0.3", "hum != 0.3"),
    ("hr<12", "hour < 12"),
    ("hr >= 9", "hour >= 9"),
    ("hr=9", "hour == 9"),
    ("hr=9.0", "hour == 9"),
    ("hr=missing", "hour.isna()"),
    ("hum>0.5 hr<12", "hum > 0.5 and hour < 12"),
    ("hum > 0,5 hr < 12 wind=2", "hum > 0.5 and hour < 12 and wind == 2"),
    ("price>1,5", "cost > 1.5"),
    ("price > 1.5 price < 2", "1.5 < cost < 2"),
    ("price=0,5", "cost == 0.5"),
    ("wind speed>-2.5", "`wind speed` > -2.5"),
    ('"wind speed" > −2,5', "`wind speed` > -2.5"),
    ("wind speed < 0 wind>1", "`wind speed` < 0 and wind > 1"),
    ("LOAD [kw] > 1", "`load [kW]` > 1"),
    ("temp:max>x > 20", "`temp:max>x` > 20"),
    ("count > 1,500", "Count > 1500"),
    ("Count>=1e3", "Count >= 1000"),
    ("city=york", "city == 'York'"),
    ("city = new york", "city == 'New York'"),
    ('city="new york" hr<12', "city == 'New York' and hour < 12"),
    ("city:york", "city.str.contains('York', na=False)"),
    ("city = a:b", "city == 'a:b'"),
    ("12:30", "city == '12:30'"),
    ("x->y", "city == 'x->y'"),
    ("<20", "city == '<20'"),
    ("day>2024-01-04", "day > '2024-01-04'"),
    ("day <= 2024-01-05 hum>0.5", "day <= '2024-01-05' and hum > 0.5"),
    ("width<inf", "width < 1e300"),
    ("similarity > 50%", "similarity > 0.5"),
    ("hum>", "index >= 0"),
    ("hum > 0.5 hr <", "hum > 0.5"),
]


@pytest.mark.parametrize(("text", "asked"), SEARCHES)
def test_a_search_finds_the_rows_that_pandas_finds(searching, searched, text, asked):
    expected = len(searched[1].query(asked, engine="python"))
    assert expected > 0
    assert count(searching, text) == expected
    note = "1,500 is read as 1500." if "1,500" in text else ""
    assert searching.find("#search-notes").text == note


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("foo>3", "No column is called “foo”. The columns are: hum, count, hr,"),
        ("hum > 0.5 foo = 3 bar<1", "No column is called “foo” or “bar”."),
        ('"<b>foo" < 3', "No column is called “<b>foo”."),
        ("hum > high", "“hum” has numbers, and “high” is none."),
        ("wind=strong", "“wind” has numbers, and “strong” is none."),
    ],
)
def test_what_a_search_does_not_understand_is_named(searching, text, note):
    assert count(searching, text) == 0
    assert note.lower() in searching.find("#search-notes").text.lower()
    assert count(searching, "hum > 0.5") > 0
    assert searching.find("#search-notes").text == ""


def test_columns_without_room_are_named(driver, model, tmp_path, monkeypatch):
    u, encoded, _, y = model
    monkeypatch.setattr("ibug.report._explorer._MOST_FEATURE_BYTES", 700)
    path = tmp_path / "report.html"
    ibug.report.write(u, encoded[300:], y[300:], path)
    page = Page(driver, path)
    assert count(page, "age>3") == 0
    assert page.find("#search-notes").text == "There was no room for the values of “age” in this page."


def test_numbers_on_the_page_are_the_models(page, written):
    page.find("#head th[data-key=prediction] button").click()
    page.find("#body tr[aria-rowindex='4']").click()
    i = page.chosen()
    X = written.X.iloc[[i]]
    lower, upper = written.u.predict_interval(X, 0.9)[0]
    assert i == np.argsort(-written.u.predict(written.X), kind="stable")[2]
    assert page.fact("prediction") == number(written.u.predict(X)[0])
    assert page.fact("90 % interval") == f"{number(lower)} … {number(upper)}"
    assert page.fact("observed") == number(written.y[i])
    assert page.fact("σ") == number(written.u.predict_dist(X).std()[0])
    affinities, indices = written.u.kneighbors(X, 10)
    cells = page.run(
        "return [...document.querySelectorAll('#neighbors tbody tr')].map(r => [...r.cells].map(c => c.textContent))"
    )
    assert [int(row[0]) for row in cells] == list(indices[0])
    assert [row[1] for row in cells] == [number(value) for value in written.u.training_targets_[indices[0]]]
    trees = written.u.source_.index.n_trees
    shares = [float(row[2].rstrip(" %")) for row in cells]
    np.testing.assert_allclose(shares, 100 * affinities[0] / trees, atol=0.501)
    traces = page.run("return document.getElementById('density').data.map(t => [t.name || '', Array.from(t.x)])")
    rug = next(x for name, x in traces if "neighbours" in name)
    _, used = written.u.kneighbors(X)
    np.testing.assert_array_equal(rug, written.u.training_targets_[used[0][:100]])
    assert page.run("return location.hash") == f"#row={i}"


def test_what_makes_a_row_wide(page, written):
    pytest.importorskip("shap", exc_type=ImportError)
    std = written.u.predict_dist(written.X).std()
    page.run(f"location.hash = 'row={np.argmax(std)}'")
    page.wait(f"document.getElementById('detail-title').textContent.includes('row {np.argmax(std)})')")
    names, factors = page.run(
        "const rows = [...document.querySelectorAll('#widths tbody tr')];"
        "return [rows.map(r => r.cells[0].textContent), rows.map(r => Number(r.cells[2].textContent.slice(2)))]"
    )
    assert sorted(names) == sorted(written.X)
    typical = float(
        page.run("return document.querySelector('#widths').parentNode.nextSibling.textContent").split()[8][:-1]
    )
    assert typical * np.prod(factors) == pytest.approx(std.max(), rel=0.02)
    kinds = page.run("return [...document.querySelectorAll('#widths .sides i')].map(e => e.className)")
    assert kinds == ["widens" if factor >= 1 else "narrows" for factor in factors]


def test_works_by_keyboard(page):
    from selenium.webdriver.common.keys import Keys

    page.keys("/")
    assert page.run("return document.activeElement.id") == "search"
    page.keys("size>5")
    first = page.run("return Number(document.querySelector('#body tr[data-row]').dataset.row)")
    page.keys(Keys.ENTER)
    assert page.run("return document.activeElement.id") == "grid"
    order = page.run("return [...document.querySelectorAll('#body tr[data-row]')].map(r => Number(r.dataset.row))")
    page.keys(Keys.HOME)
    assert page.chosen() == first == order[0]
    page.keys(Keys.ARROW_DOWN, Keys.ARROW_DOWN)
    assert page.chosen() == order[2]
    page.keys(Keys.ARROW_UP)
    assert page.chosen() == order[1]
    assert page.find("#grid").get_attribute("aria-activedescendant") == f"row-{order[1]}"
    page.keys(Keys.END)
    last = page.chosen()
    assert last not in order[:3]
    page.keys("/", Keys.ESCAPE)
    assert page.find("#search").get_attribute("value") == ""
    assert page.chosen() == last


def test_an_address_names_a_row(page, written):
    page.driver.get("about:blank")
    page.driver.get(f"{written.path.as_uri()}#row=17")
    page.wait("document.documentElement.dataset.ready === 'true'")
    page.wait("document.getElementById('detail-title').textContent.includes('row 17')")


def test_names_and_values_are_shown_as_they_are(page, written):
    page.open(written.path)
    assert page.driver.title == "</script><img src=x onerror=\"document.title='hacked'\">"
    assert page.find("#title").text == page.driver.title
    assert page.run("return document.querySelectorAll('main img, main a[href^=javascript], main script').length") == 0
    names = page.column("row")
    assert set(names) <= set(written.ids)
    page.run("document.getElementById('intervals').scrollIntoView()")
    page.wait("document.querySelector('#intervals .ytitle') !== null")
    assert page.run("return document.querySelector('#intervals .ytitle').textContent").startswith("<svg onload")
    page.run("document.querySelector('#detail details').open = true")
    assert "</script><img" in page.find("#detail").text


@pytest.mark.parametrize("dark", [False, True])
def test_follows_the_system_and_the_button(page, written, dark):
    page.open(written.path, dark=dark)
    theme = "return document.documentElement.dataset.theme"
    before = page.run("return getComputedStyle(document.body).backgroundColor")
    assert page.run(theme) == ("dark" if dark else "light")
    page.find("#theme").click()
    assert page.run(theme) == ("light" if dark else "dark")
    assert page.run("return getComputedStyle(document.body).backgroundColor") != before


@pytest.mark.parametrize("width", [320, 375, 768])
def test_narrow_screens_do_not_scroll_sideways(page, written, width):
    page.open(written.path, width=width, height=800)
    for chart in ("calibration", "pit", "intervals", "spread", "tuning"):
        page.run("document.getElementById(arguments[0]).scrollIntoView()", chart)
        page.wait(f"document.querySelector('#{chart} .main-svg') !== null")
    assert page.run("return document.documentElement.scrollWidth") <= width
    assert page.find("#grid td[data-key=observed]").is_displayed()


def test_data_is_inert(page, written):
    block = page.run("return document.getElementById('data').textContent")
    assert json.loads(block)["rows"]["id"] == written.ids


@pytest.fixture
def of_several(driver, several_written):
    opened = Page(driver, several_written.path)
    yield opened
    assert opened.errors() == []


def choose_target(page, j):
    page.run(f"const s = document.getElementById('target'); s.value = '{j}'; s.dispatchEvent(new Event('change'))")


def test_several_targets_one_at_a_time(of_several, several_written):
    u, X = several_written.u, several_written.X
    assert of_several.run("return document.title") == of_several.run(
        "return document.getElementById('title').textContent"
    )
    assert of_several.run("return document.querySelectorAll('#overview-table tbody tr').length") == 3
    row = of_several.chosen()
    for j in (0, 2, 1):
        choose_target(of_several, j)
        assert of_several.chosen() == row  # the row stays
        assert of_several.fact("prediction") == number(u.predict(X)[row, j])
        lower, upper = u.predict_interval(X, 0.9, joint=True)[row, j]
        assert of_several.fact("90 % box") == f"{number(lower)} … {number(upper)}"
        assert of_several.run("return document.querySelector('#overview-table [aria-current=true]').rowIndex") == j + 1
        assert of_several.run("return document.querySelectorAll('#score-table tbody').length") == 1
        of_several.run("document.getElementById('intervals').scrollIntoView()")
        of_several.wait("document.querySelector('#intervals .ytitle')")
    assert of_several.run("return location.hash") == f"#row={row}&target=1"
    # a name in the overview chooses, too
    of_several.run("document.querySelectorAll('#overview-table button')[2].click()")
    assert of_several.fact("prediction") == number(u.predict(X)[row, 2])


def test_two_targets_in_one_row(of_several, several_written):
    u, X = several_written.u, several_written.X
    row = of_several.chosen()
    together = u.predict_dist(X).correlation()[row]
    assert f"{together[0, 1]:.2f}" in of_several.find("[data-fact=together]").text.replace("−", "-")
    of_several.run("const s = document.getElementById('other'); s.value = '2'; s.dispatchEvent(new Event('change'))")
    assert f"{together[0, 2]:.2f}" in of_several.find("[data-fact=together]").text.replace("−", "-")
    drawn = of_several.run("return document.getElementById('pair').data.map(t => t.x.length)")
    assert drawn[:2] == [200, 10]
    assert of_several.run("return document.getElementById('pair').layout.shapes.length") == 1
    heads = of_several.run("return [...document.querySelectorAll('#neighbors th')].map(e => e.textContent)")
    assert heads == ["training row", *u.target_names_, "affinity"]
    # one that is shown cannot be its own other
    choose_target(of_several, 2)
    assert of_several.run("return document.getElementById('other').value") == "0"


def test_several_targets_by_address_and_narrow(driver, of_several, several_written):
    driver.get("about:blank")
    driver.get(several_written.path.as_uri() + "#row=7&target=2")
    of_several.wait("document.documentElement.dataset.ready === 'true'")
    assert of_several.chosen() == 7
    assert of_several.run("return document.getElementById('target').value") == "2"
    of_several.open(several_written.path, width=390, height=800, dark=True)
    assert of_several.run("return document.documentElement.scrollWidth") <= 390
    boxes = of_several.run("return [...document.getElementById('filter').options].map(e => e.value)")
    assert "outside-box" in boxes
    of_several.run(
        "const s = document.getElementById('filter'); s.value = 'outside-box'; s.dispatchEvent(new Event('change'))"
    )
    held = several_written.u.predict_interval(several_written.X, 0.9, joint=True)
    y = several_written.y
    outside = int(np.sum(~((held[:, :, 0] <= y) & (y <= held[:, :, 1])).all(axis=1)))
    assert of_several.find("#count").text.startswith(f"{outside} of 120")
