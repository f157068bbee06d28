"""What must be true of a report's page in a browser, whatever run it shows."""

from pathlib import Path
from urllib.parse import unquote, urlparse

from chromium import Chromium

WIDTHS = (360, 768, 1400)

LAYOUT = """(() => {
  const faults = [], wide = document.documentElement.clientWidth;
  const all = document.documentElement.scrollWidth;
  if (all > wide) faults.push(`the page is ${all} wide`);
  const scrolls = (e) => { // whether something around it scrolls sideways
    for (let p = e.parentElement; p; p = p.parentElement)
      if (["auto", "scroll", "hidden"].includes(getComputedStyle(p).overflowX)) return true;
    return false;
  };
  const name = (e) => `${e.tagName.toLowerCase()}#${e.id}.${e.className} “${e.textContent.trim().slice(0, 40)}”`;
  for (const e of document.querySelectorAll("main *, nav *")) {
    const box = e.getBoundingClientRect();
    if (box.width === 0 || e.closest("svg, .sr")) continue;
    if ((box.right > wide + 1 || box.left < -1) && !scrolls(e)) faults.push(`sticks out: ${name(e)}`);
    if (e.matches(".scroll") && box.width < 120) faults.push(`too narrow: ${name(e)}`);
  }
  const nav = document.querySelector("nav").getBoundingClientRect(), over = (a, b) =>
    a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
  for (const e of document.querySelectorAll("main h1, main h2, main h3, main p, main .scroll, main dl"))
    if (scrollY === 0 && over(nav, e.getBoundingClientRect())) faults.push(`under the contents: ${name(e)}`);
  return faults;
})()"""

WORDS = """(() => {
  const faults = [];
  let level = 0;
  for (const h of document.querySelectorAll("h1, h2, h3, h4, h5, h6")) {
    if (Number(h.tagName[1]) > level + 1) faults.push(`heading jumps to ${h.tagName}: ${h.textContent}`);
    if (!h.textContent.trim()) faults.push(`an empty ${h.tagName}`);
    level = Number(h.tagName[1]);
  }
  const called = (e) => e.getAttribute("aria-label") || e.title || e.textContent.trim()
    || (e.labels && [...e.labels].some((l) => l.textContent.trim()));
  for (const e of document.querySelectorAll("button, input, select, [role=img], [role=region], nav, dialog"))
    if (!called(e)) faults.push(`without a name: ${e.outerHTML.slice(0, 80)}`);
  for (const e of document.querySelectorAll("img")) {
    if (!e.alt) faults.push(`without alt: ${e.outerHTML.slice(0, 80)}`);
    if (!e.complete || !e.naturalWidth) faults.push(`does not load: ${e.src.slice(0, 80)}`);
  }
  for (const e of document.querySelectorAll("figure svg"))
    if ((e.getAttribute("aria-label") ?? "").length < 20) faults.push(`without words: ${e.closest("article").id}`);
  for (const e of document.querySelectorAll("table")) if (!e.caption) faults.push("a table without a caption");
  for (const e of document.querySelectorAll(".scroll")) // or a keyboard cannot scroll it
    if (e.tabIndex !== 0) faults.push(`not in reach of the keyboard: ${e.outerHTML.slice(0, 80)}`);
  return faults;
})()"""

CONTRAST = """(() => {
  const faults = new Set(), canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = (colour) => { // any notation, as 0 … 255 and alpha
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const light = ([r, g, b]) => {
    const linear = [r, g, b].map((v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  };
  const ratio = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
  const grounds = new Map();
  const ground = (e) => {
    if (!e) return rgba(getComputedStyle(document.body).backgroundColor);
    if (!grounds.has(e)) {
      const own = rgba(getComputedStyle(e).backgroundColor);
      grounds.set(e, own[3] > 0.99 ? own : ground(e.parentElement));
    }
    return grounds.get(e);
  };
  let seen = 0;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const e = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || e.closest("svg, script, style, .sr, .skip")) continue;
    if (!e.checkVisibility()) continue;
    const style = getComputedStyle(e), size = parseFloat(style.fontSize);
    const least = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700) ? 3 : 4.5;
    const found = ratio(rgba(style.color), ground(e));
    seen++;
    if (found < least) faults.add(`${found.toFixed(2)} of ${style.color} in ${e.tagName}.${e.className}`);
  }
  const root = getComputedStyle(document.documentElement), probe = document.createElement("i");
  document.body.append(probe);
  const inks = ["--figure-ink", "--figure-muted", "--figure-paper"].map((v) => {
    probe.style.color = `var(${v})`;
    return rgba(getComputedStyle(probe).color);
  });
  probe.remove();
  if (ratio(inks[0], inks[2]) < 4.5 || ratio(inks[1], inks[2]) < 4.5) faults.add("text in figures");
  if (seen < 200) faults.add(`only ${seen} texts seen`);
  return [...faults];
})()"""

TARGETS = """(() => {
  const gone = [], files = new Set();
  for (const a of document.querySelectorAll("a[href]")) {
    const address = a.getAttribute("href");
    if (address.startsWith("#")) { if (!document.getElementById(address.slice(1))) gone.push(address); }
    else if (!address.startsWith("data:")) files.add(a.href);
  }
  for (const use of document.querySelectorAll("use"))
    if (!document.querySelector(`[id="${use.getAttribute("href").slice(1)}"]`)) gone.push(use.outerHTML);
  return [gone, [...files]];
})()"""


def check_layout(browser: Chromium, page: Path) -> None:
    """Nothing sticks out or lies under the contents at any width, what is folded open."""
    for width in WIDTHS:
        browser.open(page.as_uri(), width)
        browser.run("document.querySelectorAll('main details').forEach((e) => { e.open = true; })")
        assert browser.run(LAYOUT) == [], f"{width} px"


def check_words(browser: Chromium, page: Path) -> None:
    """Headings in order; everything to look at or to press has a name."""
    browser.open(page.as_uri())
    assert browser.run(WORDS) == []


def check_contrast(browser: Chromium, page: Path) -> None:
    """Text is readable (WCAG 2.1 AA) in light and in dark."""
    for dark in (False, True):
        browser.open(page.as_uri(), dark=dark)
        browser.run("document.querySelectorAll('details').forEach((e) => { e.open = true; })")
        assert browser.run(CONTRAST) == [], "dark" if dark else "light"


def check_links(browser: Chromium, page: Path) -> None:
    """All links lead somewhere, the page itself asks for nothing, nothing complains."""
    browser.said.clear()
    browser.asked.clear()
    browser.open(page.as_uri())
    gone, files = browser.run(TARGETS)
    assert gone == []
    assert files, "no notebook is linked"
    for address in files:
        path = Path(unquote(urlparse(address).path))
        assert path.is_file() and path.is_relative_to(page.parent), address
    assert {a for a in browser.asked if not a.startswith(("data:", "about:"))} == {page.as_uri()}
    assert browser.said == []


CHECKS = (check_layout, check_words, check_contrast, check_links)
