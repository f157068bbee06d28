"use strict";
(() => {
  const root = document.documentElement;
  root.classList.add("js");
  const find = (selector, from = document) => from.querySelector(selector);
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];

  // theme: as the system has it, or as chosen; kept where the browser keeps anything
  const theme = find("#theme");
  // a browser may refuse to keep anything for a file: then the choice lasts as long as the page is open
  const keep = (value) => { try { localStorage.setItem("rltune-theme", value); } catch { return; } };
  const paint = (value) => { if (value) root.dataset.theme = value; else delete root.dataset.theme; };
  theme.value = root.dataset.theme ?? "";
  theme.addEventListener("change", () => { paint(theme.value); keep(theme.value); });
  find(".tools").hidden = false;

  // contents: open next to the text, closed above it
  const contents = find(".contents details");
  const wide = window.matchMedia("(min-width: 68rem)");
  const fit = () => { contents.open = wide.matches; };
  fit();
  wide.addEventListener("change", fit);
  find("summary", contents).addEventListener("click", (e) => { if (wide.matches) e.preventDefault(); });
  contents.addEventListener("click", (e) => { if (e.target.closest("a") && !wide.matches) contents.open = false; });

  // what a link leads to may be folded
  const unfold = (e) => { for (let box = e?.closest("details"); box; box = box.parentElement.closest("details")) box.open = true; };
  const reveal = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target?.closest("main details:not([open])")) return;
    unfold(target);
    target.scrollIntoView({ behavior: "instant" });
  };
  addEventListener("hashchange", reveal);
  reveal();
  let folded = []; // on paper all is open
  addEventListener("beforeprint", () => {
    folded = all("main details:not([open])");
    for (const box of folded) box.open = true;
  });
  addEventListener("afterprint", () => { for (const box of folded) box.open = false; });

  // contents: mark what is being read, and open its chapter
  const links = new Map(all("a", contents).map((a) => [a.getAttribute("href").slice(1), a]));
  const watch = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      for (const a of links.values()) a.removeAttribute("aria-current");
      const link = links.get(entry.target.id);
      link.setAttribute("aria-current", "true");
      for (const li of all("li.open", contents)) li.classList.remove("open");
      link.closest(".contents > details > ol > li").classList.add("open");
      if (wide.matches && !contents.contains(document.activeElement)) {
        const nav = contents.parentElement, box = link.getBoundingClientRect(), view = nav.getBoundingClientRect();
        if (box.top < view.top || box.bottom > view.bottom) nav.scrollTop += box.top - view.top - view.height / 3;
      }
    }
  }, { rootMargin: "-15% 0px -75% 0px" });
  for (const id of links.keys()) watch.observe(document.getElementById(id));

  // search: filters the contents, marks what it finds in the text, goes from match to match
  const field = find("#search"), found = find("#found"), main = find("main");
  const next = find("#next"), previous = find("#previous");
  const MOST = 2000;
  let marks = [], at = -1, timer = 0;
  const unmark = () => {
    for (const mark of marks) {
      const parent = mark.parentNode;
      if (!parent) continue;
      parent.replaceChild(document.createTextNode(mark.textContent), mark);
      parent.normalize();
    }
    marks = [];
    at = -1;
  };
  const texts = () => {
    const walker = document.createTreeWalker(main, NodeFilter.SHOW_TEXT, {
      acceptNode: (node) => (node.parentElement.closest("svg, script, style, mark")
        ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT),
    });
    const nodes = [];
    while (walker.nextNode()) nodes.push(walker.currentNode);
    return nodes;
  };
  const mark = (words) => {
    for (const node of texts()) {
      let rest = node, place = rest.data.toLowerCase().indexOf(words);
      while (place >= 0 && marks.length < MOST) {
        const hit = rest.splitText(place);
        rest = hit.splitText(words.length);
        const element = document.createElement("mark");
        hit.replaceWith(element);
        element.append(hit);
        marks.push(element);
        place = rest.data.toLowerCase().indexOf(words);
      }
    }
  };
  const filter = (words) => {
    for (const item of all("li", contents)) {
      const link = find("a", item), target = document.getElementById(link.getAttribute("href").slice(1));
      const there = link.textContent.toLowerCase().includes(words) || Boolean(target && find("mark", target));
      item.hidden = words !== "" && !there;
    }
    contents.classList.toggle("filtered", words !== "");
  };
  const say = () => {
    const n = marks.length;
    found.textContent = field.value.trim() === "" ? "" : n === 0 ? "nothing found"
      : `${at < 0 ? "" : `${at + 1} of `}${n}${n === MOST ? " or more" : ""} found`;
    next.hidden = previous.hidden = n === 0;
  };
  const search = () => {
    const words = field.value.trim().toLowerCase();
    unmark();
    if (words.length > 1) mark(words);
    filter(words.length > 1 ? words : "");
    say();
  };
  const go = (step) => {
    clearTimeout(timer);
    if (field.dataset.searched !== field.value) { field.dataset.searched = field.value; search(); }
    if (marks.length === 0) return;
    if (at >= 0) marks[at].classList.remove("here");
    at = at < 0 ? (step > 0 ? 0 : marks.length - 1) : (at + step + marks.length) % marks.length;
    const here = marks[at];
    here.classList.add("here");
    unfold(here);
    if (here.closest(".off")) here.closest("table").dispatchEvent(new Event("showall"));
    here.scrollIntoView({ block: "center", inline: "nearest", behavior: "instant" });
    say();
  };
  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => { field.dataset.searched = field.value; search(); }, 150);
  });
  field.addEventListener("keydown", (e) => {
    if (e.key === "Enter") { e.preventDefault(); go(e.shiftKey ? -1 : 1); }
    if (e.key === "Escape") { field.value = ""; field.dataset.searched = ""; search(); field.blur(); }
  });
  next.addEventListener("click", () => go(1));
  previous.addEventListener("click", () => go(-1));
  document.addEventListener("keydown", (e) => {
    if (e.key !== "/" || e.ctrlKey || e.metaKey || e.altKey) return;
    if (e.target.closest?.("input, select, textarea, dialog")) return;
    e.preventDefault();
    contents.open = true;
    field.focus();
    field.select();
  });

  // tables: sort by a heading
  const value = (row, i) => {
    const cell = row.cells[i];
    const raw = cell.dataset.value ?? find("data", cell)?.value ?? cell.textContent.trim();
    return { empty: raw === "", number: Number(raw), text: raw };
  };
  const compare = (a, b, sign) => {
    if (a.empty || b.empty) return a.empty - b.empty; // unknown values stay last
    const bothNumbers = !Number.isNaN(a.number) && !Number.isNaN(b.number);
    return sign * (bothNumbers ? a.number - b.number : a.text.localeCompare(b.text));
  };
  // the body column of each heading that sorts; a heading over a group has none
  const headings = (head) => {
    const [top, bottom] = head.rows;
    if (!bottom) return [...top.cells].map((cell, i) => [cell, i]);
    const pairs = [];
    let column = 0, below = 0;
    for (const cell of top.cells) {
      if (cell.rowSpan > 1) pairs.push([cell, column++]);
      else for (let k = 0; k < cell.colSpan; k++) pairs.push([bottom.cells[below++], column++]);
    }
    return pairs;
  };
  for (const table of all("table.sortable")) {
    const pairs = headings(table.tHead);
    for (const [cell, column] of pairs) {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...cell.childNodes);
      cell.append(button);
      button.addEventListener("click", () => {
        const down = cell.getAttribute("aria-sort") === "ascending";
        for (const [other] of pairs) other.removeAttribute("aria-sort");
        cell.setAttribute("aria-sort", down ? "descending" : "ascending");
        const body = table.tBodies[0];
        body.append(...[...body.rows].sort((a, b) => compare(value(a, column), value(b, column), down ? -1 : 1)));
      });
    }
  }

  // tables: copy as tab-separated text, a heading over a group in front of each of its columns
  const plain = (cell) => {
    const copy = cell.cloneNode(true);
    for (const interval of all(".interval, .theirs, .ref", copy)) interval.prepend(" ");
    for (const interval of all(".interval, .theirs", copy)) interval.append(" ");
    return copy.textContent.replace(/\s+/g, " ").trim();
  };
  const asText = (table) => {
    const [top, bottom] = table.tHead.rows;
    const groups = bottom ? [...top.cells].flatMap((c) => Array(c.colSpan).fill(c.rowSpan > 1 ? "" : `${plain(c)}: `)) : [];
    const first = headings(table.tHead).map(([cell, i]) => (groups[i] ?? "") + plain(cell)).join("\t");
    return [first, ...[...table.tBodies[0].rows].map((row) => [...row.cells].map(plain).join("\t"))].join("\n") + "\n";
  };
  const copyOld = (text) => { // where a page from a file may not use the clipboard by itself
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "sr";
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  };
  const copy = async (text) => {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      return copyOld(text);
    }
  };
  // wide tables: one group of columns at a time next to those that identify a row; all of them on demand and on paper
  const grouped = (table) => { // [name, columns] of each group; what stands behind the last one is "more"
    const found = [];
    let column = 0;
    for (const cell of table.tHead.rows[1] ? table.tHead.rows[0].cells : []) {
      const columns = Array.from({ length: cell.colSpan }, (_, k) => column + k);
      column += cell.colSpan;
      if (cell.rowSpan === 1) found.push([cell.textContent.trim(), columns]);
      else if (found.length && found.at(-1)[0] === "More") found.at(-1)[1].push(...columns);
      else if (found.length) found.push(["More", columns]);
    }
    return found;
  };
  const choose = (table, bar) => {
    const groups = grouped(table);
    if (groups.filter(([title]) => title !== "More").length < 2 || !groups.some(([, columns]) => columns.length > 2)) return;
    const heads = new Map(headings(table.tHead).map(([cell, i]) => [i, cell]));
    const over = [...table.tHead.rows[0].cells].filter((cell) => cell.rowSpan === 1);
    const box = document.createElement("span");
    box.className = "groups";
    box.role = "group";
    box.ariaLabel = "Columns shown";
    const show = (name) => {
      for (const [title, columns] of groups) {
        const off = name !== "All" && name !== title;
        for (const i of columns) {
          heads.get(i).classList.toggle("off", off);
          for (const row of table.tBodies[0].rows) row.cells[i].classList.toggle("off", off);
        }
        over.find((cell) => cell.textContent.trim() === title)?.classList.toggle("off", off);
      }
      for (const button of box.children) button.ariaPressed = String(button.textContent === name);
    };
    for (const name of [...groups.map(([title]) => title), "All"]) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = name;
      button.addEventListener("click", () => show(name));
      box.append(button);
    }
    bar.prepend(box);
    table.addEventListener("showall", () => show("All"));
    show(groups[0][0]);
  };
  for (const table of all("main table")) {
    const bar = document.createElement("p");
    bar.className = "bar";
    choose(table, bar);
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy table";
    button.title = `Copy as tab-separated text: ${table.caption.textContent}`;
    button.addEventListener("click", async () => {
      const done = await copy(asText(table));
      button.textContent = done ? "Copied" : "Copying is not allowed here";
      setTimeout(() => { button.textContent = "Copy table"; }, 2500);
      button.focus();
    });
    bar.append(button);
    table.closest(".scroll").before(bar);
  }

  // figures: enlarge; the drawing moves into the dialogue and back, so its ids stay unique
  const dialog = find("#enlarged");
  const stage = find(".stage", dialog);
  let home = null;
  for (const svg of all(".picture > svg")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "enlarge";
    button.title = "Enlarge";
    svg.replaceWith(button);
    button.append(svg);
    button.addEventListener("click", () => {
      home = button;
      button.style.height = `${button.offsetHeight}px`; // the text does not jump while the drawing is away
      stage.append(svg);
      dialog.showModal();
    });
  }
  dialog.addEventListener("close", () => {
    home.append(stage.firstElementChild);
    home.style.height = "";
    home.focus();
  });
  dialog.addEventListener("click", (e) => { if (e.target === dialog) dialog.close(); });
})();
