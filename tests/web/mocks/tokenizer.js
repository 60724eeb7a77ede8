// A tokenizer for the tests of pages: an id is a character's code; 3 is where an answer begins.
function makeTokenizer() {
  const decode = (ids) => String.fromCharCode(...ids);
  return {
    encode: (text) => Array.from(text, (each) => each.charCodeAt(0)),
    decode,
    stream: () => ({ push: (id) => decode([id]), end: () => "" }),
  };
}

function makeChat(segments, tokenizer) {
  const encode = (messages) =>
    messages.flatMap(({ role, content }) => tokenizer.encode(`${role}${segments.between}${content}\n`));
  return { encode: (messages) => [...encode(messages), 3] };
}

export { makeTokenizer, makeChat };
