"use strict";
// The list of sentences with mistakes: search, filters, keys. Everything is in the page; nothing is asked for.
(() => {
  const list = document.getElementById("cases");
  if (!list) return;
  const PAGE = 100; // sentences shown at a time
  const find = document.getElementById("find"), kind = document.getElementById("kind"), type = document.getElementById("type");
  const count = document.getElementById("count"), more = document.getElementById("more");
  let limit = PAGE;

  const cases = [...list.children].map((node) => {
    const words = node.querySelector(".drawn").cloneNode(true);
    for (const bar of words.querySelectorAll("i")) bar.remove();
    const said = `${node.querySelector("h3").textContent}\n${words.textContent}`.toLowerCase();
    const mistakes = [...node.querySelectorAll("li")].map((item) => item.dataset);
    return { node, said, mistakes };
  });

  const fits = (one, text) =>
    (!text || one.said.includes(text)) &&
    ((!kind.value && !type.value) || one.mistakes.some((mistake) =>
      (!kind.value || mistake.k === kind.value) && (!type.value || mistake.g === type.value || mistake.p === type.value)));

  const show = () => {
    const text = find.value.trim().replace(/\s+/g, " ").toLowerCase();
    let found = 0;
    for (const one of cases) {
      const is = fits(one, text);
      if (is) found += 1;
      one.node.hidden = !is || found > limit;
    }
    more.hidden = found <= limit;
    count.value = `${found.toLocaleString("en")} of ${cases.length.toLocaleString("en")} sentences`;
  };
  const again = () => { limit = PAGE; show(); };

  const move = (step) => {
    const shown = cases.map((one) => one.node).filter((node) => !node.hidden);
    const at = shown.indexOf(document.activeElement.closest(".case"));
    const next = shown[at < 0 ? 0 : Math.min(Math.max(at + step, 0), shown.length - 1)];
    if (next) { next.focus({ preventScroll: true }); next.scrollIntoView({ block: "nearest" }); }
  };

  find.addEventListener("input", again);
  kind.addEventListener("change", again);
  type.addEventListener("change", again);
  find.form.addEventListener("submit", (event) => event.preventDefault());
  more.addEventListener("click", () => { limit += PAGE; show(); });
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, select");
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape" && typing) {
      find.value = kind.value = type.value = "";
      again();
      typing.blur();
    } else if (event.key === "ArrowDown" && typing === find) {
      event.preventDefault();
      move(1);
    } else if (typing) {
      return;
    } else if (event.key === "/") {
      event.preventDefault();
      find.focus();
    } else if (event.key === "j" || event.key === "k") {
      move(event.key === "j" ? 1 : -1);
    }
  });
  find.form.hidden = false;
  show();
})();
