const WIDE_ENOUGH = 700;
const LABELS = 140;
const LETTER = 7.6;
const LINES = "indexof(datum.label, ': ') > 0 ? split(datum.label, ': ') : split(replace(datum.label, / \\((?=[a-z])/, ': ('), ': ')";
const SLIM = { labels: 10.5, axis: 62 };
const panelsOf = (chart) => chart.hconcat ?? chart.vconcat;
const partsOf = (chart) => panelsOf(chart)?.flatMap(partsOf) ?? [chart.spec ?? chart];
const marksOf = (part) => part.layer?.flatMap(marksOf) ?? [part];
const encodings = (part) => marksOf(part).map((mark) => mark.encoding ?? {});
const hasRows = (part) => encodings(part).some(({ y }) => y?.type === "nominal");
const numbersOf = (part) => encodings(part).filter(({ x }) => x?.value === part.width).length;
function slim(part, room) {
  if (part.layer) part.layer = part.layer.filter((mark) => mark.encoding?.x?.field !== "left");
  const rows = hasRows(part);
  const numbers = numbersOf(part);
  const beside = rows ? LABELS + (numbers ? 12 + 50 * Math.max(1, Math.min(numbers, 2)) : 12) : SLIM.axis;
  const width = Math.max(room - beside, 120);
  for (const encoding of encodings(part)) {
    if (encoding.x?.value === part.width) encoding.x.value = width;
    if (encoding.x && "axis" in encoding.x) Object.assign(encoding.x.axis ?? {}, { tickCount: 4, labelOverlap: true });
    if (encoding.y?.type === "nominal") {
      encoding.y.axis = { ...encoding.y.axis, labels: true, labelLimit: LABELS, labelFontSize: SLIM.labels,
        labelExpr: LINES, labelPadding: 6 };
    }
    for (const channel of ["color", "stroke", "fill", "shape"]) {
      if (encoding[channel]?.legend) {
        Object.assign(encoding[channel].legend, { orient: "bottom", columns: 1, labelLimit: room - 40, direction: "vertical" });
      }
    }
  }
  if (!rows && part.width === part.height) part.height = width;
  if (rows && typeof part.height === "number") part.height *= 1.35;
  part.width = width;
}
function wrapped(lines, room) {
  const words = [lines].flat().join(" ").split(" ");
  return words.reduce((found, word) => {
    const longer = `${found.at(-1)} ${word}`.trim();
    return longer.length * LETTER > room ? [...found, word] : [...found.slice(0, -1), longer];
  }, [""]);
}
function stacked(chart, room) {
  for (const key of ["text", "subtitle"]) {
    if (chart.title?.[key]) chart.title[key] = wrapped(chart.title[key], room);
  }
  if (!panelsOf(chart)) return chart;
  const { hconcat, ...rest } = chart;
  return { ...rest, vconcat: panelsOf(chart).map((part) => stacked(part, room)), spacing: 26 };
}
function fitted(chart, room, width) {
  if (room >= Math.min(WIDE_ENOUGH, width)) return chart;
  for (const part of partsOf(chart)) slim(part, chart.facet?.column ? room / 2 + LABELS / 2 : room);
  return stacked(chart, room);
}
