// The network of a report: a slider that fades edges, numbers of what is pointed at, and tables that can be sorted.
// Whatever a user named enters the page as text (textContent), never as markup.
"use strict";
(() => {
  const live = document.querySelector("figure.live");
  if (!live) return;
  const svg = live.querySelector("svg"), slider = live.querySelector("input"), told = live.querySelector(".told");
  const edges = [...svg.querySelectorAll(".edge")], nodes = [...svg.querySelectorAll(".node")];
  const table = document.querySelector(".sortable table");
  const rows = [...table.tBodies[0].rows]; // in the order of the edges, until they are sorted

  function cut() {
    let left = 0;
    edges.forEach((edge, i) => {
      const faded = Number(edge.dataset.chance) < slider.value / 100;
      edge.classList.toggle("faded", faded);
      edge.tabIndex = faded ? -1 : 0;
      if (rows[i]) rows[i].classList.toggle("faded", faded);
      left += faded ? 0 : 1;
    });
    live.querySelector("output").textContent = `${slider.value} %: ${left} of ${edges.length} edges`;
  }

  function show(thing) {
    const name = document.createElement("strong"), list = document.createElement("dl");
    name.textContent = thing.dataset.name;
    for (const fact of thing.dataset.told.split("; ")) {
      const [what, value] = fact.split(": "), pair = document.createElement("div");
      const term = document.createElement("dt"), text = document.createElement("dd");
      term.textContent = what;
      text.textContent = value;
      pair.append(term, text);
      list.append(pair);
    }
    told.replaceChildren(name, list);
    const own = thing.dataset.ends.split(" ");
    const isNode = thing.classList.contains("node");
    for (const edge of edges) {
      edge.classList.toggle("lit", edge === thing || (isNode && edge.dataset.ends.split(" ").includes(own[0])));
    }
    for (const node of nodes) node.classList.toggle("lit", own.includes(node.dataset.ends));
    svg.classList.add("pointing");
  }

  function unlight() {
    for (const thing of [svg, ...edges, ...nodes]) thing.classList.remove("lit", "pointing");
  }

  for (const kind of ["pointerover", "focusin", "click"]) {
    svg.addEventListener(kind, (event) => {
      const thing = event.target.closest("[data-told]");
      if (thing) show(thing);
    });
  }
  svg.addEventListener("pointerleave", unlight);
  svg.addEventListener("focusout", unlight);
  slider.addEventListener("input", cut);

  const NUMBER = /^[[<>]?\s*([+-]?\d[\d.]*(?:e[+-]?\d+)?)/;
  const words = new Intl.Collator(undefined, { numeric: true });

  function sort(head, column) {
    const up = head.getAttribute("aria-sort");
    const texts = new Map(rows.map((row) => [row, row.cells[column].textContent.trim()]));
    const numbers = new Map(rows.map((row) => [row, NUMBER.exec(texts.get(row))]));
    const numeric = column > 0 && rows.some((row) => numbers.get(row));
    const value = (row) => (numbers.get(row) ? Number(numbers.get(row)[1]) : NaN);
    const way = up === "none" ? (numeric ? -1 : 1) : up === "ascending" ? -1 : 1;
    const order = [...table.tBodies[0].rows].sort((a, b) => {
      if (!numeric) return way * words.compare(texts.get(a), texts.get(b));
      const [x, y] = [value(a), value(b)];
      return Number.isNaN(x) || Number.isNaN(y) ? Number.isNaN(x) - Number.isNaN(y) : way * (x - y);
    });
    table.tBodies[0].append(...order);
    for (const other of table.tHead.rows[0].cells) other.setAttribute("aria-sort", "none");
    head.setAttribute("aria-sort", way > 0 ? "ascending" : "descending");
  }

  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    button.addEventListener("click", () => sort(head, column));
    head.append(button);
    head.setAttribute("aria-sort", "none");
  });

  const still = document.querySelector("details.still"); // the same on paper
  still.open = false;
  addEventListener("beforeprint", () => (still.open = true));
  live.hidden = false;
  cut();
})();
