// Tables: rows of messages under named columns.
import {h, replace} from "./element.js";

// columns: [{name, cell: row => content, number: right-aligned, wide: prose, wraps: words}]
export function table(caption, columns, rows, empty = "Nothing here yet.") {
  if (rows.length === 0) return h("p.empty", {}, empty);
  return h("div.scroll", {tabindex: "0", role: "region", "aria-label": caption}, h("table", {},
    h("caption.unseen", {}, caption),
    h("thead", {}, h("tr", {}, columns.map(column => h("th" + kind(column), {scope: "col", title: column.title}, column.name)))),
    h("tbody", {}, rows.map(row => tableRow(columns, row)))));
}

const kind = column => (column.number ? ".number" : "") + (column.wide ? ".wide" : "") + (column.wraps ? ".wraps" : "");

function tableRow(columns, row) {
  return h("tr", {}, columns.map(column => h("td" + kind(column), {}, column.cell(row))));
}

// All rows at hand, a page of them at a time, sorted by a click on a column that has a `key`.
export function sortedTable(caption, columns, rows, {empty, size = 100} = {}) {
  const host = h("div");
  let by = null, down = true, page = 0;
  const draw = focus => {
    const sorted = by === null ? rows : [...rows].sort((a, b) => compare(columns[by].key(a), columns[by].key(b)) * (down ? -1 : 1));
    const pages = Math.max(1, Math.ceil(sorted.length / size));
    page = Math.min(page, pages - 1);
    const shown = columns.map((column, at) => !column.key ? column : {...column, name: h("button.sort", {
      type: "button", "aria-label": `Sort by ${column.name}`,
      click: () => {
        down = by === at ? !down : true;
        by = at;
        draw(at);
      }}, column.name, h("span", {"aria-hidden": "true"}, by === at ? (down ? " ↓" : " ↑") : ""))});
    replace(host, table(caption, shown, sorted.slice(page * size, (page + 1) * size), empty),
      pages > 1 && pager(`${page * size + 1}–${Math.min(sorted.length, (page + 1) * size)} of ${sorted.length}`,
        page > 0 && (() => (--page, draw())), page < pages - 1 && (() => (++page, draw()))));
    if (focus !== undefined) host.querySelectorAll("th")[focus]?.querySelector("button")?.focus();
  };
  draw();
  return host;
}

function compare(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a ?? "").localeCompare(String(b ?? ""), "en", {numeric: true});
}

export function pager(text, before, after) {
  return h("p.pager", {},
    h("button", {type: "button", disabled: !before, click: before || (() => {})}, "Previous"),
    h("span", {}, text),
    h("button", {type: "button", disabled: !after, click: after || (() => {})}, "Next"));
}
