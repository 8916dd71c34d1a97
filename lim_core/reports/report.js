"use strict";
(() => {
  const colours = JSON.parse(document.getElementById("colours").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const plots = Array.from(document.querySelectorAll(".plot"), (frame) => {
    const script = frame.querySelector("script");
    const drawing = JSON.parse(script.textContent);
    script.remove();
    return { frame, drawing };
  });

  // Figures name their colours by role; the palette in use takes their place.
  const paint = (value, palette) => {
    if (typeof value === "string") {
      const role = colours.roles.indexOf(value);
      return role < 0 ? value : palette[role];
    }
    if (Array.isArray(value)) return value.map((item) => paint(item, palette));
    if (value && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, paint(item, palette)]));
    }
    return value;
  };

  const look = (palette, ground) => {
    const [, , , , grey, pale, ink] = palette;
    const axis = {
      gridcolor: pale, gridwidth: 0.5, linecolor: grey, zerolinecolor: pale, automargin: true,
      tickfont: { size: 12 }, title: { font: { size: 13 }, standoff: 8 },
    };
    return {
      layout: {
        font: { family: getComputedStyle(document.body).fontFamily, size: 13, color: ink },
        colorway: palette.slice(0, 5), paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
        hoverlabel: { bgcolor: ground, bordercolor: grey, font: { color: ink } },
        xaxis: axis, yaxis: axis,
      },
    };
  };

  const draw = (night, width) => {
    const palette = night ? colours.dark : colours.light;
    const ground = night ? "#14171A" : "#FCFCFB";
    for (const { frame, drawing } of plots) {
      const layout = { ...paint(drawing.layout, palette), template: look(palette, ground), autosize: width === undefined };
      if (width !== undefined) layout.width = width;
      Plotly.react(frame, paint(drawing.data, palette), layout, { displayModeBar: false, responsive: true });
    }
  };

  draw(dark.matches);
  // A chart in a closed part has no width to be drawn in.
  for (const part of document.querySelectorAll("details")) {
    part.addEventListener("toggle", () => {
      if (part.open) for (const frame of part.querySelectorAll(".plot")) Plotly.Plots.resize(frame);
    });
  }
  dark.addEventListener("change", () => draw(dark.matches));
  // Paper is white, and narrower than most windows.
  window.addEventListener("beforeprint", () => draw(false, 680));
  window.addEventListener("afterprint", () => draw(dark.matches));

  for (const list of document.querySelectorAll("[data-trials]")) {
    const chosen = Array.from(list.querySelectorAll("select"));
    const rows = Array.from(list.querySelectorAll("tbody tr"));
    const told = list.querySelector("output");
    const choose = () => {
      let shown = 0;
      for (const row of rows) {
        row.hidden = chosen.some((select) => select.value && row.cells[Number(select.dataset.column)].textContent !== select.value);
        shown += row.hidden ? 0 : 1;
      }
      told.textContent = `${shown} of ${rows.length} shown`;
    };
    for (const select of chosen) select.addEventListener("change", choose);
  }
})();
