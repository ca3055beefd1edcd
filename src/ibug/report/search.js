// The search: words, which must all occur in a row, and comparisons of one column. `hum > 0.5 hr<12 city = new york` has three
// comparisons; quotes hold blanks together. Texts that are numbers compare as numbers; 0,5 is 0.5.
const SIGNS = {
  "=": (order) => order === 0, "!=": (order) => order !== 0,
  "<": (order) => order < 0, ">": (order) => order > 0, "<=": (order) => order <= 0, ">=": (order) => order >= 0,
};
const SIGN = /^\s*(<=|>=|!=|==|[<>=:≤≥≠])\s*/;
const SAME = { "≤": "<=", "≥": ">=", "≠": "!=", "==": "=" };
const MISSING = "missing";
const MOST_NAMES = 20;

// What can be compared, by lower-case name. `rounded` is what the page does to the values of the column: bounds are rounded in the same way.
function searchable() {
  const found = new Map();
  for (const { name, values, texts } of FEATURES) {
    const rounded = values instanceof Float32Array ? Math.fround : (value) => value;
    found.set(name.toLowerCase(), { name, known: Boolean(values), rounded, value: (i) => (texts ? shown(values[i], texts) : values[i]), texts });
  }
  for (const { key, title, value } of COLUMNS) {
    const column = { name: title, known: true, rounded: (number) => number, value, texts: key === "row" ? ROWS.id : null };
    found.set(key, column).set(title, column);
  }
  return found.set("row", { ...found.get("row"), name: "row", value: (i) => ROWS.row[i], texts: null });
}

// The number that a text stands for, NaN if none. A comma is a decimal mark, but where the page itself writes it: 1,234.5.
function toNumber(text) {
  const plain = text.trim().replace(/^−/, "-");
  if (/^[+-]?(∞|inf|infinity)$/i.test(plain)) return plain.startsWith("-") ? -Infinity : Infinity;
  if (/^[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?$/.test(plain)) return Number(plain.replace(/,/g, ""));
  return /^[+-]?(\d+[.,]?\d*|[.,]\d+)(e[+-]?\d+)?%?$/i.test(plain) ? percentage(plain.replace(",", ".")) : NaN;
}

const percentage = (text) => (text.endsWith("%") ? Number(text.slice(0, -1)) / 100 : Number(text));

// The text of each row that words are looked for in; made when it is first needed.
let rowTexts = null;
function textOf(i) {
  rowTexts = rowTexts || new Array(ROWS.n);
  if (rowTexts[i] === undefined) {
    const values = FEATURES.filter((each) => each.values).map((each) => shown(each.values[i], each.texts));
    rowTexts[i] = [ROWS.name(i), String(ROWS.row[i]), ...values].join("\n").toLowerCase();
  }
  return rowTexts[i];
}

// A test of rows by number, and notes on what could not be understood.
function query(text) {
  const columns = searchable(), terms = [];
  let rest = text.trim().toLowerCase();
  while (rest) {
    const term = comparison(rest, columns) || word(rest);
    rest = rest.slice(term.length).trim();
    terms.push(term);
  }
  const notes = terms.flatMap(({ note }) => note || []), names = terms.flatMap((term) => term.unknown || []);
  if (names.length) notes.push(unknownNote(names, columns));
  return { test: (i) => terms.every(({ test }) => test(i)), notes };
}

function word(rest) {
  const [whole, quoted] = rest.match(/^"([^"]*)"?|^\S+/);
  return { length: whole.length, test: contains(quoted === undefined ? whole : quoted) };
}

const contains = (text) => (i) => textOf(i).includes(text);

// The longest of some texts that another one begins with, in quotes or not, where `ends` holds of what follows; null if none.
function beginning(rest, texts, ends) {
  let best = null;
  for (const text of texts) {
    for (const whole of [text, `"${text}"`]) {
      if (rest.startsWith(whole) && (!best || whole.length > best.whole.length) && ends(rest.slice(whole.length))) best = { text, whole };
    }
  }
  return best;
}

// A comparison at the beginning of a search; null if there is none.
function comparison(rest, columns) {
  const named = beginning(rest, columns.keys(), (after) => SIGN.test(after));
  const name = named ? named.whole : (rest.match(/^("[^"]*"|[^\s"<>=:≤≥≠!]+)(?=\s*([<>=:≤≥≠]|!=))/) || [null])[0];
  if (name === null) return null;
  const [between, sign] = rest.slice(name.length).match(SIGN), before = name.length + between.length;
  const column = named && columns.get(named.text), value = valueOf(rest.slice(before), column);
  const term = { length: before + value.whole.length };
  if (!named) return { ...term, ...unknown(name, rest.slice(0, term.length)) };
  if (!column.known) return { ...term, test: () => false, note: `There was no room for the values of “${column.name}” in this page.` };
  if (value.whole === "") return { ...term, test: () => true }; // it is still being written
  return { ...term, ...compared(column, sign, value.text) };
}

// What follows the sign: one word, something in quotes, or a text of the column that has blanks.
function valueOf(rest, column) {
  const texts = new Set(column && column.known && column.texts ? column.texts.map((text) => text.toLowerCase()) : []);
  const whole = beginning(rest, texts, (after) => /^(\s|$)/.test(after));
  if (whole) return whole;
  const [found, quoted] = rest.match(/^"([^"]*)"?|^\S*/);
  return { whole: found, text: quoted === undefined ? found : quoted };
}

// Not a column: the whole may be a text that a row has, such as 12:30.
function unknown(name, whole) {
  const test = contains(whole);
  if (ROWS.row.some((_, i) => test(i))) return { test };
  return { test: () => false, unknown: `“${name.replace(/"/g, "")}”` };
}

function unknownNote(names, columns) {
  const known = [...new Set([...columns.values()].map((column) => column.name))];
  const listed = known.slice(0, MOST_NAMES).join(", ") + (known.length > MOST_NAMES ? ", …" : "");
  return `No column is called ${names.join(" or ")}. The columns are: ${listed}.`;
}

// The comparison of a column's values with a text.
function compared(column, given, text) {
  const sign = SAME[given] || given, bound = column.rounded(toNumber(text));
  const equality = sign === "=" || sign === "!=" || sign === ":", value = column.value;
  const isNumber = (found) => typeof found !== "string";
  if (equality) {
    const holds = (found) => {
      if (isNumber(found)) return Number.isNaN(found) ? text === MISSING : found === bound || shown(found) === text;
      return sign === ":" ? found.toLowerCase().includes(text) : found.toLowerCase() === text || toNumber(found) === bound;
    };
    const note = !column.texts && Number.isNaN(bound) && text !== MISSING ? notNumber(column, text) : grouped(text, bound);
    return { test: sign === "!=" ? (i) => !holds(value(i)) : (i) => holds(value(i)), note };
  }
  if (Number.isNaN(bound) && !column.texts) return { test: () => false, note: notNumber(column, text) };
  const inOrder = (found) => {
    if (Number.isNaN(bound)) return found === MISSING ? NaN : byText(found, text); // dates, say
    const other = isNumber(found) ? found : toNumber(found);
    return other === bound ? 0 : other - bound;
  };
  return { test: (i) => SIGNS[sign](inOrder(value(i))), note: grouped(text, bound) };
}

const notNumber = (column, text) => `“${column.name}” has numbers, and “${text}” is none.`;
const grouped = (text, bound) => (/^[^.]*,\d{3}$/.test(text) && Math.abs(bound) >= 1000 ? `${text} is read as ${bound}.` : null);
