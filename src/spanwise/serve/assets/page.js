"use strict";
// Ask the service once for everything it finds; the threshold and the types then choose among it, here, at once.
(() => {
  const at = (id) => document.getElementById(id);
  const make = (tag, properties = {}, ...children) => {
    const node = Object.assign(document.createElement(tag), properties);
    node.append(...children);
    return node;
  };
  const settings = JSON.parse(at("settings").textContent);
  const slider = at("threshold"), tip = at("tip");
  const hidden = new Set(); // types that the filter leaves out
  let sentences = [], asking = null, planned = 0;

  const say = (text, isWrong = false) => {
    at("status").textContent = text;
    at("status").classList.toggle("wrong", isWrong);
    at("status").setAttribute("role", isWrong ? "alert" : "status");
  };
  const many = (count, one, several) => `${count.toLocaleString("en")} ${count === 1 ? one : several}`;

  // The slider has steps; where it stands at first it means the model's own threshold, which may lie between them.
  const level = () => (slider.value === slider.defaultValue ? settings.threshold : Number(slider.value));

  // What is left of a sentence. Relations have a threshold of their own in the model: the slider counts for them above its own.
  const isOver = (thing, bar) => thing.score === null || thing.score >= bar;
  const left = (sentence) => {
    const bar = level(), places = new Map(), entities = [];
    sentence.entities.forEach((entity, number) => {
      if (isOver(entity, bar) && !hidden.has(entity.type)) places.set(number, entities.push(entity) - 1);
    });
    const relations = sentence.relations
      .filter((one) => isOver(one, bar > settings.threshold ? bar : 0) && places.has(one.head) && places.has(one.tail))
      .map((one) => ({ ...one, head: places.get(one.head), tail: places.get(one.tail) }));
    return { ...sentence, entities, relations };
  };

  const listed = (sentence) => sentence.relations.map((one, number) => {
    const [head, tail] = [one.head, one.tail].map((place) => make("b", { dir: "auto", textContent: sentence.entities[place].text }));
    const type = make("bdi", { textContent: one.type });
    const item = make("li", {}, head, " ", type, " → ", tail, one.score === null ? "" : ` ${one.score.toFixed(3)}`);
    item.dataset.relation = number;
    return item;
  });

  const draw = () => {
    cancelAnimationFrame(planned);
    planned = 0;
    tip.hidden = true;
    at("level").value = Number(slider.value).toFixed(2);
    const counts = new Map();
    let entities = 0, relations = 0;
    for (const one of sentences) {
      const shown = left(one.whole);
      for (const entity of one.whole.entities) {
        if (isOver(entity, level())) counts.set(entity.type, (counts.get(entity.type) ?? 0) + 1);
      }
      entities += shown.entities.length;
      relations += shown.relations.length;
      const same = one.shown && shown.relations.length === one.shown.relations.length
        && shown.entities.length === one.shown.entities.length && shown.entities.every((x, number) => x === one.shown.entities[number]);
      if (same) continue;
      one.shown = shown;
      one.node.replaceChildren(drawSentence(shown, settings.colours));
      if (shown.relations.length) one.node.append(make("ul", {}, ...listed(shown)));
    }
    for (const box of at("types").querySelectorAll("input")) {
      box.parentNode.querySelector("small").textContent = counts.get(box.value) ?? 0;
    }
    const found = [many(entities, "entity", "entities"), ...(relations ? [many(relations, "relation", "relations")] : [])];
    say(sentences.length ? `${found.join(" and ")} in ${many(sentences.length, "sentence", "sentences")}` : "There are no words in this text.");
  };
  const drawSoon = () => { planned ||= requestAnimationFrame(draw); };

  const offerTypes = () => {
    const found = new Set(sentences.flatMap((one) => one.whole.entities.map((entity) => entity.type)));
    at("types").replaceChildren(...Object.keys(settings.colours).filter((type) => found.has(type)).map((type) => {
      const box = make("input", { type: "checkbox", value: type, checked: !hidden.has(type) });
      const label = make("label", {}, box, make("bdi", { textContent: type }), " ", make("small"));
      label.style.setProperty("--c", settings.colours[type]);
      return label;
    }));
    at("filter").hidden = !found.size;
  };

  const show = (answer) => {
    sentences = answer.results.flatMap((result) => result.sentences).map((whole) => ({
      whole, shown: null, node: make("div", { className: "sentence" }),
    }));
    at("sentences").replaceChildren(...sentences.map((one) => one.node));
    at("found").hidden = !sentences.length;
    offerTypes();
    draw();
  };

  // What was found before belongs to another text.
  const refuse = (why) => {
    show({ results: [] });
    say(why, true);
  };

  const ask = async () => {
    asking?.abort();
    asking = new AbortController();
    const { signal } = asking;
    say("Reading …");
    try {
      const headers = { "content-type": "application/json" };
      if (at("token").value) headers.authorization = `Bearer ${at("token").value}`;
      const body = JSON.stringify({ text: at("text").value.toWellFormed?.() ?? at("text").value, threshold: settings.lowest });
      const response = await fetch("predict", { method: "POST", headers, body, signal });
      const answer = await response.json();
      if (response.ok) show(answer);
      else {
        refuse(response.status === 401 ? "The service asks for a token." : `Not answered: ${answer.error}.`);
        if (response.status === 401) { at("key").hidden = false; at("token").focus(); }
      }
    } catch (error) {
      if (!signal.aborted) refuse("The service cannot be reached.");
    }
  };

  const copy = async () => {
    const text = JSON.stringify({ sentences: sentences.map((one) => one.shown) }, null, 1);
    try {
      await navigator.clipboard.writeText(text);
    } catch { // no clipboard without a secure connection
      const box = make("textarea", { value: text });
      document.body.append(box);
      box.select();
      document.execCommand("copy");
      box.remove();
      at("copy").focus();
    }
    say("Copied what is shown.");
  };

  // Pointing at a bar, a line or a relation in the list, or moving to it by keyboard, tells what it is and marks all of it.
  const pieces = (root, kind, number) => [...root.querySelectorAll(`[data-${kind}="${number}"]`)];
  const unmark = () => {
    tip.hidden = true;
    for (const piece of document.querySelectorAll(".on")) piece.classList.remove("on");
  };
  const mark = (event) => {
    unmark();
    const piece = event.target.closest?.("[data-entity], [data-relation]");
    if (!piece) return;
    const root = piece.closest(".sentence"), { entity, relation } = piece.dataset;
    const own = entity === undefined ? pieces(root, "relation", relation) : pieces(root, "entity", entity);
    const ends = relation === undefined ? null : sentences.find((one) => one.node === root).shown.relations[relation];
    const marked = ends ? [...own, ...pieces(root, "entity", ends.head), ...pieces(root, "entity", ends.tail)] : own;
    for (const one of marked) one.classList.add("on");
    if (piece.tagName === "LI") return;
    tip.textContent = own.find((one) => one.hasAttribute("aria-label")).getAttribute("aria-label");
    tip.hidden = false;
    const box = piece.closest(".w").getBoundingClientRect(), size = tip.getBoundingClientRect();
    const side = Math.min(Math.max(box.left, 8), document.documentElement.clientWidth - size.width - 8);
    tip.style.left = `${side + scrollX}px`; // above the word and all its levels, which stay in sight
    tip.style.top = `${(box.top > size.height + 4 ? box.top - size.height - 4 : box.bottom + 4) + scrollY}px`;
  };

  slider.min = settings.lowest;
  slider.value = settings.threshold;
  slider.defaultValue = slider.value;
  at("key").hidden = !settings.token;
  at("ask").addEventListener("submit", (event) => { event.preventDefault(); ask(); });
  at("text").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); ask(); }
  });
  slider.addEventListener("input", drawSoon);
  at("types").addEventListener("change", ({ target }) => {
    hidden[target.checked ? "delete" : "add"](target.value);
    draw();
  });
  for (const [id, checked] of [["all", true], ["none", false]]) {
    at(id).addEventListener("click", () => {
      for (const box of at("types").querySelectorAll("input")) {
        box.checked = checked;
        hidden[checked ? "delete" : "add"](box.value);
      }
      draw();
    });
  }
  at("copy").addEventListener("click", copy);
  for (const kind of ["pointerover", "focusin"]) at("sentences").addEventListener(kind, mark);
  for (const kind of ["pointerleave", "focusout"]) at("sentences").addEventListener(kind, unmark);
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") unmark(); });
})();
