// A tokenizer for the tests of pages: an id is a character's code.
function makeTokenizer() {
  const decode = (ids) => String.fromCharCode(...ids);
  return {
    encode: (text) => Array.from(text, (each) => each.charCodeAt(0)),
    decode,
    stream: () => ({ push: (id) => decode([id]), end: () => "" }),
  };
}

export { makeTokenizer };
