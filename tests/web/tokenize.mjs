// The tokenizer of pages in node: in come on stdin {tokenizers: {name: {spec, segments, texts, ids, chats}}}, out
// come by the same names the ids of texts, the texts of ids (at once and piece by piece), and the ids of
// conversations, or what was thrown.

import { readFileSync } from "node:fs";

const folder = new URL("../../webgrad/web/", import.meta.url);
const load = async (name) => import(`data:text/javascript,${encodeURIComponent(readFileSync(new URL(name, folder), "utf8"))}`);

const { makeTokenizer } = await load("tokenizer.js");
const { makeChat } = await load("chat.js");

const attempt = (make) => {
  try {
    return make();
  } catch (error) {
    return String(error.message);
  }
};

const streamed = (tokenizer, ids) => {
  const stream = tokenizer.stream();
  const pieces = ids.map((id) => stream.push(id));
  return [...pieces, stream.end()];
};

const answer = ({ spec, segments, texts = [], ids = [], chats = [] }) => {
  const tokenizer = makeTokenizer(spec);
  const chat = segments && makeChat(segments, tokenizer);
  return {
    ids: texts.map((text) => tokenizer.encode(text)),
    texts: ids.map((each) => [tokenizer.decode(each), tokenizer.decode(each, false)]),
    pieces: ids.map((each) => streamed(tokenizer, each)),
    chats: chats.map((messages) => attempt(() => chat.encode(messages))),
  };
};

const { tokenizers } = JSON.parse(readFileSync(0, "utf8"));
const answers = Object.entries(tokenizers).map(([name, given]) => [name, answer(given)]);
process.stdout.write(JSON.stringify(Object.fromEntries(answers)));
