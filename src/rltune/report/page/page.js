"use strict";
(() => {
  document.documentElement.classList.add("js");

  // contents: open beside the text, closed above it
  const contents = document.querySelector(".contents details");
  const wide = window.matchMedia("(min-width: 68rem)");
  const fit = () => { contents.open = wide.matches; };
  fit();
  wide.addEventListener("change", fit);
  contents.querySelector("summary").addEventListener("click", (e) => { if (wide.matches) e.preventDefault(); });
  contents.addEventListener("click", (e) => { if (e.target.closest("a") && !wide.matches) contents.open = false; });

  // contents: mark what is being read
  const links = new Map([...contents.querySelectorAll("a")].map((a) => [a.getAttribute("href").slice(1), a]));
  const watch = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      for (const a of links.values()) a.removeAttribute("aria-current");
      links.get(entry.target.id)?.setAttribute("aria-current", "true");
    }
  }, { rootMargin: "-15% 0px -75% 0px" });
  for (const id of links.keys()) watch.observe(document.getElementById(id));

  // tables: sort by a heading
  const value = (row, i) => {
    const cell = row.cells[i];
    const raw = cell.dataset.value ?? cell.textContent.trim();
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
    const found = [];
    let column = 0, below = 0;
    for (const cell of top.cells) {
      if (cell.rowSpan > 1) found.push([cell, column++]);
      else for (let k = 0; k < cell.colSpan; k++) found.push([bottom.cells[below++], column++]);
    }
    return found;
  };
  for (const table of document.querySelectorAll("table.sortable")) {
    const found = headings(table.tHead);
    for (const [cell, column] of found) {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...cell.childNodes);
      cell.append(button);
      button.addEventListener("click", () => {
        const down = cell.getAttribute("aria-sort") === "ascending";
        for (const [other] of found) other.removeAttribute("aria-sort");
        cell.setAttribute("aria-sort", down ? "descending" : "ascending");
        const body = table.tBodies[0];
        body.append(...[...body.rows].sort((a, b) => compare(value(a, column), value(b, column), down ? -1 : 1)));
      });
    }
  }

  // figures: enlarge; the drawing moves into the dialogue and back, so its ids stay unique
  const dialog = document.getElementById("enlarged");
  const stage = dialog.querySelector(".stage");
  let home = null;
  for (const svg of document.querySelectorAll(".picture > svg")) {
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
