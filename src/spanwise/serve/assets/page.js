"use strict";
// Request all predictions once; the threshold and the type filter then apply in the browser, without another request.
(() => {
  const byId = (id) => document.getElementById(id);
  const make = (tag, properties = {}, ...children) => {
    const node = Object.assign(document.createElement(tag), properties);
    node.append(...children);
    return node;
  };
  const settings = JSON.parse(byId("settings").textContent);
  const slider = byId("threshold"), tip = byId("tip");
  const hiddenTypes = new Set();
  let sentences = [], pendingRequest = null, pendingFrame = 0;

  const showStatus = (text, isError = false) => {
    byId("status").textContent = text;
    byId("status").classList.toggle("error", isError);
    byId("status").setAttribute("role", isError ? "alert" : "status");
  };
  const countOf = (count, singular, plural) => `${count.toLocaleString("en")} ${count === 1 ? singular : plural}`;

  // At its initial position the slider means the model's default thresholds, which may differ by type and lie between
  // two steps.
  const isDefault = () => slider.value === slider.defaultValue;
  const threshold = () => (isDefault() ? settings.threshold : Number(slider.value));
  const thresholdOf = (type) => (isDefault() ? settings.defaults[type] ?? settings.threshold : threshold());
  const differsByType = new Set(Object.values(settings.defaults)).size > 1;

  const reaches = (prediction, cutoff) => prediction.score === null || prediction.score >= cutoff;

  // Select the predictions of a sentence by threshold and type. The model applies a separate threshold to relations,
  // so the slider affects them only above the model's default threshold.
  const select = (sentence) => {
    const cutoff = threshold(), newIndex = new Map(), entities = [];
    sentence.entities.forEach((entity, index) => {
      if (reaches(entity, thresholdOf(entity.type)) && !hiddenTypes.has(entity.type)) newIndex.set(index, entities.push(entity) - 1);
    });
    const relations = sentence.relations
      .filter((relation) => reaches(relation, cutoff > settings.threshold ? cutoff : 0))
      .filter((relation) => newIndex.has(relation.head) && newIndex.has(relation.tail))
      .map((relation) => ({ ...relation, head: newIndex.get(relation.head), tail: newIndex.get(relation.tail) }));
    return { ...sentence, entities, relations };
  };

  const relationItems = (sentence) => sentence.relations.map((relation, index) => {
    const [head, tail] = [relation.head, relation.tail]
      .map((entity) => make("b", { dir: "auto", textContent: sentence.entities[entity].text }));
    const type = make("bdi", { textContent: relation.type });
    const score = relation.score === null ? "" : ` ${relation.score.toFixed(3)}`;
    const item = make("li", {}, head, " ", type, " → ", tail, score);
    item.dataset.relation = index;
    return item;
  });

  const isSame = (selected, drawn) => drawn && selected.relations.length === drawn.relations.length
    && selected.entities.length === drawn.entities.length
    && selected.entities.every((entity, index) => entity === drawn.entities[index]);

  const draw = () => {
    cancelAnimationFrame(pendingFrame);
    pendingFrame = 0;
    tip.hidden = true;
    byId("level").value = isDefault() && differsByType ? "by type" : Number(slider.value).toFixed(2);
    const counts = new Map();
    let entities = 0, relations = 0;
    for (const sentence of sentences) {
      const selected = select(sentence.all);
      for (const entity of sentence.all.entities) {
        if (reaches(entity, thresholdOf(entity.type))) counts.set(entity.type, (counts.get(entity.type) ?? 0) + 1);
      }
      entities += selected.entities.length;
      relations += selected.relations.length;
      if (isSame(selected, sentence.drawn)) continue;
      sentence.drawn = selected;
      sentence.node.replaceChildren(drawSentence(selected, settings.colours));
      if (selected.relations.length) sentence.node.append(make("ul", {}, ...relationItems(selected)));
    }
    for (const box of byId("types").querySelectorAll("input")) {
      box.parentNode.querySelector("small").textContent = counts.get(box.value) ?? 0;
    }
    const counted = [countOf(entities, "entity", "entities"), ...(relations ? [countOf(relations, "relation", "relations")] : [])];
    const where = countOf(sentences.length, "sentence", "sentences");
    showStatus(sentences.length ? `${counted.join(" and ")} in ${where}` : "The text has no words.");
  };
  const scheduleDraw = () => { pendingFrame ||= requestAnimationFrame(draw); };

  const listTypes = () => {
    const present = new Set(sentences.flatMap((sentence) => sentence.all.entities.map((entity) => entity.type)));
    byId("types").replaceChildren(...Object.keys(settings.colours).filter((type) => present.has(type)).map((type) => {
      const box = make("input", { type: "checkbox", value: type, checked: !hiddenTypes.has(type) });
      const label = make("label", {}, box, make("bdi", { textContent: type }), " ", make("small"));
      label.style.setProperty("--c", settings.colours[type]);
      return label;
    }));
    byId("filter").hidden = !present.size;
  };

  const show = (response) => {
    sentences = response.results.flatMap((result) => result.sentences).map((all) => ({
      all, drawn: null, node: make("div", { className: "sentence" }),
    }));
    byId("sentences").replaceChildren(...sentences.map((sentence) => sentence.node));
    byId("results").hidden = !sentences.length;
    listTypes();
    draw();
  };

  // Earlier predictions belong to another text, so an error removes them.
  const showError = (message) => {
    show({ results: [] });
    showStatus(message, true);
  };

  // By entity type, so that relations keep the model's threshold. The service refuses more than 1,000 keys.
  const lowestThreshold = () => {
    const types = Object.keys(settings.colours);
    return settings.lowest && types.length <= 1000 ? Object.fromEntries(types.map((type) => [`entity:${type}`, settings.lowest])) : settings.lowest;
  };

  const predict = async () => {
    pendingRequest?.abort();
    pendingRequest = new AbortController();
    const { signal } = pendingRequest;
    showStatus("Predicting …");
    try {
      const headers = { "content-type": "application/json" };
      if (byId("token").value) headers.authorization = `Bearer ${byId("token").value}`;
      const text = byId("text").value.toWellFormed?.() ?? byId("text").value;
      const body = JSON.stringify({ text, threshold: lowestThreshold() });
      const response = await fetch("predict", { method: "POST", headers, body, signal });
      const result = await response.json();
      if (response.ok) show(result);
      else {
        showError(response.status === 401 ? "The service requires a token." : `Error: ${result.error}.`);
        if (response.status === 401) { byId("token-row").hidden = false; byId("token").focus(); }
      }
    } catch (error) {
      if (!signal.aborted) showError("The service cannot be reached.");
    }
  };

  const copy = async () => {
    const text = JSON.stringify({ sentences: sentences.map((sentence) => sentence.drawn) }, null, 1);
    try {
      await navigator.clipboard.writeText(text);
    } catch { // the clipboard needs a secure connection
      const box = make("textarea", { value: text });
      document.body.append(box);
      box.select();
      document.execCommand("copy");
      box.remove();
      byId("copy").focus();
    }
    showStatus("Copied the predictions shown.");
  };

  // Pointing at a prediction or focusing it highlights all its pieces and shows its label.
  const pieces = (root, kind, index) => [...root.querySelectorAll(`[data-${kind}="${index}"]`)];
  const clearHighlight = () => {
    tip.hidden = true;
    for (const piece of document.querySelectorAll(".active")) piece.classList.remove("active");
  };
  const highlight = (event) => {
    clearHighlight();
    const piece = event.target.closest?.("[data-entity], [data-relation]");
    if (!piece) return;
    const root = piece.closest(".sentence"), { entity, relation } = piece.dataset;
    const parts = entity === undefined ? pieces(root, "relation", relation) : pieces(root, "entity", entity);
    const ends = relation === undefined ? null : sentences.find((sentence) => sentence.node === root).drawn.relations[relation];
    const highlighted = ends ? [...parts, ...pieces(root, "entity", ends.head), ...pieces(root, "entity", ends.tail)] : parts;
    for (const part of highlighted) part.classList.add("active");
    if (piece.tagName === "LI") return;
    tip.textContent = parts.find((part) => part.hasAttribute("aria-label")).getAttribute("aria-label");
    tip.hidden = false;
    const box = piece.closest(".w").getBoundingClientRect(), size = tip.getBoundingClientRect();
    const left = Math.min(Math.max(box.left, 8), document.documentElement.clientWidth - size.width - 8);
    tip.style.left = `${left + scrollX}px`;
    // Above the word and all its levels, so that these stay visible.
    tip.style.top = `${(box.top > size.height + 4 ? box.top - size.height - 4 : box.bottom + 4) + scrollY}px`;
  };

  slider.min = settings.lowest;
  slider.value = settings.threshold;
  slider.defaultValue = slider.value;
  byId("token-row").hidden = !settings.token;
  byId("form").addEventListener("submit", (event) => { event.preventDefault(); predict(); });
  byId("text").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); predict(); }
  });
  slider.addEventListener("input", scheduleDraw);
  byId("types").addEventListener("change", ({ target }) => {
    hiddenTypes[target.checked ? "delete" : "add"](target.value);
    draw();
  });
  for (const [id, checked] of [["all", true], ["none", false]]) {
    byId(id).addEventListener("click", () => {
      for (const box of byId("types").querySelectorAll("input")) {
        box.checked = checked;
        hiddenTypes[checked ? "delete" : "add"](box.value);
      }
      draw();
    });
  }
  byId("copy").addEventListener("click", copy);
  for (const kind of ["pointerover", "focusin"]) byId("sentences").addEventListener(kind, highlight);
  for (const kind of ["pointerleave", "focusout"]) byId("sentences").addEventListener(kind, clearHighlight);
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") clearHighlight(); });
})();
