// Tables can be put in order by a column. Without scripts they are as they are.
"use strict";
for (const table of document.querySelectorAll("table")) {
  const body = table.tBodies[0];
  if (body.rows.length < 3) continue;
  [...table.tHead.rows[0].cells].forEach((head, place) => {
    const button = document.createElement("button");
    button.append(...head.childNodes);
    button.title = button.querySelector("abbr")?.title ?? "Put in order";
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") !== "descending" && head.className === "number"
        || head.getAttribute("aria-sort") === "ascending";
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = [...body.rows].map((row) => [row, key(row.cells[place])]);
      rows.sort(([, one], [, other]) => order(one, other) * (down ? -1 : 1));
      body.append(...rows.map(([row]) => row));
    });
  });
}
function key(cell) {
  return cell.className === "number" ? Number(cell.dataset.value ?? NaN) : cell.textContent;
}
function order(one, other) {
  if (typeof one === "string") return one.localeCompare(other, undefined, { numeric: true });
  return (isNaN(one) ? -Infinity : one) - (isNaN(other) ? -Infinity : other) || 0;
}
