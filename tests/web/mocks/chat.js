// Conversations for the tests of pages; 3 is where an answer begins.
function makeChat(segments, tokenizer) {
  const encode = (messages) =>
    messages.flatMap(({ role, content }) => tokenizer.encode(`${role}${segments.between}${content}\n`));
  return {
    encode(messages) {
      if (messages.some(({ content }) => content.includes("<|end|>"))) throw new Error("a control token");
      return [...encode(messages), 3];
    },
  };
}

export { makeChat };
