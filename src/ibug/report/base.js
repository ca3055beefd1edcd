// What the other parts share: the data, elements, numbers, colours. Text from the data is written by textContent alone.
const $ = (id) => document.getElementById(id);
const ALL = JSON.parse($("data").textContent);

// What the page shows: all of it, or with several targets what they share and what one of them has of its own.
function viewOf(target) {
  if (!ALL.targets) return ALL;
  const own = ALL.targets[target], both = (name) => (ALL[name] === null ? null : { ...ALL[name], ...own[name] });
  return { ...ALL, ...own, rows: both("rows"), neighbors: both("neighbors"), about: { ...ALL.about, target: ALL.joint.names[target] } };
}
let DATA = viewOf(0);

const ARRAYS = {
  uint8: Uint8Array, int16: Int16Array, uint16: Uint16Array, int32: Int32Array, float32: Float32Array, float64: Float64Array,
};

// Arrays come as base64 of little-endian bytes, which is the order of every processor that browsers run on.
function unpack(packed) {
  if (packed === null || packed === undefined) return null;
  const text = atob(packed.data);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return new ARRAYS[packed.dtype](bytes.buffer);
}

function el(tag, options, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(options || {})) {
    if (name === "text") node.textContent = value;
    else if (name === "class") node.className = value;
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}

function number(value, digits = 4) {
  if (Number.isNaN(value)) return "–";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  const size = Math.abs(value);
  if (size && (size >= 10 ** (digits + 3) || size < 1e-4)) return value.toExponential(digits - 1);
  const before = size >= 1 ? String(Math.trunc(size)).length : 0;
  const places = Math.max(0, digits - before);
  return value.toLocaleString("en-US", { minimumFractionDigits: places, maximumFractionDigits: places });
}

const percent = (share, digits = 0) => `${(100 * share).toFixed(digits)} %`;

// Values of features are shown as they are, not to a number of places.
function shown(value, texts) {
  if (value === undefined || Number.isNaN(value)) return "missing";
  if (texts) return texts[value];
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  return Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(6)));
}

// plotly reads some markup in its labels: names from the data must not become any.
const label = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

function layout(options) {
  const text = color("text"), grid = color("grid"), line = color("strong-line");
  const axis = (own) => ({
    gridcolor: grid, linecolor: line, zeroline: false, ticks: "outside", tickcolor: line, automargin: true, ...own,
  });
  const { xaxis, yaxis, ...rest } = options;
  return {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", dragmode: false, hovermode: "closest",
    font: { color: text, size: 12.5, family: getComputedStyle(document.body).fontFamily },
    margin: { l: 8, r: 24, t: 8, b: 8 }, hoverlabel: { font: { size: 12.5 } },
    legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom", bgcolor: "rgba(0,0,0,0)" },
    ...rest, xaxis: axis(xaxis), yaxis: axis(yaxis),
  };
}

const CONFIG = { responsive: true, displayModeBar: false, displaylogo: false };

function readRows() {
  const given = DATA.rows;
  const rows = { n: 0, id: given.id, threshold: given.threshold === null ? NaN : given.threshold };
  for (const name of ["row", "prediction", "lower", "upper", "observed", "std", "wider", "affinity"]) rows[name] = unpack(given[name]);
  rows.n = rows.row.length;
  rows.width = rows.upper.map((upper, i) => upper - rows.lower[i]);
  rows.error = rows.observed.map((observed, i) => Math.abs(observed - rows.prediction[i]));
  rows.inside = Array.from(rows.observed, (observed, i) => rows.lower[i] <= observed && observed <= rows.upper[i]);
  rows.dissimilar = (i) => rows.affinity !== null && rows.affinity[i] < rows.threshold;
  rows.name = (i) => (rows.id === null ? String(rows.row[i]) : rows.id[i]);
  return rows;
}
let ROWS = readRows();

const FEATURES = DATA.features.columns.map((column) => ({ ...column, values: unpack(column.values) }));
