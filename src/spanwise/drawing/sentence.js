// Draws a response of the service in the browser as sentence.py does, so that a slider needs no new request.
// Also draws relations, as lines above the words from the first word of one entity to that of the other.
const drawSentence = (() => {
  // See sentence.py for the meaning of these numbers.
  const NAME_CHARACTER = 0.44, TEXT_CHARACTER = 0.3, SPACE = 0.25, MAX_NAME_LENGTH = 20, MAX_JOINED_LENGTH = 40;
  const DEFAULT_COLOUR = "#808080";
  const WIDE = /[\p{scx=Han}\p{scx=Hang}\p{scx=Hira}\p{scx=Kana}\u3000-\u303f\uff01-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/u;

  const LETTER = /\p{L}/u;
  const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;

  // The direction of the first letter of a text.
  const direction = (text) => {
    const letter = [...text].find((character) => LETTER.test(character));
    if (letter === undefined) return "";
    return RIGHT_TO_LEFT.test(letter) ? "rtl" : "ltr";
  };

  const width = (text) => [...text].reduce((sum, character) => sum + (WIDE.test(character) ? 2 : 1), 0);

  const truncate = (label) => {
    const characters = [...label], start = MAX_NAME_LENGTH / 2;
    if (characters.length <= MAX_NAME_LENGTH) return label;
    return [...characters.slice(0, start), "…", ...characters.slice(1 - start)].join("");
  };

  // Order of two arrays, like tuples in Python.
  const compare = (first, second) => {
    for (let index = 0; index < Math.max(first.length, second.length); index += 1) {
      if (first[index] === second[index]) continue;
      return first[index] === undefined || first[index] < second[index] ? -1 : 1;
    }
    return 0;
  };

  // Gives each item a level without overlaps; narrow items get the lowest levels.
  const assignLevels = (items) => {
    const placed = [];
    const key = ({ start, end, spans, type }) => [end - start, ...spans.flat(), type];
    for (const item of [...items].sort((first, second) => compare(key(first), key(second)))) {
      const overlapping = placed.filter((other) => other.start < item.end && item.start < other.end);
      const taken = new Set(overlapping.map((other) => other.level));
      let level = 0;
      while (taken.has(level)) level += 1;
      placed.push({ ...item, level });
    }
    return placed;
  };

  const barPiece = (item, classes, colour) => {
    const piece = document.createElement("i");
    piece.className = classes;
    piece.dataset[item.kind] = item.number;
    piece.style.setProperty("--c", colour);
    if (item.level) piece.style.setProperty("--l", item.level);
    return piece;
  };

  const addName = (piece, item) => {
    const name = document.createElement("em");
    name.textContent = truncate(item.type);
    piece.append(name);
    piece.tabIndex = 0;
    piece.setAttribute("role", "img");
    piece.setAttribute("aria-label", item.label);
  };

  const withScore = (text, score) => (score === null ? text : `${text} (${score.toFixed(3)})`);

  const entityItems = (sentence) => sentence.entities.map((entity, number) => ({
    kind: "entity", number, type: entity.type, spans: entity.spans, start: entity.spans[0][0], end: entity.spans.at(-1)[1],
    label: withScore(`${entity.type}: ${entity.text}`, entity.score),
  }));

  const relationItems = (sentence) => sentence.relations.map((relation, number) => {
    const head = sentence.entities[relation.head], tail = sentence.entities[relation.tail];
    const words = [head, tail].map((entity) => entity.spans[0][0]);
    const start = Math.min(...words), end = Math.max(...words) + 1;
    return {
      kind: "relation", number, type: relation.type, spans: [[start, end]], start, end, isLeftwards: words[1] < words[0],
      label: withScore(`${head.text} → ${relation.type} → ${tail.text}`, relation.score),
    };
  });

  const addEntity = (item, cells, colour) => {
    const inside = new Set(), starts = new Set(), ends = new Set();
    for (const [start, end] of item.spans) {
      starts.add(start);
      ends.add(end - 1);
      for (let word = start; word < end; word += 1) inside.add(word);
    }
    for (let word = item.start; word < item.end; word += 1) {
      const classes = (starts.has(word) ? " a" : "") + (ends.has(word) ? " z" : "") + (inside.has(word) ? "" : " g");
      cells[word].bars.push(barPiece(item, `d${classes}`, colour));
    }
  };

  const addRelation = (item, cells) => {
    for (let word = item.start; word < item.end; word += 1) {
      const isLast = word === item.end - 1;
      const classes = (word === item.start ? " a" : "") + (isLast ? " z" : "") + (item.isLeftwards ? " l" : "");
      cells[word].bars.push(barPiece(item, `u r${classes}`, DEFAULT_COLOUR));
    }
  };

  // Joins words until the item's name fits above them, and widens the first word if it does not.
  const reserveWidth = (item, cells) => {
    const first = item.start, last = item.end - 1;
    const needed = NAME_CHARACTER * width(truncate(item.type)) + 0.3;
    const firstWidth = TEXT_CHARACTER * width(cells[first].word);
    let available = firstWidth;
    for (let word = first; word < last; word += 1) {
      if (available >= needed) continue;
      cells[word].isJoined = true;
      available += TEXT_CHARACTER * width(cells[word + 1].word) + (cells[word].textAfter ? SPACE : 0);
    }
    if (available < needed) cells[first].minWidth = Math.max(cells[first].minWidth, firstWidth + needed - available);
  };

  // Keeps punctuation on the line of its word, because browsers may break lines next to a word with bars.
  const OPENING = /[\p{Ps}\p{Pi}]$/u, CLOSING = /^[\p{Pe}\p{Pf}\p{Po}\p{Pd}]/u;
  const joinPunctuation = (cells) => cells.slice(1).forEach((next, index) => {
    const cell = cells[index];
    const mayBreak = (cell.bars.length || next.bars.length) && !cell.textAfter;
    const isShort = Math.max(width(cell.word), width(next.word)) <= MAX_JOINED_LENGTH;
    if (mayBreak && isShort && (OPENING.test(cell.word) || CLOSING.test(next.word))) cell.isJoined = true;
  });

  const wordNode = (cell) => {
    if (!cell.bars.length) return cell.word;
    const node = document.createElement("span");
    node.className = "w";
    for (const [side, levels] of Object.entries(cell.levels)) node.style.setProperty(`--${side}`, levels);
    if (cell.minWidth) node.style.minWidth = `${cell.minWidth.toFixed(1)}em`;
    node.append(...cell.bars, cell.word);
    if (!cell.direction) return node;
    const directed = document.createElement("span");
    directed.className = cell.direction;
    directed.append(node);
    return directed;
  };

  return (sentence, colours) => {
    const characters = [...sentence.text];
    const textBetween = (start, end) => characters.slice(start - sentence.start, end - sentence.start).join("");
    const cells = sentence.words.map(([start, end], index) => ({
      word: textBetween(start, end), bars: [], levels: {}, minWidth: 0, isJoined: false,
      textAfter: index + 1 < sentence.words.length ? textBetween(end, sentence.words[index + 1][0]).replace(/\s+/g, " ") : "",
    }));
    for (const [side, items] of [["u", relationItems(sentence)], ["d", entityItems(sentence)]]) {
      for (const item of assignLevels(items)) {
        if (side === "u") addRelation(item, cells);
        else addEntity(item, cells, colours[item.type] ?? DEFAULT_COLOUR);
        addName(cells[item.start].bars.at(-1), item);
        reserveWidth(item, cells);
        for (let word = item.start; word < item.end; word += 1) {
          cells[word].levels[side] = Math.max(cells[word].levels[side] ?? 0, item.level + 1);
        }
      }
    }
    joinPunctuation(cells);
    const drawing = document.createElement("span");
    drawing.className = "drawn";
    const sentenceDirection = direction(sentence.text);
    if (sentenceDirection === "rtl") drawing.dir = "rtl";
    if (RIGHT_TO_LEFT.test(sentence.text)) {
      for (const cell of cells) cell.direction = direction(cell.word) || sentenceDirection || "ltr";
    }
    let line = drawing, wasJoined = false;
    for (const cell of cells) {
      if (cell.isJoined && !wasJoined) {
        line = document.createElement("span");
        line.className = "o";
        drawing.append(line);
      }
      line.append(wordNode(cell));
      if (!cell.isJoined) line = drawing;
      line.append(cell.textAfter);
      wasJoined = cell.isJoined;
    }
    return drawing;
  };
})();
