// The page is filled, and listens.
function fillSummary() {
  const about = DATA.about;
  $("title").textContent = about.title;
  $("about").textContent = [about.model.model, about.model.data].filter(Boolean).join(" · ");
  $("footer").textContent = `Written ${about.written} by ibug ${about.version}. Everything is in this file; it uses no network.`;
  fillHeadlines($("headlines"), DATA.headlines);
  $("caveats").replaceChildren(...DATA.caveats.map((text) => el("li", { text })));
  $("model").replaceChildren(...Object.entries(about.model).flatMap(([term, text]) => [el("dt", { text: term }), el("dd", { text })]));
  fillScores();
  fillGroups();
  fillTotals();
}

function fillHeadlines(place, lines) {
  place.replaceChildren(...lines.map(({ figure, text, tone }) => el("div", { class: `card headline ${tone}` }, el("p", { class: "figure", text: figure }), el("p", { text }))));
}

function fillScores() {
  const hasPlain = DATA.scores.some((score) => score.plain !== null);
  const both = (ibug, plain) => [el("td", { class: "number ibug", text: ibug }), ...(hasPlain ? [el("td", { class: "number", text: plain })] : [])];
  const heads = (texts) => el("thead", null, el("tr", null, ...texts.map(([text, mark]) => el("th", { scope: "col", text, class: mark || null }))));
  const scores = DATA.scores.map(({ name, ibug, plain, meaning }) => el("tr", null, el("td", { text: name }), ...both(ibug, plain), el("td", { class: "quiet meaning", text: meaning })));
  const columns = hasPlain ? [["ibug", "number"], ["plain neighbours", "number"]] : [["value", "number"]];
  $("score-table").replaceChildren(heads([["score"], ...columns, ["meaning", "meaning"]]), el("tbody", null, ...scores));
  const intervals = DATA.intervals.map(({ level, ibug, plain }) => el("tr", null, el("td", { text: level }),
    ...both(ibug.width, plain && plain.width), ...both(ibug.inside, plain && plain.inside)));
  const pair = (what) => (hasPlain ? [[what, "number"], ["plain neighbours", "number"]] : [[what, "number"]]);
  $("interval-table").replaceChildren(heads([["interval"], ...pair("mean width"), ...pair("inside")]), el("tbody", null, ...intervals));
  $("plain-note").hidden = !hasPlain;
  if (DATA.drift) fillDrift(heads);
}

function fillGroups() {
  if (!DATA.groups) return;
  $("groups").hidden = false;
  const heads = [DATA.groups.by, "rows", `inside ${LEVEL} intervals`, "by chance", "mean width"];
  const head = el("tr", null, ...heads.map((text, i) => el("th", { scope: "col", text, class: i ? "number" : null })));
  const lines = DATA.groups.lines.map(({ group, rows, inside, width, chance, mark }) => el("tr", null, el("td", { text: group }),
    el("td", { class: "number", text: rows }), el("td", { class: `number ${mark === "▼" ? "outside" : ""}`, text: `${inside} ${mark}`.trim() }),
    el("td", { class: "number quiet", text: chance }), el("td", { class: "number", text: width })));
  $("group-table").replaceChildren(el("thead", null, head), el("tbody", null, ...lines));
}

function fillTotals() {
  $("totals").hidden = !DATA.totals;
  if (!DATA.totals) return;
  const { about, kinds } = DATA.totals;
  $("totals-about").textContent = `Rows of a block share what the model does not know. Learned from validation rows: ${about}.`;
  fillHeadlines($("totals-headlines"), kinds.map(({ name, line }) => ({ ...line, text: `By ${name}: ${line.text}` })));
  const heads = ["totals by", "totals", `inside ${LEVEL} intervals`, "median width", "mean CRPS"];
  const head = el("tr", null, ...heads.map((text, i) => el("th", { scope: "col", text, class: i ? "number" : null })));
  const lines = kinds.map(({ name, n, line, width, crps }) => el("tr", null, el("td", { text: name }),
    ...[n.toLocaleString("en-US"), line.figure, width, crps].map((text) => el("td", { class: "number", text }))));
  $("totals-table").replaceChildren(el("thead", null, head), el("tbody", null, ...lines));
}

function fillDrift(heads) {
  const { verdict, tests } = DATA.drift;
  $("drift").hidden = false;
  $("drift-verdict").textContent = verdict;
  const rows = tests.map(({ meaning, observed, expected, p_value: p }) => el("tr", null, el("td", { class: "meaning", text: meaning }),
    ...[observed, expected, p].map((text) => el("td", { class: "number", text }))));
  $("drift-table").replaceChildren(heads([["compared with validation rows", "meaning"], ["here", "number"], ["there", "number"], ["p-value", "number"]]), el("tbody", null, ...rows));
}

function fillNotes() {
  const { n_rows: all, n_shown: few } = DATA.about;
  const part = few < all ? ` ${few.toLocaleString("en-US")} of ${all.toLocaleString("en-US")} rows, drawn at random, are here; scores and curves are made of all.` : "";
  $("intervals-note").textContent = `${LEVEL} intervals and observed values: crosses are outside. A click on a point opens its row below.${part}`;
  $("explorer-note").textContent = `Choose a row to see what is behind its interval. The widest come first.${part}`;
  const found = DATA.charts.tuning;
  $("tuning-note").textContent = found.reason ? `There is no curve: ${found.reason}`
    : `The score on validation rows, lower is better. Chosen: k = ${found.chosen}${found.spread === "combination" ? ", the middle of a combination of several" : ""}.`
      + (found.above ? ` ${found.above} far higher scores are left out.` : "");
}

function setTheme(name) {
  document.documentElement.dataset.theme = name;
  $("theme").textContent = name === "dark" ? "Light" : "Dark";
  $("theme").setAttribute("aria-pressed", String(name === "dark"));
  for (const chart of drawn) drawChart(chart);
  if (TABLE.chosen >= 0) {
    drawDensity(TABLE.chosen);
    drawPair(TABLE.chosen);
  }
}

function listen() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let asked = false; // once the button was used, the system is not followed any more
  setTheme(dark.matches ? "dark" : "light");
  dark.addEventListener("change", () => asked || setTheme(dark.matches ? "dark" : "light"));
  $("theme").addEventListener("click", () => {
    asked = true;
    setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
  });
  addEventListener("keydown", (event) => {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      $("search").focus();
      $("search").select();
    } else if (event.target === $("search") && (event.key === "Escape" || event.key === "ArrowDown" || event.key === "Enter")) {
      event.preventDefault();
      if (event.key === "Escape" && $("search").value) {
        $("search").value = "";
        TABLE.refresh();
      } else {
        $("grid").focus({ preventScroll: true });
        if (event.key !== "Escape" && TABLE.order.length && !TABLE.order.includes(TABLE.chosen)) TABLE.choose(TABLE.order[0]);
      }
    }
  });
  addEventListener("hashchange", () => fromAddress());
}

// report.html#row=17 opens row 17; with several targets, report.html#row=17&target=1 opens it for the second.
function fromAddress() {
  const found = location.hash.match(/^#row=(\d+)(?:&target=(\d+))?$/);
  const target = found && JOINT && found[2] !== undefined ? Number(found[2]) : null;
  if (target !== null && target < JOINT.names.length && target !== JOINT.target) showTarget(target);
  const i = found ? ROWS.row.indexOf(Number(found[1])) : -1;
  if (i >= 0 && i !== TABLE.chosen) TABLE.reveal(i);
  return i >= 0;
}

let waiting = null;
function chooseSoon(i) {
  // Keys that are held down come faster than charts can be drawn: only the last row of a frame is.
  if (waiting === null) {
    requestAnimationFrame(() => {
      const last = waiting;
      waiting = null;
      showDetail(last);
    });
  }
  waiting = i;
  try {
    history.replaceState(null, "", `#row=${ROWS.row[i]}${JOINT ? `&target=${JOINT.target}` : ""}`);
  } catch {
    // some browsers do not allow it for files, or so often: then the address stays as it is
  }
}

fillJoint();
fillSummary();
fillNotes();
listen();
watchCharts();
TABLE.start(chooseSoon);
if (fromAddress()) $("explorer").scrollIntoView();
else if (TABLE.order.length) {
  TABLE.chosen = TABLE.order[0];
  TABLE.render();
  showDetail(TABLE.chosen);
}
document.documentElement.dataset.ready = "true";
