/* The filter: one choice of cells for all charts and tables, kept in the fragment of the address behind a question
   mark, "#latency?lock=mutex&concurrency=16". An element with data-cell follows it here, charts follow in charts.js. */
(() => {
  "use strict";
  const $ = (selector, root = document) => root.querySelector(selector);
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
  /* ---- data of the page: short ones are there at once, long ones come packed ---- */
  /* No section has an id that begins so. */
  const script = (name) => document.getElementById(`data-${name}`);
  const isPacked = (name) => script(name)?.type === "application/gzip";
  const plain = (name) => JSON.parse(script(name)?.textContent ?? "{}");
  const unpacked = (name) => {
    const bytes = Uint8Array.from(atob(script(name).textContent), (one) => one.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
  };
  const { facets = [], words = [], cells = [] } = plain("cells");
  const plainly = (text) => ` ${text.toLowerCase().replace(/(\d),(?=\d)/g, "$1")}`;
  const texts = cells.map((codes) => plainly(codes.map((code, facet) => words[facet][code]).join(" ")));
  /* Nouns that are counted: "64 clients" means these two words together, and neither 64 keys nor 164 clients. */
  const nouns = new Set(words.flat().map((text) => plainly(text).match(/^ \d+ ([a-z]+)/)?.[1]).filter(Boolean));
  /* The chosen values of each facet. Where none is chosen, all are in. */
  const chosen = new Map(facets.map(({ key }) => [key, new Set()]));
  const find = $("#filter-find");
  const wanted = () => {
    const pieces = plainly(find.value).split(/\s+/).filter(Boolean);
    const isCounted = (n) => /^\d+$/.test(pieces[n]) && nouns.has(pieces[n + 1]);
    return pieces.flatMap((one, n) => (isCounted(n) ? ` ${one} ${pieces[n + 1]}` : isCounted(n - 1) ? [] : one));
  };
  let shown = null;
  const isShown = (cell) => !shown || shown.has(Number(cell));
  const follows = (element) => element.dataset.cell.split(" ").some(isShown);
  /* A row or a column of a heat map goes when none of its boxes is left. A box keeps its place beside others. */
  const showBoxes = (table) => {
    const isLeft = (box) => box.dataset.cell !== undefined && follows(box);
    const rows = [...table.tBodies[0].rows];
    rows.forEach((row) => {
      const boxes = [...row.cells].slice(1);
      boxes.forEach((box) => box.classList.toggle("out", box.dataset.cell !== undefined && !follows(box)));
      row.hidden = shown && !boxes.some(isLeft);
    });
    [...table.tHead.rows[0].cells].slice(1).forEach((head, n) => {
      const column = rows.map((row) => row.cells[n + 1]);
      [head, ...column].forEach((one) => (one.hidden = shown && !column.some(isLeft)));
    });
  };
  const within = (root) => {
    $$("[data-cell]:not(.heat td)", root).forEach((one) => (one.hidden = !follows(one)));
    $$("table.heat", root).forEach(showBoxes);
  };

  /* ---- the address ---- */
  const anchor = () => location.hash.slice(1).split("?")[0];
  const query = () => {
    const pairs = facets.flatMap(({ key }) => [...chosen.get(key)].map((value) => [key, value]));
    if (find.value.trim()) pairs.push(["find", find.value.trim()]);
    return new URLSearchParams(pairs).toString();
  };
  const write = () => {
    const text = query();
    const hash = anchor() || text ? `#${anchor()}${text && `?${text}`}` : "";
    if (hash !== location.hash) history.replaceState(null, "", hash || location.pathname + location.search);
  };
  const read = () => {
    const [, text] = location.hash.split(/\?(.*)/s);
    if (text === undefined) return false;
    const given = new URLSearchParams(text);
    facets.forEach(({ key, values }) => chosen.set(key, new Set(given.getAll(key).filter((one) => values.includes(one)))));
    find.value = given.get("find") ?? "";
    return true;
  };

  /* ---- applying it ---- */
  const passing = () => {
    const looked = wanted();
    const sets = facets.map(({ key, values }) => {
      const set = chosen.get(key);
      return set.size ? values.map((value) => set.has(value)) : null;
    });
    return cells
      .map((codes, cell) => cell)
      .filter((cell) => sets.every((set, n) => !set || set[cells[cell][n]]) && looked.every((one) => texts[cell].includes(one)));
  };
  const apply = () => {
    const left = passing();
    const isFiltered = left.length < cells.length;
    shown = isFiltered ? new Set(left) : null;
    const count = isFiltered ? `${left.length.toLocaleString("en")} of ${cells.length.toLocaleString("en")} cells` : "";
    $("#filter-count").textContent = count;
    $(".filtered b").textContent = count;
    $(".filtered").hidden = $("#filter-note").hidden = !isFiltered;
    $$(".filter-reset").forEach((one) => (one.hidden = !query()));
    $$(".pick").forEach((one) =>
      one.setAttribute("aria-pressed", chosen.get(one.dataset.facet).has(one.dataset.value)),
    );
    within(document);
    dispatchEvent(new Event("pybench-cells"));
  };
  const change = () => {
    apply();
    write();
  };
  const reset = () => {
    chosen.forEach((set) => set.clear());
    find.value = "";
    change();
  };
  window.pybench = { isPacked, plain, unpacked, anchor, isShown, within, reset, isFiltered: () => shown !== null };
  if (!cells.length) return;
  const choose = $("#filter-choose");
  const unfold = (to) => {
    choose?.setAttribute("aria-expanded", to);
    $("#filter-facets").hidden = !to;
  };
  choose?.addEventListener("click", () => unfold(choose.getAttribute("aria-expanded") !== "true"));
  $$(".pick").forEach((chip) =>
    chip.addEventListener("click", () => {
      const { facet, value } = chip.dataset;
      if (!chosen.get(facet).delete(value)) chosen.get(facet).add(value);
      change();
    }),
  );
  find.addEventListener("input", change);
  $$(".filter-reset").forEach((one) =>
    one.addEventListener("click", () => {
      reset();
      find.focus();
    }),
  );
  addEventListener("hashchange", () => (read() ? apply() : write()));
  if (read()) {
    unfold([...chosen.values()].some((set) => set.size));
    addEventListener("DOMContentLoaded", apply);
  }
})();
