// Several targets: scores of all together, which one the page shows, and two of them in one row.
const JOINT = ALL.joint ? (() => {
  const { names, headlines, scores, boxes, overview } = ALL.joint;
  const d = names.length, m = ALL.joint.samples.count;
  const { start, length, steps } = Object.fromEntries(["start", "length", "steps"].map((name) => [name, unpack(ALL.joint.samples[name])]));
  const box = unpack(ALL.joint.box), correlation = unpack(ALL.joint.correlation);
  const observed = ALL.targets.map((each) => unpack(each.rows.observed));
  const joint = { names, headlines, scores, boxes, overview, count: m, target: 0, other: 1, observed };
  joint.prediction = ALL.targets.map((each) => unpack(each.rows.prediction));
  joint.near = ALL.targets.map((each) => each.neighbors && unpack(each.neighbors.target));
  joint.box = (i, j) => (box === null ? null : [box[(i * d + j) * 2], box[(i * d + j) * 2 + 1]]);
  joint.inside = (i) => box === null || names.every((_, j) => box[(i * d + j) * 2] <= observed[j][i] && observed[j][i] <= box[(i * d + j) * 2 + 1]);
  joint.correlation = (i, a, b) => correlation[(i * d + a) * d + b];
  joint.samples = (i, j) => Array.from({ length: m }, (_, s) => start[i * d + j] + (steps[(i * m + s) * d + j] / 65535) * length[i * d + j]);
  return joint;
})() : null;

function fillJoint() {
  if (!JOINT) return;
  $("joint").hidden = $("target-bar").hidden = false;
  document.documentElement.dataset.several = "true";
  fillHeadlines($("joint-headlines"), JOINT.headlines);
  const head = (texts) => el("thead", null, el("tr", null, ...texts.map(([text, mark]) => el("th", { scope: "col", text, class: mark || null }))));
  const cell = (text, mark) => el("td", { class: `number ${mark || ""}`.trim(), text });
  const hasPlain = JOINT.scores.some((score) => score.plain !== null);
  const scores = JOINT.scores.map(({ name, ibug, plain, meaning }) => el("tr", null, el("td", { text: name }), cell(ibug, "ibug"),
    ...(hasPlain ? [cell(plain)] : []), el("td", { class: "quiet meaning", text: meaning })));
  const columns = hasPlain ? [["ibug", "number"], ["plain neighbours", "number"]] : [["value", "number"]];
  $("joint-score-table").append(head([["score"], ...columns, ["meaning", "meaning"]]), el("tbody", null, ...scores));
  const boxes = JOINT.boxes.map(({ level, boxes: inside, apart }) => el("tr", null, el("td", { text: level }), cell(inside, "ibug"), cell(apart)));
  $("box-table").append(head([["coverage"], ["boxes", "number"], ["all intervals", "number"]]), el("tbody", null, ...boxes));
  const lines = JOINT.overview.map((line, j) => {
    const button = el("button", { type: "button", class: "link", text: line.name });
    button.addEventListener("click", () => showTarget(j));
    return el("tr", { "data-target": j }, el("td", null, button), cell(line.crps, "ibug"), ...[line.width, line.inside, line.skill, line.mae].map((text) => cell(text)));
  });
  $("overview-table").append(head([["target"], ["CRPS", "number"], ["median width", "number"], [`inside ${LEVEL}`, "number"], ["skill", "number"], ["MAE", "number"]]), el("tbody", null, ...lines));
  JOINT.names.forEach((text, value) => $("target").append(el("option", { value, text })));
  $("target").addEventListener("change", () => showTarget(Number($("target").value)));
  markTarget();
}

function markTarget() {
  $("target").value = String(JOINT.target);
  for (const line of $("overview-table").tBodies[0].rows) line.setAttribute("aria-current", String(Number(line.dataset.target) === JOINT.target));
}

// Everything below the selector is of the target that was chosen.
function showTarget(j) {
  JOINT.target = j;
  if (JOINT.other === j) JOINT.other = j ? 0 : 1;
  DATA = viewOf(j);
  ROWS = readRows();
  readDetail();
  markTarget();
  fillSummary();
  fillNotes();
  fillFilters();
  for (const chart of drawn) drawChart(chart);
  const { chosen } = TABLE;
  TABLE.refresh();
  if (chosen >= 0) TABLE.reveal(chosen);
}

function pairOfTargets(i) {
  if (!JOINT) return [];
  const choice = el("select", { id: "other", "aria-label": "The other target" });
  JOINT.names.forEach((text, value) => value !== JOINT.target && choice.append(el("option", { value, text })));
  choice.value = String(JOINT.other);
  choice.addEventListener("change", () => {
    JOINT.other = Number(choice.value);
    showDetail(i);
    $("other").focus();
  });
  const chart = $("pair") || el("div", { id: "pair", role: "img" });
  chart.setAttribute("aria-label", "Samples of two targets, with the box, the observed values and the neighbours");
  const together = JOINT.correlation(i, JOINT.target, JOINT.other);
  const box = JOINT.box(i, 0) === null ? "" : ` The ${LEVEL} box is to hold ${JOINT.names.length > 2 ? `all ${JOINT.names.length}` : "both"} targets at once; here ${JOINT.inside(i) ? "it does" : "it does not"}.`;
  return [
    el("h4", { class: "with" }, el("span", { text: "Together with" }), choice), chart,
    el("p", { class: "quiet", text: `Their correlation is ${together.toFixed(2).replace("-", "−")} in this row.${box}`, "data-fact": "together" }),
  ];
}

function drawPair(i) {
  if (!JOINT) return;
  const [a, b] = [JOINT.target, JOINT.other];
  const at = (values) => ({ x: [values[a][i]], y: [values[b][i]] });
  const hovertemplate = `${label(JOINT.names[a])} %{x:.5g}, ${label(JOINT.names[b])} %{y:.5g}<extra></extra>`;
  const traces = [{
    x: JOINT.samples(i, a), y: JOINT.samples(i, b), mode: "markers", name: `${JOINT.count} samples`, hovertemplate,
    marker: { color: color("accent"), size: 6, opacity: 0.4 },
  }];
  if (NEAR) {
    const places = Array.from(NEAR.of(i, NEAR.listed));
    traces.push({
      x: places.map((place) => JOINT.near[a][place]), y: places.map((place) => JOINT.near[b][place]), mode: "markers", name: `nearest ${places.length} training rows`,
      hovertemplate, marker: { symbol: "circle-open", size: 9, color: color("rug"), line: { width: 1.5 } },
    });
  }
  traces.push({ ...at(JOINT.prediction), mode: "markers", name: "prediction", hovertemplate, marker: { symbol: "cross", size: 11, color: color("plain") } });
  traces.push({ ...at(JOINT.observed), mode: "markers", name: "observed", hovertemplate, marker: { symbol: "diamond", size: 12, color: color("bad-mark"), line: { color: color("card"), width: 1 } } });
  const [across, up] = [JOINT.box(i, a), JOINT.box(i, b)];
  const shapes = across === null || ![...across, ...up].every(Number.isFinite) ? []
    : [{ type: "rect", x0: across[0], x1: across[1], y0: up[0], y1: up[1], line: { color: color("accent"), width: 1.5, dash: "dash" } }];
  // A shape does not widen the axes: an invisible corner does.
  if (shapes.length) traces.push({ x: across, y: up, mode: "markers", marker: { opacity: 0 }, hoverinfo: "skip", showlegend: false });
  Plotly.react($("pair"), traces, layout({
    xaxis: { title: { text: label(JOINT.names[a]) } }, yaxis: { title: { text: label(JOINT.names[b]) } }, shapes,
  }), CONFIG);
}
