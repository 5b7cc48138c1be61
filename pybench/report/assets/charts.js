/* The charts: drawing, colours of the theme, paper, and the one legend for all charts. */
(async () => {
  "use strict";
  const $ = (selector, root = document) => root.querySelector(selector);
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
  const figures = pybench.isPacked("figures") ? await pybench.unpacked("figures") : pybench.plain("figures");
  const hiddenSeries = new Set($$('.chip[aria-pressed="false"]').map((chip) => chip.dataset.series));
  /* Charts that have to be drawn, or drawn again; charts near the window; the width each was drawn with. */
  const stale = new Set(Object.keys(figures));
  const near = new Set();
  const widths = new Map();

  /* ---- colours: figures name CSS variables, and the browser resolves them for the theme ---- */
  const probe = document.createElement("span");
  probe.hidden = true;
  document.body.append(probe);
  const resolve = (name) => {
    probe.style.color = name;
    return getComputedStyle(probe).color;
  };
  const coloured = (value) => {
    if (typeof value === "string") return value.startsWith("var(--") ? resolve(value) : value;
    if (Array.isArray(value)) return value.map(coloured);
    if (value && typeof value === "object")
      return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, coloured(inner)]));
    return value;
  };

  /* ---- charts ---- */
  const axis = (given) => ({
    gridcolor: resolve("var(--line)"),
    linecolor: resolve("var(--line-strong)"),
    showline: true,
    zeroline: false,
    ticks: "",
    tickangle: 0,
    fixedrange: matchMedia("(pointer: coarse)").matches,
    ...given,
    title: given.title && { ...given.title, standoff: 8, font: { size: 12 } },
  });
  /* The title of the vertical axis stands above it, so that it is not turned. */
  const above = ({ title, domain }, left) => ({
    text: title.text,
    x: 0,
    y: domain?.[1] ?? 1,
    xref: "paper",
    yref: "paper",
    xanchor: "left",
    yanchor: "bottom",
    xshift: -left,
    yshift: 7,
    showarrow: false,
    font: { size: 12 },
  });
  /* As many ticks as fit side by side: all, else powers of ten, else every second one, and so on. Plotly would turn
     them, and they would overlap the title of the axis. */
  const ruler = document.createElement("canvas").getContext("2d");
  const thinned = (given, room) => {
    const { type, range, tickvals, ticktext } = given;
    const exponent = (place) => Math.log10(tickvals[place]);
    const value = (place) => (type === "log" ? exponent(place) : tickvals[place]);
    const at = (place) => ((value(place) - range[0]) / (range[1] - range[0])) * room;
    const half = (place) => ruler.measureText(ticktext[place]).width / 2;
    const clear = (place, before) => at(place) - at(before) >= half(place) + half(before) + 8;
    const fits = (places) => places.every((place, n) => n === 0 || clear(place, places[n - 1]));
    const every = [...tickvals.keys()];
    const choices = every.map((n) => every.filter((place) => place % (n + 1) === 0));
    const tens = type === "log" ? every.filter((place) => Number.isInteger(exponent(place))) : [];
    if (tens.length > 1) choices.splice(1, 0, tens);
    const kept = choices.find(fits) ?? [];
    return { ...given, tickvals: kept.map((n) => tickvals[n]), ticktext: kept.map((n) => ticktext[n]) };
  };
  /* Names at the ends of lines are moved to keep clear of each other, so each has the marker of its line before it. */
  const MARKS = { circle: "●", square: "■", diamond: "◆", triangle: "▲" };
  const labelled = (one, data) => {
    const marker = data.find(({ meta, marker }) => meta === one.name && marker)?.marker;
    const [shape] = [marker?.symbol ?? ""].flat().map((symbol) => MARKS[symbol.split("-")[0]]).filter(Boolean);
    const colour = shape && one.x === 1 ? resolve(marker.color) : "";
    return colour ? { ...one, text: `<span style="color:${colour}">${shape}</span> ${one.text}` } : one;
  };
  /* Cells without a place in the panel: n/a stands at their load, at the foot, above the markers of their lines. */
  const MARKS_IN_A_ROW = 3;
  const rowsOf = ({ text, series }) => {
    const marks = series
      .filter(({ label, cell }) => !hiddenSeries.has(label) && pybench.isShown(cell))
      .map(({ shape, colour }) => `<span style="color:${resolve(colour)}">${MARKS[shape]}</span>`);
    const rows = marks.map((_, n) => marks.slice(n, n + MARKS_IN_A_ROW).join("")).filter((_, n) => n % MARKS_IN_A_ROW === 0);
    return rows.length ? [text, ...rows] : [];
  };
  const gapsOf = ({ layout: { meta, xaxis } }) =>
    (meta?.gaps ?? []).map(({ x, groups }) => ({
      text: groups.flatMap(rowsOf).join("<br>"),
      x: xaxis.type === "log" ? Math.log10(x) : x,
      y: 0,
      xref: "x",
      yref: "paper",
      yanchor: "bottom",
      showarrow: false,
    }));
  const layoutOf = (figure, room) => {
    const { xaxis, annotations = [], shapes = [], meta, ...rest } = figure.layout;
    /* A panel may have several vertical axes above each other. */
    const vertical = Object.entries(rest).filter(([name]) => name.startsWith("yaxis"));
    const ink = resolve("var(--ink-soft)");
    const family = getComputedStyle(document.body).fontFamily;
    ruler.font = `12px ${family}`;
    return {
      ...rest,
      width: room.clientWidth,
      height: room.clientHeight,
      xaxis: axis({ showgrid: false, ...thinned(xaxis, room.clientWidth - rest.margin.l - rest.margin.r) }),
      ...Object.fromEntries(vertical.map(([name, given]) => [name, { ...axis(given), title: undefined }])),
      annotations: [
        ...gapsOf(figure).map((one) => ({ ...one, font: { size: 10, color: ink } })),
        ...vertical.filter(([, { title }]) => title).map(([, given]) => above(given, rest.margin.l)),
        ...annotations
          .filter((one) => !isGone(one.name, figure.data))
          .map((one) => ({ ...labelled(one, figure.data), font: { size: 12, color: resolve("var(--ink)") } })),
      ],
      font: { family, size: 12, color: ink },
      shapes: coloured(shapes),
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      showlegend: false,
      hovermode: "closest",
      hoverdistance: 24,
      hoverlabel: {
        bgcolor: resolve("var(--raised)"),
        bordercolor: resolve("var(--line-strong)"),
        font: { color: resolve("var(--ink)"), size: 12 },
      },
      dragmode: false,
    };
  };
  /* A panel of dots has rows, counted from the lowest. Hidden locks have none. */
  const withoutEmptyRows = (figure, room) => {
    const { meta, margin, yaxis, annotations = [] } = figure.layout;
    if (!meta?.row) return figure;
    const seen = figure.data.filter((trace) => !isHidden(trace));
    const shown = seen.map(({ y }) => y[0]).sort((a, b) => a - b);
    const row = (before) => shown.indexOf(before) + 1;
    const rows = {
      range: [0.4, shown.length + 0.6],
      tickvals: yaxis.tickvals.map(row).filter(Boolean),
      ticktext: (yaxis.ticktext ?? []).filter((_, n) => row(yaxis.tickvals[n])),
    };
    const moved = annotations.map((one) => ({ ...one, y: row(one.y) }));
    room.style.height = `${margin.t + margin.b + meta.row * Math.max(shown.length, 1)}px`;
    return {
      data: figure.data.map((trace) => ({ ...trace, y: trace.y.map(row) })),
      layout: { ...figure.layout, yaxis: { ...yaxis, ...rows }, annotations: moved },
    };
  };
  /* ---- the filter: `ids` of a trace has the cell of each of its points, or one for all of them ---- */
  const isHidden = ({ meta, ids }) => hiddenSeries.has(meta) || (ids?.length > 0 && !ids.some(pybench.isShown));
  /* The name at the end of a line stands beside its last point. */
  const isGone = (name, data) => {
    const ids = data.find((trace) => trace.ids && trace.meta === name)?.ids;
    return hiddenSeries.has(name) || (ids && !pybench.isShown(ids.at(-1)));
  };
  const filtered = ({ ids, ...trace }) =>
    ids?.length > 1 ? { ...trace, y: trace.y.map((y, n) => (pybench.isShown(ids[n]) ? y : null)) } : trace;
  /* The points that are left of a line are joined anew, with dots beside an unsafe one. */
  const rejoined = (line, { x, y, ids, customdata }) => {
    const left = [...ids.keys()].filter((n) => pybench.isShown(ids[n]));
    const isDotted = ([a, b]) => [a, b].some((n) => customdata[n].includes("UNSAFE"));
    const pairs = left.slice(1).map((after, n) => [left[n], after]);
    const plain = line.line.dash === "dot" ? { ...line.line, dash: "solid", width: 2 } : line.line;
    return [plain, { ...plain, dash: "dot", width: 1.5 }].map((style, dotted) => {
      const own = pairs.filter((pair) => isDotted(pair) === Boolean(dotted));
      const along = (values) => own.flatMap(([a, b]) => [values[a], values[b], null]);
      return { ...line, line: style, x: along(x), y: along(y) };
    });
  };
  const joined = (data) => {
    if (!pybench.isFiltered()) return data;
    const isJoin = ({ mode, ids }) => mode === "lines" && !ids;
    return data.flatMap((line) => {
      const points = data.find((one) => one.ids && one.meta === line.meta);
      if (!isJoin(line) || !points) return line;
      return data.find((one) => isJoin(one) && one.meta === line.meta) === line ? rejoined(line, points) : [];
    });
  };
  const dataOf = (figure) =>
    coloured(joined(figure.data)).map((trace) => ({ ...filtered(trace), visible: !isHidden(trace) }));
  const draw = (id) => {
    const room = document.getElementById(id);
    if (!room.clientWidth) return stale.add(id);
    const isFirst = !widths.has(id);
    stale.delete(id);
    widths.set(id, room.clientWidth);
    const figure = withoutEmptyRows(figures[id], room);
    Plotly.react(room, dataOf(figure), layoutOf(figure, room), { displayModeBar: false });
    if (!isFirst) return;
    room.on("plotly_hover", ({ points }) => stress([room], points[0].data.meta));
    room.on("plotly_unhover", () => stress([room]));
  };
  /* Among many lines the one that is pointed at stands out. Without a label all lines get their own opacity back. */
  const FAINT = 0.15;
  const stress = (rooms, label) =>
    rooms.filter(({ id }) => widths.has(id)).forEach((room) => {
      const given = joined(figures[room.id].data).map(({ meta, opacity = 1 }) =>
        label === undefined || meta === undefined ? opacity : meta === label ? Math.max(opacity, 0.8) : FAINT * opacity,
      );
      Plotly.restyle(room, { opacity: given });
    });

  /* Charts near the window are drawn at once. The others are drawn one by one, with pauses in which the page answers
     its reader, so that a picture of the whole page has them too. (Chromium withholds idle callbacks for seconds after a
     scroll, so pauses are timeouts.) A chart that is folded up has no width yet. Of very many charts the later ones wait
     until they are near. */
  const PAUSE_MS = 25;
  const DRAWN_AHEAD = 80;
  let waiting = false;
  const drawNext = () => {
    waiting = false;
    const ahead = widths.size < DRAWN_AHEAD ? [...stale] : [...stale].filter((id) => widths.has(id));
    const next = ahead.find((id) => document.getElementById(id).clientWidth);
    if (next) draw(next);
    if (next) drawLater();
  };
  const drawLater = () => {
    if (!waiting) setTimeout(drawNext, PAUSE_MS);
    waiting = true;
  };
  const redraw = () => {
    widths.forEach((_, id) => stale.add(id));
    near.forEach(draw);
    drawLater();
  };
  const watcher = new IntersectionObserver(
    (entries) =>
      entries.forEach(({ target: { id }, isIntersecting }) => {
        near[isIntersecting ? "add" : "delete"](id);
        if (isIntersecting && stale.has(id)) draw(id);
      }),
    { rootMargin: "800px" },
  );
  const resized = new ResizeObserver((entries) => {
    if (document.documentElement.classList.contains("print")) return;
    entries.forEach(({ target: { id, clientWidth } }) => {
      if (!clientWidth || !widths.has(id) || widths.get(id) === clientWidth) return;
      stale.add(id);
      if (near.has(id)) draw(id);
      else drawLater();
    });
  });
  Object.keys(figures).forEach((id) => {
    watcher.observe(document.getElementById(id));
    resized.observe(document.getElementById(id));
  });
  if (document.readyState === "complete") drawLater();
  addEventListener("load", drawLater);
  addEventListener("pybench-theme", redraw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);

  /* Paper is light: before printing all charts are drawn for it, and folded ones are opened. The width of paper is
     known too late for drawing, so a chart that is too wide for it is made smaller. */
  let folded = [];
  const drawings = () => $$(".plot .main-svg");
  addEventListener("beforeprint", () => {
    folded = $$("details.more:not([open]), details.violations:not([open])");
    folded.forEach((one) => (one.open = true));
    document.documentElement.classList.add("print");
    Object.keys(figures).forEach(draw);
    drawings().forEach((one) => {
      one.setAttribute("viewBox", `0 0 ${one.getAttribute("width")} ${one.getAttribute("height")}`);
      one.setAttribute("preserveAspectRatio", "xMinYMin meet");
    });
  });
  addEventListener("afterprint", () => {
    folded.forEach((one) => (one.open = false));
    document.documentElement.classList.remove("print");
    drawings().forEach((one) => one.removeAttribute("viewBox"));
    redraw();
  });

  /* ---- legend: one choice for all charts ---- */
  const chips = $$(".chip[data-series]");
  const showSeries = () => {
    chips.forEach((one) => one.setAttribute("aria-pressed", !hiddenSeries.has(one.dataset.series)));
    redraw();
  };
  chips.forEach((chip) => {
    const label = chip.dataset.series;
    chip.addEventListener("click", () => {
      if (!hiddenSeries.delete(label)) hiddenSeries.add(label);
      showSeries();
    });
    const drawn = () => [...near].map((id) => document.getElementById(id));
    const point = () => hiddenSeries.has(label) || stress(drawn(), label);
    ["mouseenter", "focus"].forEach((name) => chip.addEventListener(name, point));
    ["mouseleave", "blur"].forEach((name) => chip.addEventListener(name, () => stress(drawn())));
  });
  $$(".chip.every").forEach((button) =>
    button.addEventListener("click", () => {
      hiddenSeries.clear();
      showSeries();
    }),
  );

  /* ---- panels: those with cells of the filter, the first of them in sight and the others folded up ---- */
  const charts = $$(".panels .chart").map((chart) => {
    const room = $(".plot", chart);
    const cells = room ? figures[room.id].data.flatMap(({ ids }) => ids ?? []) : (chart.dataset.cell?.split(" ") ?? []);
    return { chart, room, cells, alt: room?.ariaLabel, title: $("figcaption", chart)?.textContent ?? "Chart" };
  });
  const foldings = $$("details.more:has(> .panels)").map((fold) => {
    const [inSight, rest] = [fold.previousElementSibling, $(".panels", fold)];
    return { fold, inSight, rest, room: inSight.children.length, all: [...inSight.children, ...rest.children] };
  });
  const showPanels = () => {
    charts.forEach(({ chart, room, cells, alt, title }) => {
      const isWhole = cells.every(pybench.isShown);
      chart.hidden = pybench.isFiltered() && !cells.some(pybench.isShown);
      if (room) room.ariaLabel = isWhole ? alt : `${title}, of the chosen cells. The table has their figures.`;
    });
    foldings.forEach(({ fold, inSight, rest, room, all }) => {
      const left = all.filter((chart) => !chart.hidden);
      inSight.append(...left.slice(0, room));
      rest.append(...left.slice(room), ...all.filter((chart) => chart.hidden));
      const further = left.length - room;
      fold.hidden = further <= 0;
      $("summary", fold).textContent = `${further} further chart${further === 1 ? "" : "s"}`;
    });
  };
  /* Few lines need no choice of the leading ones. */
  const FEW_LINES = 8;
  const leftOut = [...hiddenSeries];
  const follow = () => {
    const left = new Set(chips.filter((chip) => !chip.hidden).map((chip) => chip.dataset.series));
    const isFew = pybench.isFiltered() && left.size <= FEW_LINES;
    if (isFew) leftOut.filter((one) => left.has(one)).forEach((one) => hiddenSeries.delete(one));
    $$(".chip.every, .picked").forEach((one) => (one.hidden = isFew));
    showPanels();
    showSeries();
  };
  addEventListener("pybench-cells", follow);
  if (pybench.isFiltered()) follow();
})();
