// The table of rows. Only those on the screen are in the document, so that it answers at once however many there are.
const ROW_HEIGHT = 34;
const BEYOND = 8; // rows drawn above and below the visible ones

const COLUMNS = [
  { key: "row", title: ROWS.id === null ? "row" : "id", value: (i) => (ROWS.id === null ? ROWS.row[i] : ROWS.id[i]), text: (i) => ROWS.name(i), ascending: true },
  { key: "prediction", title: "prediction", value: (i) => ROWS.prediction[i] },
  { key: "lower", title: "from", value: (i) => ROWS.lower[i] },
  { key: "upper", title: "to", value: (i) => ROWS.upper[i] },
  { key: "width", title: "width", value: (i) => ROWS.width[i], extra: true },
  { key: "observed", title: "observed", value: (i) => ROWS.observed[i], mark: (i) => (ROWS.inside[i] ? "" : "outside") },
  { key: "error", title: "error", value: (i) => ROWS.error[i], extra: true },
];
if (ROWS.affinity !== null) {
  COLUMNS.push({
    key: "affinity", title: "similarity", value: (i) => ROWS.affinity[i], text: (i) => percent(ROWS.affinity[i]), extra: true,
    mark: (i) => (ROWS.dissimilar(i) ? "dissimilar" : ""),
  });
}

const FILTERS = [
  ["all", "all rows", () => true],
  ["outside", "observed value outside the interval", (i) => !ROWS.inside[i]],
  ["dissimilar", "low similarity to the training data", (i) => ROWS.dissimilar(i)],
  ["outside-box", "a target outside the box", (i) => JOINT !== null && !JOINT.inside(i)],
  ["endless", "interval without an end", (i) => !Number.isFinite(ROWS.width[i])],
];

// Those that some row fits.
function fillFilters() {
  const fits = ([name, , holds]) => name === "all" || name === "outside" || [...ROWS.row.keys()].some(holds);
  const chosen = $("filter").value;
  $("filter").replaceChildren(...FILTERS.filter(fits).map(([value, text]) => el("option", { value, text })));
  if (chosen) $("filter").value = chosen;
  if (!$("filter").value) $("filter").value = "all";
}

const TABLE = {
  order: [...ROWS.row.keys()],
  sort: { key: "width", ascending: false },
  chosen: -1, // the row, not its place
  onChoose: () => {},

  start(onChoose) {
    this.onChoose = onChoose;
    for (const column of COLUMNS) {
      const button = el("button", { type: "button", text: column.title });
      button.addEventListener("click", () => this.sortBy(column));
      $("head").append(el("th", { scope: "col", "data-key": column.key, class: column.extra ? "extra" : null }, button));
    }
    fillFilters();
    $("search").placeholder = `Search: a value, ${FEATURES.length ? shortName() : "width"}=… or width > 10`;
    $("search").addEventListener("input", () => this.refresh());
    $("filter").addEventListener("change", () => this.refresh());
    $("scroll").addEventListener("scroll", () => this.render(), { passive: true });
    $("body").addEventListener("click", (event) => {
      const row = event.target.closest("tr[data-row]");
      if (row) this.choose(Number(row.dataset.row));
      $("grid").focus({ preventScroll: true });
    });
    $("grid").addEventListener("keydown", (event) => this.key(event));
    addEventListener("resize", () => this.render());
    this.refresh();
  },

  sortBy(column) {
    const again = this.sort.key === column.key;
    this.sort = { key: column.key, ascending: again ? !this.sort.ascending : Boolean(column.ascending) };
    this.refresh();
  },

  refresh() {
    const holds = FILTERS.find(([name]) => name === $("filter").value)[2];
    const searched = query($("search").value);
    this.order = [...ROWS.row.keys()].filter((i) => holds(i) && searched.test(i));
    $("search-notes").textContent = searched.notes.join(" ");
    const column = COLUMNS.find(({ key }) => key === this.sort.key);
    const direction = this.sort.ascending ? 1 : -1;
    this.order.sort((a, b) => compare(column.value(a), column.value(b), direction) || a - b);
    for (const head of $("head").children) {
      const sorted = head.dataset.key === this.sort.key;
      if (sorted) head.setAttribute("aria-sort", this.sort.ascending ? "ascending" : "descending");
      else head.removeAttribute("aria-sort");
      head.firstChild.textContent = COLUMNS.find(({ key }) => key === head.dataset.key).title + (sorted ? (this.sort.ascending ? " ↑" : " ↓") : "");
    }
    const n = this.order.length;
    $("count").textContent = n === ROWS.n ? `${n.toLocaleString("en-US")} rows` : `${n.toLocaleString("en-US")} of ${ROWS.n.toLocaleString("en-US")} rows`;
    $("grid").setAttribute("aria-rowcount", n + 1);
    $("empty").hidden = n > 0;
    $("scroll").scrollTop = 0;
    this.render();
  },

  render() {
    const box = $("scroll"), n = this.order.length;
    const first = Math.max(0, Math.floor(box.scrollTop / ROW_HEIGHT) - BEYOND);
    const last = Math.min(n, Math.ceil((box.scrollTop + box.clientHeight) / ROW_HEIGHT) + BEYOND);
    const rows = [spacer(first)];
    for (let place = first; place < last; place++) rows.push(this.row(this.order[place], place));
    rows.push(spacer(n - last));
    $("body").replaceChildren(...rows);
    const visible = $(`row-${this.chosen}`);
    if (visible) $("grid").setAttribute("aria-activedescendant", visible.id);
    else $("grid").removeAttribute("aria-activedescendant");
  },

  row(i, place) {
    const cells = COLUMNS.map((column) => {
      const text = column.text ? column.text(i) : number(column.value(i));
      const marks = [column.extra ? "extra" : "", column.mark ? column.mark(i) : ""].join(" ").trim();
      return el("td", { text, class: marks, "data-key": column.key, role: "gridcell" });
    });
    return el("tr", { id: `row-${i}`, "data-row": i, "aria-rowindex": place + 2, "aria-selected": String(i === this.chosen) }, ...cells);
  },

  choose(i) {
    this.chosen = i;
    const place = this.order.indexOf(i), box = $("scroll");
    const head = $("head").offsetHeight, top = place * ROW_HEIGHT;
    if (place >= 0) {
      if (top < box.scrollTop) box.scrollTop = top;
      else if (top + ROW_HEIGHT + head > box.scrollTop + box.clientHeight) box.scrollTop = top + ROW_HEIGHT + head - box.clientHeight;
    }
    this.render();
    this.onChoose(i);
  },

  // Shows a row even if search or filter have left it out.
  reveal(i) {
    if (!this.order.includes(i)) {
      $("search").value = "";
      $("filter").value = "all";
      this.refresh();
    }
    this.choose(i);
  },

  key(event) {
    const n = this.order.length, page = Math.max(1, Math.floor($("scroll").clientHeight / ROW_HEIGHT) - 2);
    const place = this.order.indexOf(this.chosen);
    const steps = { ArrowDown: place + 1, ArrowUp: place < 0 ? 0 : place - 1, PageDown: place + page, PageUp: place - page, Home: 0, End: n - 1 };
    if (!(event.key in steps) || event.target.closest("th") || !n || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    this.choose(this.order[Math.min(n - 1, Math.max(0, steps[event.key]))]);
  },
};

function spacer(rows) {
  const cell = el("td", { colspan: COLUMNS.length });
  cell.style.height = `${rows * ROW_HEIGHT}px`;
  return el("tr", { class: "spacer", "aria-hidden": "true" }, cell);
}

const byText = new Intl.Collator("en", { numeric: true }).compare;

function compare(a, b, direction) {
  if (typeof a === "string") return direction * byText(a, b);
  if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) - Number.isNaN(b); // last, either way
  return a === b ? 0 : direction * (a < b ? -1 : 1);
}

const shortName = () => FEATURES.map(({ name }) => name).find((name) => /^\w{1,16}$/.test(name)) || "width";
