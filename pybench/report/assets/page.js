/* The page's behaviour: theme, sorting and filtering, links to cells, copying. The page shows the same figures without
   it. charts.js draws the charts. */
(() => {
  "use strict";
  const $ = (selector, root = document) => root.querySelector(selector);
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
  /* ---- theme ---- */
  const setTheme = (choice) => {
    if (choice === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = choice;
    try {
      if (choice === "auto") localStorage.removeItem("pybench-theme");
      else localStorage.setItem("pybench-theme", choice);
    } catch { /* Not kept: see boot.js. */ }
    showTheme();
    dispatchEvent(new Event("pybench-theme"));
  };
  const showTheme = () => {
    const now = document.documentElement.dataset.theme ?? "auto";
    $$("[data-theme-choice]").forEach((one) => one.setAttribute("aria-pressed", one.dataset.themeChoice === now));
  };
  $$("[data-theme-choice]").forEach((one) => one.addEventListener("click", () => setTheme(one.dataset.themeChoice)));
  showTheme();

  /* ---- tables: sort. In the ranking a cell is a body of two rows and sorts within its load, elsewhere it is a row ---- */
  const table = $("#ranking-table");
  const bodies = () => (table ? [...table.tBodies].filter((body) => !body.classList.contains("load")) : []);
  const loads = () => (table ? $$("tbody.load", table) : []);
  const keyOf = (row, column, kind) => {
    const cell = row.cells[column];
    const text = cell.dataset.sort ?? cell.textContent;
    return kind === "number" ? (text === "" ? null : Number(text)) : text;
  };
  const compare = (a, b) => {
    if (a === null || b === null) return a === b ? 0 : a === null ? 1 : -1;
    return typeof a === "number" ? a - b : a.localeCompare(b, undefined, { numeric: true });
  };
  const sortBy = (sorted, header) => {
    const column = header.cellIndex;
    const before = header.getAttribute("aria-sort");
    /* Of figures where more is better, the first click shows the highest. */
    const highest = ["safe grants/s", "grants/s", "Jain's index"].includes(header.textContent);
    const first = highest ? "descending" : "ascending";
    const order = !before ? first : before === "ascending" ? "descending" : "ascending";
    $$("th[aria-sort]", sorted).forEach((one) => one.removeAttribute("aria-sort"));
    header.setAttribute("aria-sort", order);
    const sign = order === "ascending" ? 1 : -1;
    if (sorted === table) complete();
    const moved = sorted === table ? bodies() : [...sorted.tBodies[0].rows];
    const keyed = moved.map((one) => [keyOf(one.rows?.[0] ?? one, column, header.dataset.kind), one]);
    keyed.sort(([a], [b]) => (a === null || b === null ? compare(a, b) : sign * compare(a, b)));
    if (sorted !== table) return keyed.forEach(([, one]) => one.parentElement.append(one));
    const heads = loads();
    const place = (load) => {
      heads.filter((head) => head.dataset.load === load).forEach((head) => table.append(head));
      keyed.filter(([, one]) => one.dataset.load === load).forEach(([, one]) => table.append(one));
    };
    new Set(bodies().map((body) => body.dataset.load)).forEach(place);
    limit();
  };

  /* ---- ranking: the first rows in sight, open ---- */
  const folded = pybench.isPacked("folded") ? pybench.unpacked("folded") : pybench.plain("folded");
  const all = $("#ranking-all");
  let unlimited = false;
  /* Of a large run the table has its first rows only, until more are asked for. */
  const complete = () => {
    const rest = $("#ranking-rest");
    if (!rest) return;
    const further = document.createElement("template");
    further.innerHTML = rest.textContent;
    giveRoles(further.content);
    table.append(...$$("tbody", further.content));
    rest.remove();
  };
  const limit = () => {
    if (!table) return;
    if (unlimited || pybench.isFiltered()) complete();
    const room = unlimited ? Infinity : Number(table.dataset.shown);
    let found = 0;
    for (const body of bodies()) body.hidden = !pybench.isShown(body.dataset.cell) || ++found > room;
    const open = new Set(bodies().filter((body) => !body.hidden).map((body) => body.dataset.load));
    loads().forEach((head) => (head.hidden = !open.has(head.dataset.load)));
    if ($("#ranking-rest")) found = Number(table.dataset.cells);
    all.textContent = `Show all ${found.toLocaleString("en")} cells`;
    all.hidden = found <= room;
  };
  const open = (body, to) => {
    const button = $("button.open", body);
    button.setAttribute("aria-expanded", to);
    const details = $(".details", body);
    const fill = (texts) => {
      details.cells[0].innerHTML = texts[details.id];
      dress(details);
    };
    if (!details.cells[0].firstChild) folded instanceof Promise ? folded.then(fill) : fill(folded);
    details.hidden = !to;
  };
  if (table) {
    table.addEventListener("click", (event) => {
      const body = event.target.closest("#ranking-table > tbody:not(.load)");
      if (!body?.rows[0].contains(event.target) || event.target.closest("a, .copy") || String(getSelection())) return;
      open(body, $("button.open", body).getAttribute("aria-expanded") !== "true");
    });
    addEventListener("pybench-cells", limit);
    all.addEventListener("click", () => {
      unlimited = true;
      limit();
    });
    limit();
  }

  /* ---- tables: what each needs. A table that is folded up is text until it is opened ---- */
  /* On a narrow window rows become cards by CSS, which would take a table its meaning: roles keep it. */
  const ROLES = { TABLE: "table", THEAD: "rowgroup", TBODY: "rowgroup", TR: "row", TD: "cell" };
  const giveRoles = (root) =>
    $$(".scroll table, .scroll table *, tbody, tbody *", root).forEach((one) => {
      const isColumn = one.scope === "col";
      const role = one.tagName === "TH" ? (isColumn ? "columnheader" : "rowheader") : ROLES[one.tagName];
      if (role) one.setAttribute("role", role);
    });
  /* A shade marks the edge beyond which a table goes on that is wider than its room. */
  const mark = (box) => {
    const beyond = box.scrollWidth - box.clientWidth - box.scrollLeft;
    box.parentElement.classList.toggle("more-right", beyond > 1);
    box.parentElement.classList.toggle("more-left", box.scrollLeft > 1);
  };
  const sized = new ResizeObserver((entries) => entries.forEach(({ target }) => mark(target.closest(".scroll"))));
  const giveFrame = (box) => {
    const frame = document.createElement("div");
    frame.className = "frame";
    box.replaceWith(frame);
    frame.append(box);
    box.addEventListener("scroll", () => mark(box), { passive: true });
    /* A filter or an opened row changes the width of the table; the window changes its room. */
    [box, ...box.children].forEach((one) => sized.observe(one));
  };
  const dress = (root) => {
    giveRoles(root);
    $$("table.sortable", root).forEach((sorted) =>
      $$("th[data-kind]", sorted).forEach((header) =>
        $("button", header).addEventListener("click", () => sortBy(sorted, header)),
      ),
    );
    $$(".scroll", root).forEach(giveFrame);
    $$(".copy", root).forEach(giveCopy);
  };
  /* The cards of a narrow window have the headings of the columns beside their figures. */
  const label = (table) => {
    const titles = [...table.tHead.rows[0].cells].map((one) => one.dataset.title ?? one.textContent);
    [...table.tBodies[0].rows].forEach((row) => [...row.cells].forEach((one, n) => n && (one.dataset.label = titles[n])));
  };
  const unfold = async (details) => {
    const text = $(":scope > noscript", details);
    if (!text) return;
    text.outerHTML = details.id ? (await folded)[details.id] : text.textContent;
    $$("table.sortable", details).forEach(label);
    dress(details);
    pybench.within(details);
  };

  /* ---- links to cells and violations ---- */
  const follow = (behavior) => {
    const id = decodeURIComponent(pybench.anchor());
    if (!document.getElementById(id) && id.startsWith("cell-") && table) {
      complete();
      limit();
    }
    const target = document.getElementById(id);
    if (!target) return;
    if (target.dataset.cell && !pybench.isShown(target.dataset.cell)) pybench.reset();
    if (target.matches("#ranking-table > tbody")) {
      if (target.hidden) {
        unlimited = true;
        limit();
      }
      $$("tbody.linked").forEach((one) => one.classList.remove("linked"));
      target.classList.add("linked");
      open(target, true);
      target.scrollIntoView({ block: "center", behavior });
      $("button.open", target).focus({ preventScroll: true });
    }
    if (target.matches("details")) {
      target.open = true;
      $("summary", target).focus({ preventScroll: true });
    }
    /* The browser itself finds no target that a filter follows. */
    if (location.hash.includes("?") && !target.matches("tbody")) target.scrollIntoView({ behavior });
  };
  addEventListener("hashchange", () => follow("auto"));
  /* After the browser's own jump to the target, which takes the focus away. */
  addEventListener("load", () => setTimeout(() => follow("instant")));

  /* ---- where the reader is ---- */
  const links = new Map($$("nav.side a").map((link) => [link.hash.slice(1), link]));
  const sections = $$("main > section");
  const inView = new Set();
  const spy = new IntersectionObserver(
    (entries) => {
      entries.forEach(({ target, isIntersecting }) => inView[isIntersecting ? "add" : "delete"](target));
      const first = sections.find((section) => inView.has(section));
      links.forEach((link, id) =>
        first?.id === id ? link.setAttribute("aria-current", "location") : link.removeAttribute("aria-current"),
      );
    },
    { rootMargin: "-20% 0px -60% 0px" },
  );
  sections.forEach((section) => spy.observe(section));

  /* ---- copy ---- */
  const giveCopy = (button) => {
    const name = button.textContent;
    const link = button.dataset.link;
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(link ? location.href.split("#")[0] + link : button.dataset.copy);
        button.textContent = "Copied";
      } catch {
        /* Where the browser denies the clipboard, the reader copies the selected command or the page's address. */
        if (link) location.hash = link;
        else getSelection().selectAllChildren($("code", button.parentElement));
        button.textContent = link ? "See the address bar" : "Selected";
      }
      setTimeout(() => (button.textContent = name), 2000);
    });
  };
  dress(document);
  $$("details:has(> noscript)").forEach((one) => one.addEventListener("toggle", () => unfold(one)));
})();
