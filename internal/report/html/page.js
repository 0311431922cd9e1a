"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  for (const tools of all(".tools")) tools.hidden = false;

  // Decision tables: each head becomes a button that sorts, the empty last.
  const value = (row, column, numeric) => {
    const v = row.cells[column].dataset.v;
    if (v === "") return null;
    return numeric ? Number(v) : v.toLowerCase();
  };
  const sort = (table, column) => {
    const heads = [...table.tHead.rows[0].cells];
    const head = heads[column];
    const numeric = head.dataset.key === "number";
    const direction = head.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
    for (const h of heads) h.setAttribute("aria-sort", h === head ? direction : "none");
    const sign = direction === "ascending" ? 1 : -1;
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row, i) => ({ row, i, v: value(row, column, numeric) }));
    rows.sort((a, b) => {
      if (a.v === null || b.v === null) return (a.v === null) - (b.v === null) || a.i - b.i;
      return sign * (a.v < b.v ? -1 : a.v > b.v ? 1 : 0) || a.i - b.i;
    });
    body.append(...rows.map((r) => r.row));
  };
  const tables = all("table.decision");
  for (const table of tables) {
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      head.replaceChildren(button);
      button.addEventListener("click", () => sort(table, column));
    });
  }

  // Where the table is narrow, a list of the columns sorts too.
  const choice = document.getElementById("sort");
  if (choice && tables.length > 0) {
    [...tables[0].tHead.rows[0].cells].forEach((head, column) => choice.add(new Option(head.textContent, column, column === 1, column === 1)));
    choice.addEventListener("change", () => {
      for (const table of tables) {
        const title = choice.selectedOptions[0].textContent;
        const heads = [...table.tHead.rows[0].cells];
        const column = heads.findIndex((h) => h.textContent === title);
        if (column < 0) continue;
        heads[column].setAttribute("aria-sort", "none");
        sort(table, column);
      }
    });
  }

  // The filter shows rows of the chosen groups that hold every word.
  const input = document.getElementById("filter");
  const boxes = all(".tools input[type=checkbox]");
  const filter = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const groups = new Set(boxes.filter((b) => b.checked).map((b) => b.value));
    let shown = 0, total = 0;
    for (const table of tables) {
      for (const row of table.tBodies[0].rows) {
        const text = row.cells[0].textContent.toLowerCase();
        row.hidden = !groups.has(row.dataset.group) || !words.every((w) => text.includes(w));
        total++;
        if (!row.hidden) shown++;
      }
    }
    document.getElementById("shown").textContent = shown + " of " + total + " rows";
  };
  if (input) {
    input.form.addEventListener("submit", (e) => e.preventDefault());
    input.addEventListener("input", filter);
    for (const b of boxes) b.addEventListener("change", filter);
    filter();
  }

  // A schedule goes step by step: the chart is cut off below the step, and the table marks it.
  for (const schedule of all(".schedule")) {
    const stepper = schedule.querySelector(".stepper");
    const chart = schedule.querySelector(".sequence");
    if (!stepper || !chart) continue;
    const ends = chart.dataset.steps.trim().split(/\s+/).map(Number);
    const rows = all(".steps tbody tr", schedule);
    const output = stepper.querySelector("output");
    const last = ends.length;
    let at = 0; // 0 shows all steps
    const show = () => {
      const svg = chart.querySelector("svg");
      svg.style.clipPath = at === 0 ? "" : `inset(0 0 ${100 * (1 - ends[at - 1])}% 0)`;
      rows.forEach((row, i) => {
        row.hidden = at > 0 && i >= at;
        row.classList.toggle("now", at > 0 && i === at - 1);
      });
      output.textContent = at === 0 ? "all steps" : `step ${at} of ${last}`;
    };
    const go = {
      first: () => { at = 1; },
      back: () => { at = at === 0 ? last : Math.max(1, at - 1); },
      on: () => { at = at === last ? 0 : at + 1; },
      all: () => { at = 0; },
    };
    const move = (to) => { go[to](); show(); };
    for (const button of all("button", stepper)) button.addEventListener("click", () => move(button.dataset.to));
    const keys = { ArrowLeft: "back", ArrowRight: "on", Home: "first", End: "all", Escape: "all" };
    schedule.addEventListener("keydown", (e) => {
      if (!keys[e.key] || e.ctrlKey || e.metaKey || e.altKey) return;
      e.preventDefault();
      move(keys[e.key]);
    });
    addEventListener("beforeprint", () => move("all"));
    stepper.hidden = false;
  }

  // Panels: a link to one opens it, and so does printing.
  const panels = all("details.panel");
  const reveal = () => {
    let target = null;
    try { target = document.getElementById(decodeURIComponent(location.hash.slice(1))); } catch { return; }
    if (!target) return;
    for (let d = target.closest("details"); d; d = d.parentElement.closest("details")) d.open = true;
    target.scrollIntoView();
  };
  addEventListener("hashchange", reveal);
  document.addEventListener("click", (e) => {
    const link = e.target.closest('a[href^="#"]');
    if (link && link.getAttribute("href") === location.hash) reveal(); // which changes no hash
  });
  reveal();
  const openAll = (open) => { for (const p of panels) p.open = open; };
  document.getElementById("open")?.addEventListener("click", () => openAll(true));
  document.getElementById("close")?.addEventListener("click", () => openAll(false));
  let before = [];
  addEventListener("beforeprint", () => { before = panels.map((p) => p.open); openAll(true); });
  addEventListener("afterprint", () => panels.forEach((p, i) => { p.open = before[i]; }));
})();
