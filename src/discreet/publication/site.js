"use strict";
// The table of a page: searched, filtered, sorted and paged in the browser. Rows come from scripts beside the page.
const about = JSON.parse(document.getElementById("about-table").textContent);
const columns = about.columns;
const data = columns.map(() => []);
const size = 25;
const format = new Intl.NumberFormat("en", { maximumFractionDigits: 4 });
const byName = (name) => columns.findIndex((column) => column.name === name);
const value = columns.findIndex((column) => column.kind === "value");
const ends = [byName("lower"), byName("upper")];
const flag = Math.max(byName("quality"), byName("flag"));
const shown = columns.map((_, i) => i).filter((i) => !ends.includes(i) || ends.includes(-1));
let order = new Int32Array(0);
let page = 0;
let sorted = { column: value, down: true };

const element = (name, attributes = {}, ...children) => {
  const made = document.createElement(name);
  for (const [key, text] of Object.entries(attributes)) made.setAttribute(key, text);
  made.append(...children);
  return made;
};
const vector = (name, attributes) => {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, text] of Object.entries(attributes)) made.setAttribute(key, text);
  return made;
};
const said = (number) => (number === null || number === undefined ? "–" : format.format(number));
const isNumber = (column) => column.kind === "value" || column.kind === "number";
const text = (column, row) =>
  isNumber(columns[column]) ? said(data[column][row]) : (columns[column].values[data[column][row]] ?? "–");

const explorer = document.getElementById("explorer");
const status = explorer.querySelector("output");
const field = explorer.querySelector("input[type=search]");
const body = explorer.querySelector("tbody");
const head = explorer.querySelector("thead tr");
const selects = [...explorer.querySelectorAll("select[data-column]")];
const buttons = Object.fromEntries([...explorer.querySelectorAll("button[data-go]")].map((b) => [b.dataset.go, b]));

function select() {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  const named = columns.map((column, i) => i).filter((i) => !isNumber(columns[i]));
  const tests = words.map((word) =>
    named.map((i) => [data[i], columns[i].values.map((name) => name.toLowerCase().includes(word))]),
  );
  const chosen = selects
    .filter((box) => box.value !== "")
    .map((box) => [data[Number(box.dataset.column)], Number(box.value)]);
  const n = data[0] ? data[0].length : 0;
  const found = new Int32Array(n);
  let kept = 0;
  for (let row = 0; row < n; row++) {
    if (!chosen.every(([codes, code]) => codes[row] === code)) continue;
    if (!tests.every((places) => places.some(([codes, hit]) => hit[codes[row]]))) continue;
    found[kept++] = row;
  }
  order = found.subarray(0, kept);
  sort();
}

function sort() {
  const { column, down } = sorted;
  if (column >= 0) {
    const sign = down ? -1 : 1;
    let key = data[column];
    if (!isNumber(columns[column])) {
      const names = columns[column].values;
      const rank = new Int32Array(names.length);
      names
        .map((_, i) => i)
        .sort((a, b) => names[a].localeCompare(names[b], "en", { numeric: true }))
        .forEach((code, place) => (rank[code] = place));
      key = data[column].map((code) => rank[code] ?? -1);
    }
    order = order.slice().sort((a, b) => {
      const [x, y] = [key[a], key[b]];
      if (x === null || y === null) return (x === null) - (y === null);
      return sign * (x - y) || a - b;
    });
  }
  page = 0;
  show();
}

function mark(row, most) {
  const picture = vector("svg", { viewBox: "0 0 100 14", preserveAspectRatio: "none", "aria-hidden": "true" });
  const at = (number) => (100 * Math.min(Math.max(number, 0), most)) / most;
  picture.append(vector("rect", { x: 0, y: 3, height: 8, width: Math.max(at(data[value][row] ?? 0), 0.4) }));
  const [low, high] = ends.map((i) => (i < 0 ? null : data[i][row]));
  if (low !== null && low !== undefined) {
    const right = high === null ? 100 : at(high);
    picture.append(vector("line", { class: "reach", x1: at(low), x2: right, y1: 7, y2: 7 }));
  }
  return picture;
}

function show() {
  const pages = Math.max(Math.ceil(order.length / size), 1);
  page = Math.min(Math.max(page, 0), pages - 1);
  const rows = order.subarray(page * size, (page + 1) * size);
  let most = 1;
  for (const row of rows) {
    most = Math.max(most, data[value]?.[row] ?? 0, ends[1] < 0 ? 0 : (data[ends[1]][row] ?? 0));
  }
  body.replaceChildren(
    ...[...rows].map((row) => {
      const line = element("tr");
      if (flag >= 0 && text(flag, row) === "mostly noise") line.className = "faint";
      for (const i of shown) {
        if (i === value) {
          const cell = element("td", { class: "number" }, element("b", {}, text(i, row)));
          line.append(cell);
          if (ends[0] >= 0) {
            const [low, high] = ends.map((end) => data[end][row]);
            const told = low === null ? "–" : `${said(low)} to ${high === null ? "∞" : said(high)}`;
            line.append(element("td", { class: "number quiet" }, told), element("td", { class: "mark" }, mark(row, most)));
          }
        } else {
          line.append(element("td", isNumber(columns[i]) ? { class: "number" } : {}, text(i, row)));
        }
      }
      return line;
    }),
  );
  const first = order.length ? page * size + 1 : 0;
  const loaded = data[0] ? data[0].length : 0;
  const part = loaded < about.rows ? ` (loading: ${said(loaded)} of ${said(about.rows)})` : "";
  status.textContent = `Rows ${said(first)} to ${said(page * size + rows.length)} of ${said(order.length)}${part}`;
  buttons.first.disabled = buttons.back.disabled = page === 0;
  buttons.next.disabled = buttons.last.disabled = page >= pages - 1;
}

function heads() {
  const made = [];
  for (const i of shown) {
    const button = element("button", { type: "button" }, columns[i].title);
    const cell = element("th", { scope: "col", ...(isNumber(columns[i]) ? { class: "number" } : {}) }, button);
    button.addEventListener("click", () => {
      const again = sorted.column === i;
      sorted = { column: i, down: again ? !sorted.down : isNumber(columns[i]) };
      for (const other of head.querySelectorAll("[aria-sort]")) other.removeAttribute("aria-sort");
      cell.setAttribute("aria-sort", sorted.down ? "descending" : "ascending");
      sort();
    });
    made.push(cell);
    if (i === value && ends[0] >= 0) {
      cell.setAttribute("aria-sort", "descending");
      made.push(element("th", { scope: "col", class: "number" }, about.interval), element("th", { scope: "col" }, "Chart"));
    }
  }
  head.replaceChildren(...made);
}

for (const box of selects) {
  const column = columns[Number(box.dataset.column)];
  const codes = column.values.map((_, i) => i);
  codes.sort((a, b) => column.values[a].localeCompare(column.values[b], "en", { numeric: true }));
  box.append(...codes.map((code) => element("option", { value: code }, column.values[code])));
  box.addEventListener("change", select);
}
let waiting = 0;
field.addEventListener("input", () => {
  clearTimeout(waiting);
  waiting = setTimeout(select, 120);
});
const go = { first: () => 0, back: () => page - 1, next: () => page + 1, last: () => Infinity };
for (const [name, button] of Object.entries(buttons)) {
  button.addEventListener("click", () => {
    page = Math.min(go[name](), Math.ceil(order.length / size));
    show();
  });
}
explorer.querySelector("form").addEventListener("submit", (event) => event.preventDefault());

function load(number) {
  if (number >= about.parts) {
    document.documentElement.dataset.loaded = "all";
    return;
  }
  const script = document.createElement("script");
  script.src = `${about.source}-${number}.js`;
  script.addEventListener("load", () => load(number + 1));
  script.addEventListener("error", () => {
    status.textContent = "A part of the table is missing: copy the whole folder of the site.";
  });
  document.body.append(script);
}

window.discreet = {
  rows(number, rows) {
    rows.forEach((values, i) => {
      for (const each of values) data[i].push(each);
    });
    if (number === 0 || number === about.parts - 1) select();
    else show();
  },
};

heads();
for (const part of explorer.querySelectorAll("[hidden]")) part.hidden = false;
load(0);
