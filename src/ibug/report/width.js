// What makes a row wide, and what narrow: a bar for each feature, to the right or to the left.
const WIDTHS = DATA.widths.reason !== undefined ? { reason: DATA.widths.reason } : (() => {
  const widths = { names: DATA.widths.names, compared: DATA.widths.compared };
  for (const name of ["place", "base", "feature", "value", "rest"]) widths[name] = unpack(DATA.widths[name]);
  widths.most = widths.feature.length / widths.place.length;
  widths.of = new Map(Array.from(widths.place, (place, at) => [place, at]));
  return widths;
})();

function widening(i) {
  const title = el("h4", { text: "Which features make it wide?" });
  if (WIDTHS.reason !== undefined) return [title, el("p", { class: "quiet", text: `Not known. ${WIDTHS.reason}` })];
  const at = WIDTHS.of.get(i);
  if (at === undefined) {
    const computed = WIDTHS.place.length.toLocaleString("en-US");
    return [title, el("p", { class: "quiet", text: `Not computed: there was time for the ${computed} widest rows (width_seconds).` })];
  }
  const parts = [];
  for (let j = at * WIDTHS.most; j < (at + 1) * WIDTHS.most; j++) parts.push([WIDTHS.names[WIDTHS.feature[j]], WIDTHS.value[j]]);
  const left = WIDTHS.names.length - parts.length;
  if (left) parts.push([`${left} other features`, WIDTHS.rest[at]]);
  const longest = Math.max(...parts.map(([, value]) => Math.abs(value))) || 1;
  const body = el("tbody");
  for (const [name, value] of parts) {
    const known = FEATURES.find((each) => each.name === name && each.values);
    const bar = el("i", { class: value < 0 ? "narrows" : "widens" });
    bar.style.width = `${((50 * Math.abs(value)) / longest).toFixed(2)}%`;
    body.append(el("tr", null,
      el("td", { text: name }), el("td", { class: "here", text: known ? shown(known.values[i], known.texts) : "" }),
      el("td", { class: "number", text: `× ${Math.exp(value).toFixed(2)}` }),
      el("td", null, el("span", { class: "sides", role: "img", "aria-label": value < 0 ? "narrows" : "widens" }, bar))));
  }
  const heads = [["feature", null], ["this row", null], ["factor of σ", "number"], ["← narrows, widens →", "middle"]];
  const head = el("tr", null, ...heads.map(([text, mark]) => el("th", { scope: "col", text, class: mark })));
  const note = `The typical σ of ${WIDTHS.compared} of these rows, ${number(WIDTHS.base[at])}, times all factors is the σ of this row (Shapley values).`;
  return [
    title, el("div", { class: "sideways" }, el("table", { class: "detail-table", id: "widths" }, el("thead", null, head), body)),
    el("p", { class: "quiet", text: note }),
  ];
}
