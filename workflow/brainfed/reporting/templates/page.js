for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const original = [...body.rows];
  table.querySelectorAll("thead tr:last-child th").forEach((head, column) => {
    if (column === 0) return;
    const button = document.createElement("button");
    button.type = "button";
    button.title = "sort by this column; a third click restores the order";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const before = head.getAttribute("aria-sort");
      table.querySelectorAll("th[aria-sort]").forEach((other) => other.removeAttribute("aria-sort"));
      const value = (row) => Number(row.cells[column]?.dataset.value ?? "NaN");
      const rows = original.filter((row) => !row.classList.contains("head"));
      if (before === "ascending") {
        body.replaceChildren(...original);
        return;
      }
      const sign = before === "descending" ? 1 : -1;
      head.setAttribute("aria-sort", before === "descending" ? "ascending" : "descending");
      const known = (row) => (Number.isNaN(value(row)) ? 1 : 0);
      rows.sort((a, b) => known(a) - known(b) || sign * (value(a) - value(b)) || 0);
      body.replaceChildren(...rows);
    });
  });
}
const reachable = () => document.querySelectorAll(".scroll, .drawing").forEach((frame) => {
  if (frame.scrollWidth > frame.clientWidth) frame.tabIndex = 0;
  else frame.removeAttribute("tabindex");
});
addEventListener("load", reachable);
addEventListener("resize", reachable);
addEventListener("toggle", reachable, true);
const openTarget = () => {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  for (let part = target; part; part = part.parentElement) if (part.matches("details")) part.open = true;
  target.querySelectorAll(":scope > details").forEach((part) => { part.open = true; });
  target.scrollIntoView();
};
addEventListener("hashchange", openTarget);
addEventListener("load", openTarget);
document.addEventListener("click", ({ target }) => {
  if (target.closest("a")?.hash === location.hash && location.hash) openTarget();
});
