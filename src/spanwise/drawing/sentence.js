// The drawing of sentence.py as elements, made in the page from what the service answers, so that it can follow a slider at once.
// Relations, which that drawing has not, are lines above the words, from the first word of the one entity to that of the other.
const drawSentence = (() => {
  const NAME = 0.44, LETTER = 0.3, SPACE = 0.25, LONGEST_NAME = 20, LONGEST_WORD = 40, NO_COLOUR = "#808080"; // see sentence.py
  const WIDE = /[\p{scx=Han}\p{scx=Hang}\p{scx=Hira}\p{scx=Kana}\u3000-\u303f\uff01-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/u;

  const width = (text) => [...text].reduce((sum, letter) => sum + (WIDE.test(letter) ? 2 : 1), 0);

  const shortened = (label) => {
    const letters = [...label], head = LONGEST_NAME / 2;
    return letters.length <= LONGEST_NAME ? label : [...letters.slice(0, head), "…", ...letters.slice(1 - head)].join("");
  };

  const compare = (one, other) => {
    for (let at = 0; at < Math.max(one.length, other.length); at += 1) {
      if (one[at] === other[at]) continue;
      return one[at] === undefined || one[at] < other[at] ? -1 : 1;
    }
    return 0;
  };

  // Items with a level each, so that none overlaps another of its level; narrow ones get the lowest.
  const stacked = (items) => {
    const placed = [];
    const key = ({ start, end, spans, type }) => [end - start, ...spans.flat(), type];
    for (const item of [...items].sort((one, other) => compare(key(one), key(other)))) {
      const taken = new Set(placed.filter((one) => one.start < item.end && item.start < one.end).map((one) => one.level));
      let level = 0;
      while (taken.has(level)) level += 1;
      placed.push({ ...item, level });
    }
    return placed;
  };

  const bar = (item, classes, look) => {
    const piece = document.createElement("i");
    piece.className = classes;
    piece.dataset[item.kind] = item.number;
    piece.style.setProperty("--c", look);
    if (item.level) piece.style.setProperty("--l", item.level);
    return piece;
  };

  const named = (piece, item) => {
    const name = document.createElement("em");
    name.textContent = shortened(item.type);
    piece.append(name);
    piece.tabIndex = 0;
    piece.setAttribute("role", "img");
    piece.setAttribute("aria-label", item.label);
  };

  const scored = (text, score) => (score === null ? text : `${text} (${score.toFixed(3)})`);

  const entityItems = (sentence) => sentence.entities.map((entity, number) => ({
    kind: "entity", number, type: entity.type, spans: entity.spans, start: entity.spans[0][0], end: entity.spans.at(-1)[1],
    label: scored(`${entity.type}: ${entity.text}`, entity.score),
  }));

  const relationItems = (sentence) => sentence.relations.map((relation, number) => {
    const head = sentence.entities[relation.head], tail = sentence.entities[relation.tail];
    const ends = [head, tail].map((entity) => entity.spans[0][0]);
    const start = Math.min(...ends), end = Math.max(...ends) + 1;
    return {
      kind: "relation", number, type: relation.type, spans: [[start, end]], start, end, leftwards: ends[1] < ends[0],
      label: scored(`${head.text} → ${relation.type} → ${tail.text}`, relation.score),
    };
  });

  const addEntity = (item, cells, colour) => {
    const inside = new Set(), begins = new Set(), ends = new Set();
    for (const [start, end] of item.spans) {
      begins.add(start);
      ends.add(end - 1);
      for (let word = start; word < end; word += 1) inside.add(word);
    }
    for (let word = item.start; word < item.end; word += 1) {
      const marks = (begins.has(word) ? " a" : "") + (ends.has(word) ? " z" : "") + (inside.has(word) ? "" : " g");
      cells[word].bars.push(bar(item, `d${marks}`, colour));
    }
  };

  const addRelation = (item, cells) => {
    for (let word = item.start; word < item.end; word += 1) {
      const marks = (word === item.start ? " a" : "") + (word === item.end - 1 ? " z" : "") + (item.leftwards ? " l" : "");
      cells[word].bars.push(bar(item, `u r${marks}`, NO_COLOUR));
    }
  };

  // Enough width for a name over its words, which stay on one line as far as the name goes.
  const makeRoom = (item, cells) => {
    const first = item.start, last = item.end - 1;
    const needed = NAME * width(shortened(item.type)) + 0.3;
    const own = LETTER * width(cells[first].word);
    let has = own;
    for (let word = first; word < last; word += 1) {
      if (has >= needed) continue;
      cells[word].joined = true;
      has += LETTER * width(cells[word + 1].word) + (cells[word].behind ? SPACE : 0);
    }
    if (has < needed) cells[first].room = Math.max(cells[first].room, own + needed - has);
  };

  // No line begins with a full stop or ends with an opening bracket, beside a word that is a box.
  const OPENING = /[\p{Ps}\p{Pi}]$/u, CLOSING = /^[\p{Pe}\p{Pf}\p{Po}\p{Pd}]/u;
  const keepMarks = (cells) => cells.slice(1).forEach((other, number) => {
    const cell = cells[number];
    const isBoxed = (cell.bars.length || other.bars.length) && !cell.behind;
    const isShort = Math.max(width(cell.word), width(other.word)) <= LONGEST_WORD;
    if (isBoxed && isShort && (OPENING.test(cell.word) || CLOSING.test(other.word))) cell.joined = true;
  });

  const wordOf = (cell) => {
    if (!cell.bars.length) return cell.word;
    const node = document.createElement("span");
    node.className = "w";
    for (const [side, levels] of Object.entries(cell.levels)) node.style.setProperty(`--${side}`, levels);
    if (cell.room) node.style.minWidth = `${cell.room.toFixed(1)}em`;
    node.append(...cell.bars, cell.word);
    return node;
  };

  return (sentence, colours) => {
    const letters = [...sentence.text];
    const between = (start, end) => letters.slice(start - sentence.start, end - sentence.start).join("");
    const cells = sentence.words.map(([start, end], number) => ({
      word: between(start, end), bars: [], levels: {}, room: 0, joined: false,
      behind: number + 1 < sentence.words.length ? between(end, sentence.words[number + 1][0]).replace(/\s+/g, " ") : "",
    }));
    for (const [side, items] of [["u", relationItems(sentence)], ["d", entityItems(sentence)]]) {
      for (const item of stacked(items)) {
        if (side === "u") addRelation(item, cells);
        else addEntity(item, cells, colours[item.type] ?? NO_COLOUR);
        named(cells[item.start].bars.at(-1), item);
        makeRoom(item, cells);
        for (let word = item.start; word < item.end; word += 1) {
          cells[word].levels[side] = Math.max(cells[word].levels[side] ?? 0, item.level + 1);
        }
      }
    }
    keepMarks(cells);
    const drawn = document.createElement("span");
    drawn.className = "drawn";
    let line = drawn, wasJoined = false;
    for (const cell of cells) {
      if (cell.joined && !wasJoined) {
        line = document.createElement("span");
        line.className = "o";
        drawn.append(line);
      }
      line.append(wordOf(cell));
      if (!cell.joined) line = drawn;
      line.append(cell.behind);
      wasJoined = cell.joined;
    }
    return drawn;
  };
})();
