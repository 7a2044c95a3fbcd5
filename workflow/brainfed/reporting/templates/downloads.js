function save(content, type, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
function drawingOf(frame) {
  const drawn = frame.querySelector("svg").cloneNode(true);
  const [, , width, height] = drawn.getAttribute("viewBox").split(" ").map(Number);
  drawn.setAttribute("width", width);
  drawn.setAttribute("height", height);
  drawn.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  return { text: new XMLSerializer().serializeToString(drawn), width, height };
}
function savePicture(frame, name) {
  const { text, width, height } = drawingOf(frame);
  const image = new Image();
  image.onload = () => {
    const canvas = Object.assign(document.createElement("canvas"), { width: 3 * width, height: 3 * height });
    const context = canvas.getContext("2d");
    context.fillStyle = "white";
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((content) => save(content, "image/png", `${name}.png`));
  };
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
}
function linesOf(table) {
  const words = (cell) => {
    const small = [...cell.querySelectorAll("small")].map((note) => note.innerText.trim()).filter(Boolean);
    const copy = cell.cloneNode(true);
    copy.querySelectorAll("small").forEach((note) => note.remove());
    return [copy.textContent.trim(), ...small.map((note) => `(${note})`)].join(" ").replace(/\s+/g, " ");
  };
  return [...table.rows].filter((row) => !row.hidden)
    .map((row) => [...row.cells].flatMap((cell) => [words(cell), ...Array(cell.colSpan - 1).fill("")]).join("\t")).join("\n");
}
function bar(after, what, actions) {
  const bar = document.createElement("p");
  bar.className = "downloads";
  for (const [title, act] of Object.entries(actions)) {
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: title });
    button.setAttribute("aria-label", `Download ${what} as ${title}`);
    button.addEventListener("click", act);
    bar.append(button);
  }
  after.after(bar);
}
for (const frame of document.querySelectorAll(".drawing")) {
  const name = frame.closest("figure")?.id || frame.dataset.figure;
  const caption = frame.parentElement.querySelector("figcaption");
  bar(caption ?? frame, `the figure ${frame.dataset.figure}`, {
    SVG: () => save(drawingOf(frame).text, "image/svg+xml", `${name}.svg`),
    PNG: () => savePicture(frame, name),
  });
}
for (const table of document.querySelectorAll("main table")) {
  const name = table.caption.textContent;
  const after = table.closest(".scroll") ?? table;
  bar(after, `the table ${name}`, { TSV: () => save(`${linesOf(table)}\n`, "text/tab-separated-values", `${name}.tsv`) });
}
