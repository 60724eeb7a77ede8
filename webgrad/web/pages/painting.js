// Pictures out of noise, one step at a time: no elements here, only numbers.
// Facts are those of page.json: numbers (the names of a row's), schedules (by how many steps: start and rows),
// draws (the words that begin and step draw noise with), noClass, texts. The noise of a seed is that
// of Python's generators: each draw has a key of its own, Threefry of the seed and the draw's number.

const ROTATIONS = [
  [13, 15, 26, 6],
  [17, 29, 16, 24],
];
const PARITY = 0x1bd11bda;
const WORD = 2 ** 32;

function threefry([first, second], [low, high]) {
  const keys = [first, second, (first ^ second ^ PARITY) >>> 0];
  let [x, y] = [(low + keys[0]) >>> 0, (high + keys[1]) >>> 0];
  for (let block = 0; block < 5; block += 1) {
    for (const turn of ROTATIONS[block % 2]) {
      x = (x + y) >>> 0;
      y = ((y << turn) | (y >>> (32 - turn))) ^ x;
    }
    x = (x + keys[(block + 1) % 3]) >>> 0;
    y = (y + keys[(block + 2) % 3] + block + 1) >>> 0;
  }
  return [x, y];
}

function wordsOf(number) {
  return [number % WORD, Math.floor(number / WORD)];
}

// The words of the next draws of a seed, by the names of a function's inputs, two for each draw.
function drawsOf(seed) {
  const key = wordsOf(seed);
  let draw = 0;
  return (names) => {
    const words = [];
    while (words.length < names.length) {
      words.push(...threefry(key, wordsOf(draw)));
      draw += 1;
    }
    return Object.fromEntries(names.map((name, at) => [name, words[at]]));
  };
}

// The classes of so many pictures: with guidance those of no class first.
function classInputs(facts, { classes, guidance }) {
  if (!facts.classes?.length) return {};
  const before = guidance === null || guidance === undefined ? [] : classes.map(() => facts.noClass);
  return { classes: Int32Array.from([...before, ...classes]) };
}

// A text's ids, cut or filled up to the length that an encoder wants.
function idsOf(tokenizer, { length, start, end, padding }, text) {
  const begun = start === null ? [] : [start];
  const found = tokenizer.encode(text, false).slice(0, length - begun.length - 1);
  const ids = [...begun, ...found, end];
  return [...ids, ...new Array(length - ids.length).fill(padding)];
}

// The states of texts: the negative one's first, where there is guidance.
function writeTexts(model, { texts }, tokenizers, { prompt, negative, guidance }) {
  const written = guidance === null || guidance === undefined ? [prompt] : [negative, prompt];
  const ids = texts.encoders.map((each, at) => [
    each.input,
    Int32Array.from(written.flatMap((text) => idsOf(tokenizers[at], each, text))),
  ]);
  const kept = texts.emptyIsZero && !negative ? 0 : 1;
  model.submit("encode", { kept, ...Object.fromEntries(ids) });
}

// Pictures after each step: { step, steps, pictures }, where pictures are null but for each `every`-th step and
// the last one. options: layout, steps, seed, classes (one for each picture), guidance, prompt, negative,
// every, signal (an AbortSignal, after which the last one shows what there is).
async function* paint(model, facts, tokenizers, options) {
  const { layout, steps, seed, guidance, every = 1, signal } = options;
  const { start, rows } = facts.schedules[steps];
  const draw = drawsOf(seed);
  const more = { ...classInputs(facts, options) };
  if (guidance !== null && guidance !== undefined) more.scale = guidance;
  if (facts.texts) writeTexts(model, facts, tokenizers, options);
  const show = async () => (await model.run({}, `show_${layout.name}`)).pictures;
  model.submit(`begin_${layout.name}`, { start, ...draw(facts.draws.begin) });
  for (const [at, row] of rows.entries()) {
    const numbers = Object.fromEntries(facts.numbers.map((name, place) => [name, row[place]]));
    model.submit(`step_${layout.name}`, { ...numbers, ...more, ...draw(facts.draws.step) });
    const isShown = at + 1 === rows.length || (at + 1) % every === 0;
    if (!isShown) await model.device.done();
    const shown = isShown || signal?.aborted ? await show() : null;
    yield { step: at + 1, steps: rows.length, pictures: shown };
    if (!signal?.aborted) continue;
    if (!shown) yield { step: at + 1, steps: rows.length, pictures: await show() };
    return;
  }
}

// How many columns so many pictures are shown in.
function columnsOf(count) {
  return Math.ceil(Math.sqrt(count));
}

// Pictures side by side as RGBA: { data, width, height }; values from -1 to 1 become bytes.
function sheetOf({ data, shape }) {
  const [count, channels, high, wide] = shape;
  const columns = columnsOf(count);
  const [width, height] = [columns * wide, Math.ceil(count / columns) * high];
  const sheet = new Uint8ClampedArray(width * height * 4);
  for (let picture = 0; picture < count; picture += 1) {
    const [top, left] = [Math.floor(picture / columns) * high, (picture % columns) * wide];
    for (let place = 0; place < high * wide; place += 1) {
      const to = 4 * ((top + Math.floor(place / wide)) * width + left + (place % wide));
      for (let channel = 0; channel < 3; channel += 1) {
        const plane = picture * channels + (channels === 1 ? 0 : channel);
        sheet[to + channel] = (data[plane * high * wide + place] * 0.5 + 0.5) * 255;
      }
      sheet[to + 3] = 255;
    }
  }
  return { data: sheet, width, height };
}

export { paint, drawsOf, columnsOf, sheetOf };
