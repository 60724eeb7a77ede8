// Vectors of texts from an exported embedding model. Texts are taken longest first, padded to one of the few
// lengths that were exported, and what is padded is hidden by lengths or by a mask, as page.json says:
// functions [{ name, rows, length }], inputs { ids, lengths | mask }, longest, lowerCase.

// A text's tokens, cut off before the one that ends every text.
function encodeText(tokenizer, facts, text) {
  const ids = tokenizer.encode(facts.lowerCase ? text.toLowerCase() : text);
  if (ids.length <= facts.longest) return ids;
  const closing = tokenizer.encode("").at(-1);
  const last = ids.at(-1) === closing ? closing : ids[facts.longest - 1];
  return [...ids.slice(0, facts.longest - 1), last];
}

// The function for rows of at most this length: the shortest that fits them, and of those the one with the
// fewest rows that takes all, or else with the most.
function chosenFunction(functions, longest, count) {
  const fitting = functions.filter((each) => each.length >= longest);
  const length = Math.min(...fitting.map((each) => each.length));
  const byRows = fitting.filter((each) => each.length === length).sort((one, other) => one.rows - other.rows);
  return byRows.find((each) => each.rows >= count) ?? byRows.at(-1);
}

function batchInputs(facts, rows, { rows: count, length }) {
  const ids = new Int32Array(count * length);
  const lengths = new Int32Array(count).fill(1); // rows that are not there are one token long
  rows.forEach((row, place) => {
    ids.set(row, place * length);
    lengths[place] = row.length;
  });
  if (facts.inputs.lengths) return { [facts.inputs.ids]: ids, [facts.inputs.lengths]: lengths };
  const mask = new Int32Array(count * length);
  lengths.forEach((each, place) => mask.fill(1, place * length, place * length + each));
  return { [facts.inputs.ids]: ids, [facts.inputs.mask]: mask };
}

// Which texts go together: [{ chosen, numbers }, …], the longest first.
function batchesOf(facts, rows) {
  const order = [...rows.keys()].sort((one, other) => rows[other].length - rows[one].length);
  const batches = [];
  for (let done = 0; done < order.length; done += batches.at(-1).numbers.length) {
    const chosen = chosenFunction(facts.functions, rows[order[done]].length, order.length - done);
    batches.push({ chosen, numbers: order.slice(done, done + chosen.rows) });
  }
  return batches;
}

// The vectors of texts, in their order. All batches are submitted at once, since each wait for a result costs
// more than what it waits for: give a few dozen texts at a time. onProgress(done) counts texts.
async function embedTexts(model, facts, tokenizer, texts, onProgress) {
  const rows = texts.map((text) => encodeText(tokenizer, facts, text));
  const vectors = new Array(texts.length);
  let done = 0;
  async function embedBatch({ chosen, numbers }) {
    const inputs = batchInputs(
      facts,
      numbers.map((number) => rows[number]),
      chosen,
    );
    const output = Object.values(await model.run(inputs, chosen.name))[0];
    const width = output.shape.at(-1);
    numbers.forEach((number, place) => {
      vectors[number] = output.data.slice(place * width, (place + 1) * width);
    });
    done += numbers.length;
    onProgress?.(done);
  }
  await Promise.all(batchesOf(facts, rows).map(embedBatch));
  return vectors;
}

export { embedTexts, encodeText, chosenFunction };
