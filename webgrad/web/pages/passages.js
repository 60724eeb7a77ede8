// Texts as passages, and passages by how near they are to a query: no elements here, only texts and numbers.

const segmenter = globalThis.Intl?.Segmenter && new Intl.Segmenter(undefined, { granularity: "sentence" });
const STRETCH = 4096; // characters that a segmenter is given: its time grows with their square

// Sentences by the browser's rules; the last one of a stretch may go on behind it, so it comes again.
function* segmentedSentences(text) {
  let start = 0;
  for (let size = STRETCH; start < text.length; ) {
    const found = [...segmenter.segment(text.slice(start, start + size))];
    const isLast = start + size >= text.length;
    for (const { segment, index } of isLast ? found : found.slice(0, -1)) yield [segment, start + index];
    start += isLast ? size : found.at(-1).index;
    size = found.length > 1 ? STRETCH : 2 * size;
  }
}

function* sentencesOf(text) {
  if (segmenter) {
    yield* segmentedSentences(text);
    return;
  }
  for (const found of text.matchAll(/[^.!?…。！？\n]*(?:[.!?…。！？]+["'”’)\]]*\s*|\n+|$)/gu)) {
    if (found[0]) yield [found[0], found.index];
  }
}

function wordCount(text) {
  return text.match(/\S+/g)?.length ?? 0;
}

// { text, start, end } without the white space around it, or nothing where there is no letter or digit.
function passage(text, start, end) {
  const part = text.slice(start, end);
  if (!/[\p{L}\p{N}]/u.test(part)) return [];
  const begin = start + part.length - part.trimStart().length;
  const shown = part.trim();
  return [{ text: shown, start: begin, end: begin + shown.length }];
}

// Words too many for a passage and without a sentence's end: cut after so many.
function* piecesOf(text, start, longest) {
  let count = 0;
  let from = 0;
  for (const word of text.matchAll(/\S+\s*/g)) {
    count += 1;
    if (count < longest) continue;
    yield [start + from, start + word.index + word[0].length];
    from = word.index + word[0].length;
    count = 0;
  }
  if (from < text.length) yield [start + from, start + text.length];
}

function* sentenceRanges(text, start, longest) {
  for (const [sentence, index] of sentencesOf(text)) yield* piecesOf(sentence, start + index, longest);
}

// Sentences one after another as long as they fit together.
function* gatheredRanges(text, start, longest) {
  let from = start;
  let to = start;
  let count = 0;
  for (const [sentence, index] of sentencesOf(text)) {
    const words = wordCount(sentence);
    if (count > 0 && count + words > longest) {
      yield* piecesOf(text.slice(from - start, to - start), from, longest);
      from = start + index;
      count = 0;
    }
    to = start + index + sentence.length;
    count += words;
  }
  if (to > from) yield* piecesOf(text.slice(from - start, to - start), from, longest);
}

// What lies between lines that are empty.
function* paragraphsOf(text) {
  let start = 0;
  for (const gap of text.matchAll(/\n[ \t]*\n\s*/g)) {
    yield [text.slice(start, gap.index), start];
    start = gap.index + gap[0].length;
  }
  yield [text.slice(start), start];
}

const RANGES = { sentence: sentenceRanges, paragraph: gatheredRanges };

// The passages of a text, in its order: by "paragraph" (longer ones at a sentence's end) or by "sentence",
// of at most so many words.
function splitPassages(text, by = "paragraph", longest = 80) {
  const passages = [];
  for (const [paragraph, at] of paragraphsOf(text)) {
    for (const [start, end] of RANGES[by](paragraph, at, longest)) {
      passages.push(...passage(text, start, end));
    }
  }
  return passages;
}

function cosine(left, right) {
  let product = 0;
  let leftSquares = 0;
  let rightSquares = 0;
  for (let place = 0; place < left.length; place += 1) {
    product += left[place] * right[place];
    leftSquares += left[place] ** 2;
    rightSquares += right[place] ** 2;
  }
  return product / Math.max(Math.sqrt(leftSquares * rightSquares), 1e-12);
}

// The nearest vectors, best first: [[place, cosine], …].
function nearest(query, vectors, most = 10) {
  const scored = vectors.map((vector, place) => [place, cosine(query, vector)]);
  return scored.sort((one, other) => other[1] - one[1]).slice(0, most);
}

// [[text, does it begin like a word of the query], …]: short words tell nothing, and endings may differ.
function highlighted(text, query) {
  const wanted = query.toLowerCase().match(/[\p{L}\p{N}]{3,}/gu) ?? [];
  const stems = wanted.map((word) => word.slice(0, Math.max(3, word.length - 2)));
  return text.split(/([\p{L}\p{N}]+)/u).map((part) => {
    const word = part.toLowerCase();
    return [
      part,
      stems.some((stem, place) => word.startsWith(stem) && word.length <= wanted[place].length + 3),
    ];
  });
}

export { splitPassages, nearest, cosine, highlighted };
