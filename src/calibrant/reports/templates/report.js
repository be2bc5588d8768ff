"use strict";
// The page is complete without this script, which only adds tabs, the threshold slider, copying and a choice of theme.
// Numbers are never computed here: the slider shows cells of the table that the library filled.
(() => {
  const all = (selector, root = document) => Array.from(root.querySelectorAll(selector));
  const make = (tag, properties) => Object.assign(document.createElement(tag), properties);

  for (const box of all("[data-tabs]")) {
    const panels = Array.from(box.children).filter((child) => child.dataset.tab !== undefined);
    if (panels.length < 2) continue;
    const list = make("div", { className: "tablist" });
    list.setAttribute("role", "tablist");
    list.setAttribute("aria-label", box.dataset.tabs);
    const select = (chosen, focus) => {
      panels.forEach((panel, k) => {
        const on = k === chosen;
        panel.hidden = !on;
        buttons[k].setAttribute("aria-selected", String(on));
        buttons[k].tabIndex = on ? 0 : -1;
        if (on && focus) buttons[k].focus();
      });
    };
    const buttons = panels.map((panel, k) => {
      const button = make("button", { type: "button", id: panel.id + "-tab", textContent: panel.dataset.tab });
      button.setAttribute("role", "tab");
      button.setAttribute("aria-controls", panel.id);
      button.addEventListener("click", () => select(k, false));
      panel.setAttribute("role", "tabpanel");
      panel.setAttribute("aria-labelledby", button.id);
      panel.tabIndex = 0;
      panel.addEventListener("reveal", () => select(k, false));
      list.append(button);
      return button;
    });
    list.addEventListener("keydown", (event) => {
      const now = buttons.indexOf(document.activeElement), last = buttons.length - 1;
      const next = { ArrowRight: now === last ? 0 : now + 1, ArrowLeft: now === 0 ? last : now - 1, Home: 0, End: last }[event.key];
      if (next === undefined) return;
      event.preventDefault();
      select(next, true);
    });
    box.classList.add("tabbed");
    box.prepend(list);
    select(0, false);
  }

  // A link may point into a tab that is not shown.
  const reveal = () => {
    let target;
    try { target = document.getElementById(decodeURIComponent(location.hash.slice(1))); } catch { return; }
    for (let panel = target; panel; panel = panel.parentElement) {
      if (panel.getAttribute("role") === "tabpanel") panel.dispatchEvent(new Event("reveal"));
    }
    if (target) target.scrollIntoView();
  };
  window.addEventListener("hashchange", reveal);
  if (location.hash) reveal();

  for (const section of all("[data-decisions]")) {
    const rows = all("tbody tr", section), slider = section.querySelector("input[type=range]");
    const shown = section.querySelector("output"), said = section.querySelector("[data-said]");
    const markers = all(".marker", section);
    const update = () => {
      const row = rows[Number(slider.value)], threshold = row.dataset.threshold;
      for (const cell of row.cells) {
        for (const place of all(`[data-show="${cell.dataset.value}"]`, section)) place.textContent = cell.textContent;
      }
      shown.textContent = threshold;
      slider.setAttribute("aria-valuetext", "threshold " + threshold);
      said.textContent = row.dataset.said;
      for (const marker of markers) {
        const { from, to, low, high } = marker.dataset;
        const share = (Number(threshold) - Number(low)) / (Number(high) - Number(low));
        const x = String(Number(from) + (Number(to) - Number(from)) * share);
        marker.setAttribute("x1", x);
        marker.setAttribute("x2", x);
        marker.classList.toggle("outside", share < 0 || share > 1);
      }
    };
    slider.addEventListener("input", update);
    for (const live of all("[data-live]", section)) live.hidden = false;
    update();
  }

  // Folded while somebody reads along, open on paper.
  const folds = all("details[data-fold]");
  const fold = () => { for (const each of folds) each.open = false; };
  window.addEventListener("beforeprint", () => { for (const each of folds) each.open = true; });
  window.addEventListener("afterprint", fold);
  fold();

  const tell = (button, text) => {
    const before = button.textContent;
    button.textContent = text;
    setTimeout(() => { button.textContent = before; }, 1600);
  };
  const copier = (label, text, fallback) => {
    const button = make("button", { type: "button", className: "tool", textContent: label });
    button.addEventListener("click", () => {
      const writing = navigator.clipboard ? navigator.clipboard.writeText(text()) : Promise.reject();
      writing.then(() => tell(button, "Copied"), () => { fallback(); tell(button, "Selected: press Ctrl+C"); });
    });
    return button;
  };
  for (const block of all("pre[data-copy]")) {
    const mark = () => window.getSelection().selectAllChildren(block);
    block.before(copier(block.dataset.copy, () => block.textContent, mark));
  }

  const theme = document.getElementById("theme");
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (document.documentElement.dataset.theme || (dark.matches ? "dark" : "light")) === "dark";
  const label = () => { theme.textContent = isDark() ? "Light colours" : "Dark colours"; };
  theme.addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    label();
  });
  dark.addEventListener("change", label);
  label();
  theme.hidden = false;
})();
