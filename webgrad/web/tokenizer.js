// Text to token ids and back, the same as Python's: makeTokenizer(spec), where spec is the tokenizer.json
// that webgrad/web/tokenizer_data.py writes. A text goes through: added tokens are found, the rest is normalized,
// cut into words, and each word becomes ids by merges (BPE), longest pieces (WordPiece) or the likeliest
// pieces (Unigram). Sets of characters come with the spec, so a browser's Unicode version does not matter.

const CACHED = { words: 20000, length: 64 };
const MOST_PLACES = 2 ** 31; // a heap's number is a rank times this, and a place

// Characters and expressions

const utf8 = new TextEncoder();

/** The characters by which byte-level vocabularies write the 256 bytes: printable ones are their own. */
const byteCharacters = () => {
  const isPrintable = (byte) => (byte > 32 && byte < 127) || (byte > 160 && byte !== 173);
  let others = 256;
  return Array.from({ length: 256 }, (_, byte) => String.fromCharCode(isPrintable(byte) ? byte : others++));
};

const BYTE_CHARACTERS = byteCharacters();
const BYTES = new Map(BYTE_CHARACTERS.map((character, byte) => [character, byte]));

/** A set of characters, written as gaps and lengths by turns, as the inside of an expression's brackets. */
const classText = (written) => {
  const numbers = written.split(" ").map((digits) => parseInt(digits, 36));
  // Characters as they are: V8 optimizes no expression whose source is longer than 20 KB.
  const shown = (code) => (code < 128 ? `\\u{${code.toString(16)}}` : String.fromCodePoint(code));
  let [text, end] = ["", 0];
  for (let at = 0; at < numbers.length; at += 2) {
    const first = end + numbers[at];
    end = first + numbers[at + 1] + 1;
    text += first === end - 1 ? shown(first) : `${shown(first)}-${shown(end - 1)}`;
  }
  return text;
};

/** A function that makes expressions of sources in which @3 stands for the set number 3. */
const makeCompile = (classes) => {
  const texts = classes.map(classText);
  return (source, flags = "gu") => new RegExp(source.replace(/@(\d+)/g, (_, place) => texts[place]), flags);
};

const escaped = (text) => text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");

// Normalizers: each kind of step makes a function from text to text

const NORMALIZERS = {
  replace: (compile, source, content) => {
    const expression = compile(source);
    return (text) => text.replace(expression, () => content);
  },
  replaceText: (compile, from, to) => (text) => text.replaceAll(from, () => to),
  surround: (compile, source, beside) => {
    const expression = compile(source);
    return (text) => text.replace(expression, (found) => beside + found + beside);
  },
  form: (compile, name) => (text) => text.normalize(name),
  // One by one, since a whole word's last sigma would become another letter.
  lower: () => (text) => Array.from(text, (character) => character.toLowerCase()).join(""),
  prepend: (compile, beginning) => (text) => (text ? beginning + text : text),
};

// Pre-tokenizers: each kind of step makes a function from a piece, and whether it begins the text, to pieces

/** Texts of [text, isMatch]; what belongs to the one before is put to it. */
const joined = (parts, belongs, put) => {
  const pieces = [];
  let before = false;
  for (const [text, isMatch] of parts) {
    if (pieces.length > 0 && belongs(isMatch, before)) pieces.push(put(pieces.pop(), text));
    else pieces.push(text);
    before = isMatch;
  }
  return pieces;
};

const isAlone = (isMatch, before) => isMatch && !before;

/** What becomes of the matches of an expression: in come [text, isMatch], out come texts. */
const BEHAVIORS = {
  Isolated: (parts) => parts.map(([text]) => text),
  Removed: (parts) => parts.filter(([, isMatch]) => !isMatch).map(([text]) => text),
  Contiguous: (parts) => joined(parts, (isMatch, before) => isMatch === before, (one, two) => one + two),
  MergedWithPrevious: (parts) => joined(parts, isAlone, (one, two) => one + two),
  MergedWithNext: (parts) => joined(parts.reverse(), isAlone, (one, two) => two + one).reverse(),
};

/** A text as the matches of an expression and what lies between them. */
const cut = (text, expression, invert) => {
  const parts = [];
  let end = 0;
  expression.lastIndex = 0; // matchAll would make a copy of the expression for each text
  for (let match = expression.exec(text); match !== null; match = expression.exec(text)) {
    if (match.index > end) parts.push([text.slice(end, match.index), invert]);
    end = match.index + match[0].length;
    parts.push([match[0], !invert]);
    if (match[0] === "") expression.lastIndex++;
  }
  if (end < text.length) parts.push([text.slice(end), invert]);
  return parts;
};

const PRE_TOKENIZERS = {
  split: (compile, source, behavior, invert) => {
    const expression = compile(source);
    return (text) => BEHAVIORS[behavior](cut(text, expression, invert));
  },
  prefix: (compile, beginning) => (text) => [text.startsWith(beginning) ? text : beginning + text],
  marks: (compile, mark, scheme) => (text, isFirst) => {
    const marked = text.replaceAll(" ", mark);
    const takesOne = scheme === "always" || (scheme === "first" && isFirst);
    return [takesOne && !marked.startsWith(mark) ? mark + marked : marked];
  },
};

// BPE

/** Merges by pairs of ids: the rank of each, and what it makes. */
const readMerges = (merges, vocabulary, ids) => {
  const size = vocabulary.length;
  const made = new Int32Array(merges.length / 2);
  const ranks = new Map();
  let id = 0;
  for (let rank = 0; rank < made.length; rank++) {
    id += merges[2 * rank];
    made[rank] = id;
    const cutAt = merges[2 * rank + 1];
    const token = vocabulary[id];
    ranks.set(ids.get(token.slice(0, cutAt)) * size + ids.get(token.slice(cutAt)), rank);
  }
  return { made, rankOf: (left, right) => ranks.get(left * size + right) };
};

/** A heap of numbers, the smallest first. */
const makeHeap = () => {
  const numbers = [];
  return {
    push: (number) => {
      let at = numbers.length;
      while (at > 0 && numbers[(at - 1) >> 1] > number) {
        numbers[at] = numbers[(at - 1) >> 1];
        at = (at - 1) >> 1;
      }
      numbers[at] = number;
    },
    /** The smallest number, undefined if there is none. */
    pop: () => {
      const smallest = numbers[0];
      const last = numbers.pop();
      const count = numbers.length;
      let at = 0;
      for (let child = 1; child < count; child = 2 * at + 1) {
        if (child + 1 < count && numbers[child + 1] < numbers[child]) child++;
        if (numbers[child] >= last) break;
        numbers[at] = numbers[child];
        at = child;
      }
      if (count > 0) numbers[at] = last;
      return smallest;
    },
  };
};

/** The ids after all merges, the first of the list and leftmost first: a linked list, and a heap of pairs. */
const mergeAll = (ids, { made, rankOf }) => {
  const count = ids.length;
  const next = Int32Array.from({ length: count }, (_, at) => at + 1);
  const previous = Int32Array.from({ length: count }, (_, at) => at - 1);
  const gone = new Uint8Array(count);
  const heap = makeHeap();
  const offer = (at) => {
    if (at < 0 || next[at] >= count) return;
    const rank = rankOf(ids[at], ids[next[at]]);
    if (rank !== undefined) heap.push(rank * MOST_PLACES + at);
  };
  for (let at = 0; at + 1 < count; at++) offer(at);
  for (let top = heap.pop(); top !== undefined; top = heap.pop()) {
    const at = top % MOST_PLACES;
    const rank = (top - at) / MOST_PLACES;
    const right = next[at];
    const isThere = !gone[at] && right < count && rankOf(ids[at], ids[right]) === rank;
    if (!isThere) continue; // one of the two has been merged since
    ids[at] = made[rank];
    gone[right] = 1;
    next[at] = next[right];
    if (next[right] < count) previous[next[right]] = at;
    offer(previous[at]);
    offer(at);
  }
  return ids.filter((_, at) => !gone[at]);
};

/** The ids of a text's bytes, null if the vocabulary has not all of them. */
const bytesAsTokens = (text, ids) => {
  const hex = (byte) => byte.toString(16).toUpperCase().padStart(2, "0");
  const found = Array.from(utf8.encode(text), (byte) => ids.get(`<0x${hex(byte)}>`));
  return found.includes(undefined) ? null : found;
};

const makeBpe = (model, ids) => {
  const merges = readMerges(model.merges, model.vocabulary, ids);

  const firstIds = (word) => {
    const found = [];
    let isUnknown = false; // an unknown character is waiting
    const flush = () => {
      if (isUnknown) found.push(model.unknown);
      isUnknown = false;
    };
    const characters = [...word];
    if (characters.length) characters[characters.length - 1] += model.suffix; // tokens that end words have it
    for (const character of characters) {
      const id = ids.get(character);
      const bytes = id === undefined && model.byteFallback ? bytesAsTokens(character, ids) : null;
      if (id !== undefined) {
        flush();
        found.push(id);
      } else if (bytes !== null) {
        found.push(...bytes);
      } else if (model.unknown !== null) {
        if (!model.fuseUnknown) flush();
        isUnknown = true;
      }
    }
    flush();
    return found;
  };

  return (word) => {
    const whole = model.wholeWords ? ids.get(word) : undefined;
    return whole === undefined ? mergeAll(firstIds(word), merges) : [whole];
  };
};

// WordPiece and Unigram

const makeWordPiece = (model, ids) => (word) => {
  if (word.length > model.longest && [...word].length > model.longest) return [model.unknown];
  const found = [];
  for (let start = 0; start < word.length; ) {
    const before = start > 0 ? model.continuing : "";
    let end = word.length;
    while (end > start && !ids.has(before + word.slice(start, end))) end--;
    if (end === start) return [model.unknown];
    found.push(ids.get(before + word.slice(start, end)));
    start = end;
  }
  return found;
};

const makeUnigram = (model, ids) => {
  const scores = model.single ? model.scores.map(Math.fround) : model.scores;
  const unknownScore = scores.reduce((least, score) => Math.min(least, score), Infinity) - 10;
  const longest = model.vocabulary.reduce((most, token) => Math.max(most, token.length), 0);

  /** For each place of a word the best token that ends there, and where it starts. */
  const bestEnds = (word) => {
    const best = Array.from({ length: word.length + 1 }, () => ({ start: -1, score: 0, id: -1 }));
    const offer = (start, end, id, score) => {
      const total = best[start].score + score;
      if (best[end].start < 0 || total > best[end].score) best[end] = { start, score: total, id };
    };
    for (let start = 0; start < word.length; ) {
      const one = word.codePointAt(start) > 0xffff ? 2 : 1;
      let isKnown = false;
      for (let end = start + one; end <= Math.min(word.length, start + longest); end++) {
        const id = ids.get(word.slice(start, end));
        if (id === undefined) continue;
        offer(start, end, id, scores[id]);
        isKnown ||= end === start + one;
      }
      if (!isKnown) offer(start, start + one, model.unknown, unknownScore);
      start += one;
    }
    return best;
  };

  /** The pieces of a word; unknown ones beside each other are one. */
  const piecesOf = (word) => {
    const best = bestEnds(word);
    const pieces = [];
    let wasUnknown = false;
    for (let end = word.length; end > 0; end = best[end].start) {
      const text = word.slice(best[end].start, end);
      const isUnknown = best[end].id === model.unknown;
      if (isUnknown && wasUnknown) pieces[pieces.length - 1] = text + pieces.at(-1);
      else pieces.push(text);
      wasUnknown = isUnknown;
    }
    return pieces.reverse();
  };

  return (word) => piecesOf(word).flatMap((piece) => {
    if (ids.has(piece)) return [ids.get(piece)];
    return (model.byteFallback && bytesAsTokens(piece, ids)) || [model.unknown];
  });
};

const MODELS = { bpe: makeBpe, wordpiece: makeWordPiece, unigram: makeUnigram };

/** A function from a word to its ids, which remembers short words. */
const makeModel = (model) => {
  const ids = new Map();
  model.vocabulary.forEach((token, id) => token !== null && ids.set(token, id));
  const encode = MODELS[model.kind](model, ids);
  const spelled = (word) => Array.from(utf8.encode(word), (byte) => BYTE_CHARACTERS[byte]).join("");
  const known = new Map();
  return (word) => {
    if (known.has(word)) return known.get(word);
    const found = encode(model.bytes ? spelled(word) : word);
    if (known.size >= CACHED.words) known.clear();
    if (word.length <= CACHED.length) known.set(word, found);
    return found;
  };
};

// Added tokens

/** A function that cuts a text at added tokens into {text, isFirst} and {id}. */
const makeFinder = (tokens, compile, spec) => {
  if (tokens.length === 0) return (text) => [{ text, isFirst: true }];
  const byText = new Map(tokens.map((token) => [token.found, token]));
  const longestFirst = [...byText.keys()].sort((one, other) => other.length - one.length);
  const expression = new RegExp(longestFirst.map(escaped).join("|"), "gu");
  const wordBefore = spec.word && compile(`${spec.word}$`, "u");
  const wordAfter = spec.word && compile(`^${spec.word}`, "u");
  const space = spec.space && compile(`^${spec.space}$`, "u");

  const isApart = (text, start, end) =>
    !wordBefore.test(text.slice(Math.max(0, start - 2), start)) && !wordAfter.test(text.slice(end, end + 2));

  return (text) => {
    const parts = [];
    let last = 0;
    for (const match of text.matchAll(expression)) {
      const token = byText.get(match[0]);
      let start = match.index;
      let end = start + match[0].length;
      if (token.single_word && !isApart(text, start, end)) continue;
      while (token.lstrip && start > last && space.test(text[start - 1])) start--;
      while (token.rstrip && end < text.length && space.test(text[end])) end++;
      if (start > last) parts.push({ text: text.slice(last, start), isFirst: last === 0 });
      parts.push({ id: token.id });
      last = end;
    }
    if (last < text.length) parts.push({ text: text.slice(last), isFirst: last === 0 });
    return parts;
  };
};

// From ids to text

const CLEANED = [
  [" .", "."], [" ?", "?"], [" !", "!"], [" ,", ","], [" ' ", "'"], [" n't", "n't"], [" 'm", "'m"],
  [" do not", " don't"], [" 's", "'s"], [" 've", "'ve"], [" 're", "'re"],
];

/** The text of a word's token; the first one has no space before it. */
const wordText = (token, isFirst, { continuing, cleanUp }) => {
  let text = isFirst ? token : ` ${token}`;
  if (!isFirst && continuing !== null && token.startsWith(continuing)) text = token.slice(continuing.length);
  return cleanUp ? CLEANED.reduce((cleaned, [from, to]) => cleaned.replaceAll(from, to), text) : text;
};

/** The bytes of UTF-8 that a token stands for, by the kind of the spec's decoder. */
const TOKEN_BYTES = {
  bytes: (token) => {
    const bytes = Array.from(token, (character) => BYTES.get(character));
    return bytes.includes(undefined) ? utf8.encode(token) : Uint8Array.from(bytes);
  },
  marks: (token, isFirst, decoder) => {
    if (isFirst && decoder.bareFirst) return utf8.encode(token.replaceAll("▁", ""));
    const byte = decoder.byteTokens && /^<0x([0-9a-fA-F]{2})>$/.exec(token);
    const bytes = byte ? Uint8Array.of(parseInt(byte[1], 16)) : utf8.encode(token.replaceAll("▁", " "));
    return isFirst && decoder.stripFirst && bytes[0] === 32 ? bytes.subarray(1) : bytes;
  },
  words: (token, isFirst, decoder) => utf8.encode(wordText(token, isFirst, decoder)),
};

/** Text out of ids as they come: push gives what is whole by now, end what was held back. */
const makeStream = (tokens, decoder, skipped) => {
  const text = new TextDecoder("utf-8", { ignoreBOM: true });
  const bytesOf = TOKEN_BYTES[decoder.kind];
  let isFirst = true;
  return {
    push: (id) => {
      const token = tokens[id];
      if (token === undefined || token === null || skipped.has(id)) return "";
      const bytes = bytesOf(token, isFirst, decoder);
      isFirst = false;
      return text.decode(bytes, { stream: true });
    },
    end: () => {
      isFirst = true;
      return text.decode();
    },
  };
};

/** A tokenizer of what webgrad/web/tokenizer_data.py writes. */
const makeTokenizer = (spec) => {
  if (spec.format !== "webgrad-tokenizer" || spec.version !== 1) {
    throw new Error(`this is no tokenizer that this page can read (${spec.format} ${spec.version})`);
  }
  const compile = makeCompile(spec.classes);
  const made = (kinds, steps) => steps.map(([kind, ...settings]) => kinds[kind](compile, ...settings));
  const normalizers = made(NORMALIZERS, spec.normalizer);
  const preTokenizers = made(PRE_TOKENIZERS, spec.preTokenizer);
  const model = makeModel(spec.model);
  const findWritten = makeFinder(spec.added.filter((token) => !token.normalized), compile, spec);
  const findNormalized = makeFinder(spec.added.filter((token) => token.normalized), compile, spec);
  const tokens = [...spec.model.vocabulary];
  for (const token of spec.added) tokens[token.id] = token.text;
  const special = new Map(spec.added.filter((token) => token.special).map(({ id, text }) => [id, text]));

  /** A text in parts: {id} for an added token, {ids, written} for what lies between, as it was written. */
  const parts = (text) => findWritten(text).flatMap((part) => {
    if (part.id !== undefined) return [part];
    const normalized = normalizers.reduce((now, normalize) => normalize(now), part.text);
    return findNormalized(normalized).map((inner) => {
      if (inner.id !== undefined) return inner;
      return { ids: idsOf(inner.text, part.isFirst && inner.isFirst), written: part.text };
    });
  });

  const idsOf = (text, isFirst) => {
    let pieces = [text];
    for (const step of preTokenizers) {
      pieces = pieces.flatMap((piece, at) => (piece ? step(piece, isFirst && at === 0) : []));
    }
    return pieces.flatMap((piece) => (piece ? model(piece) : []));
  };

  const encode = (text, addSpecialTokens = true) => {
    const ids = parts(text.toWellFormed()).flatMap((part) => part.ids ?? [part.id]);
    return addSpecialTokens ? [...spec.before, ...ids, ...spec.after] : ids;
  };

  const stream = (skipSpecialTokens = true) =>
    makeStream(tokens, spec.decoder, skipSpecialTokens ? special : new Map());

  const decode = (ids, skipSpecialTokens = true) => {
    const { push, end } = stream(skipSpecialTokens);
    return Array.from(ids, push).join("") + end();
  };

  return { encode, decode, stream, parts, special, stop: new Set(spec.stop), spec };
};

export { makeTokenizer };
