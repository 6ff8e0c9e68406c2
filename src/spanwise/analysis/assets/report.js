"use strict";
// Search, filters and keys for the list of sentences with errors. All data is in the page.
(() => {
  const list = document.getElementById("cases");
  if (!list) return;
  const PAGE = 100; // sentences shown at a time
  const query = document.getElementById("query"), error = document.getElementById("error"), type = document.getElementById("type");
  const count = document.getElementById("count"), more = document.getElementById("more");
  let limit = PAGE;

  const cases = [...list.children].map((node) => {
    const words = node.querySelector(".drawn").cloneNode(true);
    for (const bar of words.querySelectorAll("i")) bar.remove();
    const text = `${node.querySelector("h3").textContent}\n${words.textContent}`.toLowerCase();
    const errors = [...node.querySelectorAll("li")].map((item) => item.dataset);
    return { node, text, errors };
  });

  const matches = (item, text) =>
    (!text || item.text.includes(text)) &&
    ((!error.value && !type.value) || item.errors.some((data) =>
      (!error.value || data.e === error.value) && (!type.value || data.g === type.value || data.p === type.value)));

  const update = () => {
    const text = query.value.trim().replace(/\s+/g, " ").toLowerCase();
    let matched = 0;
    for (const item of cases) {
      const isMatch = matches(item, text);
      if (isMatch) matched += 1;
      item.node.hidden = !isMatch || matched > limit;
    }
    more.hidden = matched <= limit;
    count.value = `${matched.toLocaleString("en")} of ${cases.length.toLocaleString("en")} ${cases.length === 1 ? "sentence" : "sentences"}`;
  };
  const restart = () => { limit = PAGE; update(); };

  const move = (step) => {
    const visible = cases.map((item) => item.node).filter((node) => !node.hidden);
    const current = visible.indexOf(document.activeElement.closest(".case"));
    const next = visible[current < 0 ? 0 : Math.min(Math.max(current + step, 0), visible.length - 1)];
    if (next) { next.focus({ preventScroll: true }); next.scrollIntoView({ block: "nearest" }); }
  };

  query.addEventListener("input", restart);
  error.addEventListener("change", restart);
  type.addEventListener("change", restart);
  query.form.addEventListener("submit", (event) => event.preventDefault());
  more.addEventListener("click", () => { limit += PAGE; update(); });
  document.addEventListener("keydown", (event) => {
    const control = event.target.closest("input, select");
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape" && control) {
      query.value = error.value = type.value = "";
      restart();
      control.blur();
    } else if (event.key === "ArrowDown" && control === query) {
      event.preventDefault();
      move(1);
    } else if (control) {
      return;
    } else if (event.key === "/") {
      event.preventDefault();
      query.focus();
    } else if (event.key === "j" || event.key === "k") {
      move(event.key === "j" ? 1 : -1);
    }
  });
  query.form.hidden = false;
  update();
})();
