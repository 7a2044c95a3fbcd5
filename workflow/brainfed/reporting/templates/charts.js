const styles = JSON.parse(document.querySelector("#chart-styles").textContent);
const dark = matchMedia("(prefers-color-scheme: dark)");
const charts = [...document.querySelectorAll("script.chart")].map((held) => ({
  frame: held.previousElementSibling,
  still: held.previousElementSibling.firstElementChild,
  results: held.closest("[id^='results-']")?.id,
  specification: () => JSON.parse(painted(held.textContent)),
}));
const hiddenIn = new Map();
const widthOf = (chart) => Number(chart.still.getAttribute("viewBox").split(" ")[2]);
const showStill = (chart) => chart.frame.replaceChildren(chart.still);
const BRIGHT = {
  "#bf5300": "#ff9a4d", "#0072b2": "#5cb8ff", "#007a5a": "#35c79b", "#008f68": "#35c79b", "#6b7280": "#aab4c0",
  "#22262b": "#e6e9ed", "#d5d9de": "#38414b", "#882255": "#c05c96", "#44559a": "#8596e6", "#b2182b": "#f0707d",
  "#2166ac": "#3f82cc", "#b45309": "#f0934a", "#0f766e": "#2fb5a8", "#117733": "#4bb870", "#2a788e": "#4db0c9",
  "#d55e00": "#ff8a3d", "#414487": "#8b8fe0", "#440154": "#c792e9",
};
function painted(text) {
  if (!dark.matches) return text;
  return text.replace(/#[0-9a-f]{6}/g, (colour) => BRIGHT[colour] ?? colour);
}
async function showChart(chart) {
  const config = styles[dark.matches ? "dark" : "light"];
  const place = document.createElement("div");
  const drawn = await vegaEmbed(place, { ...fitted(chart.specification(), chart.frame.clientWidth, widthOf(chart)), config },
    { actions: false, renderer: "svg", mode: "vega-lite", logLevel: 1 });
  chart.view?.finalize();
  chart.view = drawn.view;
  chart.place = place;
  await filterChart(chart);
  const svg = place.querySelector("svg");
  svg.style.maxWidth = `${svg.getAttribute("width")}px`;
  place.removeAttribute("class");
  place.setAttribute("role", "img");
  place.setAttribute("aria-label", chart.still.getAttribute("aria-label"));
  chart.frame.replaceChildren(place);
}
async function filterChart(chart) {
  if (!chart.view) return;
  await chart.view.signal("hidden", hiddenIn.get(chart.results) ?? []).runAsync();
  for (const part of chart.place.querySelectorAll("svg [role]")) {
    part.removeAttribute("role");
    part.removeAttribute("aria-roledescription");
    part.removeAttribute("aria-label");
  }
}
const seen = new IntersectionObserver((entries) => {
  for (const { target } of entries.filter((entry) => entry.isIntersecting)) {
    seen.unobserve(target);
    showChart(charts.find((chart) => chart.frame === target));
  }
}, { rootMargin: "200px" });
for (const chart of charts) seen.observe(chart.frame);
const redraw = () => charts.filter((chart) => chart.view).forEach((chart) => {
  if (chart.frame.clientWidth) return showChart(chart);
  showStill(chart);
  seen.observe(chart.frame);
});
dark.addEventListener("change", redraw);
matchMedia("(max-width: 860px)").addEventListener("change", redraw);
const onPaper = (chart) => dark.matches || !hiddenIn.get(chart.results)?.length;
addEventListener("beforeprint", () => charts.filter(onPaper).forEach(showStill));
addEventListener("afterprint", () => charts.filter((chart) => chart.place).forEach((chart) => chart.frame.replaceChildren(chart.place)));

for (const filter of document.querySelectorAll("details.methods")) {
  const boxes = [...filter.querySelectorAll("input")];
  const results = document.getElementById(filter.dataset.results);
  const apply = () => {
    const hidden = boxes.filter((box) => !box.checked).map((box) => box.value);
    hiddenIn.set(results.id, hidden);
    filter.querySelector(".count").textContent = hidden.length ? `${boxes.length - hidden.length} of ${boxes.length}` : `all ${boxes.length}`;
    for (const named of results.querySelectorAll("tbody tr > :first-child .named")) {
      named.closest("tr").hidden = hidden.includes(named.dataset.variant);
    }
    charts.filter((chart) => chart.results === results.id).forEach(filterChart);
  };
  filter.addEventListener("change", apply);
  for (const button of filter.querySelectorAll("button")) {
    button.addEventListener("click", () => {
      for (const box of boxes) box.checked = button.dataset.show === "all";
      apply();
    });
  }
  apply();
  filter.hidden = false;
}
