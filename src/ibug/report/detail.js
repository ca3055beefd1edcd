// What is behind one row: density, reasons, neighbours, features.
let DENSITY, GRID_POINTS, NEAR;
function readDetail() {
  DENSITY = Object.fromEntries(Object.entries(DATA.rows.density).map(([name, packed]) => [name, unpack(packed)]));
  GRID_POINTS = ROWS.n ? DENSITY.steps.length / ROWS.n : 0;
  NEAR = DATA.neighbors && readNeighbors();
}

function readNeighbors() {
  const { k, shown: listed, trees, id } = DATA.neighbors;
  const near = { k, listed, trees, id };
  for (const name of ["row", "target", "places", "affinity", "mean", "std", "low", "high"]) near[name] = unpack(DATA.neighbors[name]);
  near.ticks = near.places.length / ROWS.n;
  near.of = (i, count) => near.places.subarray(i * near.ticks, i * near.ticks + count);
  near.sorted = Float32Array.from(near.std).sort();
  return near;
}
readDetail();

const DIFFER = DATA.features.differences && (() => {
  const differ = {};
  for (const [name, packed] of Object.entries(DATA.features.differences)) differ[name] = unpack(packed);
  differ.most = differ.feature.length / ROWS.n;
  return differ;
})();

function showDetail(i) {
  const numbers = el("dl", { class: "numbers" });
  const fact = (term, text, mark) => numbers.append(el("div", null, el("dt", { text: term }), el("dd", { text, class: mark || null, "data-fact": term })));
  fact("prediction", number(ROWS.prediction[i]));
  fact(`${LEVEL} interval`, `${number(ROWS.lower[i])} … ${number(ROWS.upper[i])}`);
  fact("observed", number(ROWS.observed[i]), ROWS.inside[i] ? "" : "outside");
  fact("σ", number(ROWS.std[i]));
  const box = JOINT && JOINT.box(i, JOINT.target);
  if (box) fact(`${LEVEL} box`, `${number(box[0])} … ${number(box[1])}`, JOINT.inside(i) ? "" : "outside");
  const old = $("density");
  const chart = old || el("div", { id: "density", role: "img" });
  chart.setAttribute("aria-label", "Predicted density with interval, observed value and neighbours");
  const title = ROWS.id === null ? `Row ${ROWS.row[i]}` : `${ROWS.id[i]} (row ${ROWS.row[i]})`;
  const parts = [el("h3", { id: "detail-title", text: title }), numbers, chart, ...pairOfTargets(i)];
  parts.push(el("h4", { text: ROWS.wider[i] > 0.5 ? "Why is it uncertain?" : "Why is it rather certain?" }));
  parts.push(el("ul", { class: "why" }, ...reasons(i).map((text) => el("li", { text }))));
  if (!JOINT) parts.push(...widening(i));
  if (NEAR) parts.push(...similarity(i), ...neighbors(i));
  parts.push(...differences(i), everyFeature(i));
  $("detail").replaceChildren(...parts.filter((part) => part !== null));
  drawDensity(i);
  drawPair(i);
}

function drawDensity(i) {
  const x = [], y = [];
  const peak = DENSITY.peak[i] || 1;
  for (let j = i * GRID_POINTS; j < (i + 1) * GRID_POINTS; j++) {
    x.push(DENSITY.start[i] + (DENSITY.steps[j] / 65535) * DENSITY.length[i]);
    y.push((DENSITY.heights[j] / 65535) * peak);
  }
  const [inX, inY] = between(x, y, ROWS.lower[i], ROWS.upper[i]);
  const hover = { hovertemplate: "%{x:.5g}<extra></extra>" };
  const vertical = (at, name, style, mark) => ({
    x: [at, at], y: [0, peak * 1.06], mode: "lines+markers", name: `${name} ${number(at)}`, line: style, hovertemplate: `${name} ${number(at)}<extra></extra>`,
    marker: { size: [0.01, 9], symbol: mark, color: style.color },
  });
  const traces = [
    { x: inX, y: inY, mode: "lines", line: { width: 0 }, fill: "tozeroy", fillcolor: color("band"), name: `${LEVEL} interval`, hoverinfo: "skip" },
    { x, y, mode: "lines", line: { color: color("accent"), width: 2 }, showlegend: false, ...hover },
    vertical(ROWS.prediction[i], "prediction", { color: color("accent"), width: 1.5, dash: "dash" }, "circle"),
    vertical(ROWS.observed[i], "observed", { color: color("bad-mark"), width: 2 }, "diamond"),
  ];
  if (NEAR) {
    const ticks = Math.min(NEAR.k, NEAR.ticks);
    const targets = Array.from(NEAR.of(i, ticks), (place) => NEAR.target[place]);
    traces.push({
      x: targets, y: targets.map(() => -0.07 * peak), mode: "markers", name: ticks < NEAR.k ? `nearest ${ticks} of ${NEAR.k} neighbours` : `${ticks} neighbours`,
      marker: { symbol: "line-ns-open", size: 14, color: color("rug"), opacity: Math.max(0.25, Math.min(0.9, 25 / ticks)), line: { width: 1.5 } },
      hovertemplate: "training target %{x:.5g}<extra></extra>",
    });
  }
  Plotly.react($("density"), traces, layout({
    xaxis: { title: { text: label(DATA.about.target) } }, yaxis: { showticklabels: false, ticks: "", showgrid: false, range: [-0.15 * peak, 1.12 * peak] },
  }), CONFIG);
}

// The part of a curve over an interval, its ends interpolated.
function between(x, y, lower, upper) {
  const inX = [], inY = [];
  const push = (at, height) => { inX.push(at); inY.push(height); };
  x.forEach((at, j) => {
    for (const end of j ? [lower, upper] : []) {
      if (x[j - 1] < end && end < at) push(end, y[j - 1] + ((y[j] - y[j - 1]) * (end - x[j - 1])) / (at - x[j - 1]));
    }
    if (lower <= at && at <= upper) push(at, y[j]);
  });
  return [inX, inY];
}

// "93 % of", but never "100 % of": nothing exceeds itself.
const most = (share) => (share > 0.99 ? "more than 99 % of" : share < 0.01 ? "less than 1 % of" : `${percent(share)} of`);

function reasons(i) {
  const lines = [`Its σ is larger than that of ${most(ROWS.wider[i])} the ${DATA.about.n_rows.toLocaleString("en-US")} rows.`];
  if (NEAR) {
    const rank = NEAR.sorted.filter((std) => std < NEAR.std[i]).length / ROWS.n;
    const agree = rank > 0.67 ? "They disagree" : rank < 0.33 ? "They agree" : "They agree as neighbours usually do";
    const than = rank > 0.67 ? ` more than those of ${most(rank)} the rows` : rank < 0.33 ? ` better than those of ${most(1 - rank)} the rows` : "";
    lines.push(`The targets of its ${NEAR.k} nearest training rows go from ${number(NEAR.low[i])} to ${number(NEAR.high[i])}, standard deviation ${number(NEAR.std[i])}. ${agree}${than}.`);
    if (ROWS.dissimilar(i)) lines.push(`Its similarity to the training data is low: these rows share only ${percent(ROWS.affinity[i], 1)} of the leaves with it, and 99 % of the validation rows had ${percent(ROWS.threshold, 1)} or more. Its interval is an extrapolation.`);
  }
  if (DIFFER && DIFFER.count[i]) {
    const names = [];
    for (let j = i * DIFFER.most; j < i * DIFFER.most + Math.min(3, DIFFER.most); j++) if (DIFFER.feature[j] >= 0) names.push(FEATURES[DIFFER.feature[j]].name);
    lines.push(`It differs from the nearest ones most in ${names.join(", ")}.`);
  }
  const sigmas = ROWS.error[i] / ROWS.std[i];
  if (Number.isFinite(sigmas)) lines.push(`The observed value is ${number(sigmas, 2)} σ from the prediction, ${ROWS.inside[i] ? "inside" : "outside"} the interval.`);
  if (!Number.isFinite(ROWS.width[i])) lines.push(`Its interval has no end: too few validation rows to promise ${LEVEL} for less.`);
  return lines;
}

function similarity(i) {
  const share = ROWS.affinity[i], known = Number.isFinite(ROWS.threshold);
  const filled = el("i");
  filled.style.width = percent(share, 2).replace(" ", "");
  const meter = el("div", { class: ROWS.dissimilar(i) ? "meter low" : "meter", role: "img", "aria-label": `similarity: ${percent(share)}` }, filled);
  if (known) {
    const mark = el("b"), text = el("span", { text: `low below ${percent(ROWS.threshold)}`, class: ROWS.threshold < 0.25 ? "start" : null });
    mark.style.left = text.style.left = percent(ROWS.threshold, 2).replace(" ", "");
    meter.append(mark, text);
  }
  const verdict = known ? (ROWS.dissimilar(i) ? "That is low." : "That is usual.") : "Without validation rows it is not known what is usual.";
  return [
    el("h4", { text: "How similar is it to the training data?" }), meter,
    el("p", { class: "quiet", text: `Its neighbours are in the same leaf in ${percent(share, 1)} of the trees. ${verdict}`, "data-fact": "affinity" }),
  ];
}

function neighbors(i) {
  const body = el("tbody");
  const values = JOINT ? JOINT.near : [NEAR.target], names = JOINT ? JOINT.names : ["target"];
  NEAR.of(i, NEAR.listed).forEach((place, j) => {
    const share = NEAR.affinity[i * NEAR.listed + j] / NEAR.trees;
    const filled = el("i");
    filled.style.width = percent(share, 2).replace(" ", "");
    const affinity = el("td", { class: "number" }, el("span", { class: "bar" }, filled), el("span", { text: percent(share) }));
    const name = NEAR.id === null ? [] : [el("td", { text: NEAR.id[place] })];
    body.append(el("tr", null, el("td", { text: String(NEAR.row[place]) }), ...name, 
      ...values.map((each) => el("td", { class: "number", text: number(each[place]) })), affinity));
  });
  const heads = [["training row"], ...(NEAR.id === null ? [] : [["id"]]), ...names.map((name) => [name, "number"]), ["affinity", "number"]];
  const head = el("tr", null, ...heads.map(([text, mark]) => el("th", { scope: "col", text, class: mark || null })));
  return [el("h4", { text: "The nearest training rows" }), el("div", { class: "sideways" }, el("table", { class: "detail-table", id: "neighbors" }, el("thead", null, head), body))];
}

function differences(i) {
  if (!NEAR) return [];
  const title = el("h4", { text: "In which features it differs from them" });
  if (!DIFFER) return [title, el("p", { class: "quiet", text: "Not known: the report was written without the features of the training rows (X_train)." })];
  const body = el("tbody");
  for (let j = i * DIFFER.most; j < (i + 1) * DIFFER.most; j++) {
    const feature = FEATURES[DIFFER.feature[j]];
    if (feature === undefined) break;
    const there = el("td");
    for (let m = 0; m < Math.min(NEAR.listed, 6); m++) {
      const value = DIFFER.there[j * NEAR.listed + m];
      const same = shown(value, feature.texts) === shown(DIFFER.here[j], feature.texts);
      there.append(m ? ", " : "", el("span", { text: shown(value, feature.texts), class: same ? "same" : null }));
    }
    const distance = feature.categorical ? `${percent(DIFFER.distance[j])} other` : `${number(DIFFER.distance[j], 2)} sd`;
    body.append(el("tr", null, el("td", { text: feature.name }), el("td", { class: "here", text: shown(DIFFER.here[j], feature.texts) }), there, el("td", { class: "number", text: distance })));
  }
  if (!body.children.length) return [title, el("p", { class: "quiet", text: "In none: all features are the same." })];
  const heads = ["feature", "this row", "nearest first", "distance"];
  const head = el("tr", null, ...heads.map((text) => el("th", { scope: "col", text, class: text === "distance" ? "number" : null })));
  const same = FEATURES.length - DIFFER.count[i];
  const rest = `${DIFFER.count[i]} of ${FEATURES.length} features differ${same ? `, ${same} are the same` : ""}; sd: mean distance in standard deviations.`;
  return [title, el("div", { class: "sideways" }, el("table", { class: "detail-table", id: "differences" }, el("thead", null, head), body)), el("p", { class: "quiet", text: rest })];
}

function everyFeature(i) {
  const known = FEATURES.filter((each) => each.values);
  if (!known.length) return null;
  const list = el("dl", { class: "facts" });
  for (const each of known) list.append(el("dt", { text: each.name }), el("dd", { text: shown(each.values[i], each.texts) }));
  const left = FEATURES.length - known.length;
  return el("details", null, el("summary", { text: left ? `Its features (${known.length} of ${FEATURES.length}; there was no room for more)` : "All its features" }), list);
}
