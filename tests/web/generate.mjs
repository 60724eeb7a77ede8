// An exported chat page's answer without its page: the ids of a prompt, and those that follow it, twice.
import { readFile } from "node:fs/promises";

async function main({ folder, prompt, most, variant }) {
  const read = async (name) => JSON.parse(await readFile(new URL(name, folder), "utf8"));
  const { open } = await import(new URL("model.js", folder));
  const { generate } = await import(new URL("generation.js", folder));
  const { makeTokenizer } = await import(new URL("tokenizer.js", folder));
  const { makeChat } = await import(new URL("chat.js", folder));
  const facts = await read("page.json");
  const chat = makeChat(facts.chat, makeTokenizer(await read("tokenizer.json")));
  const ids = chat.encode([{ role: "user", content: prompt }]);
  const model = await open({ variant });
  const report = {};
  const written = async () => {
    const found = [];
    delete report.cachedTokens;
    for await (const id of generate(model, facts, ids, { greedy: true, mostTokens: most, report })) found.push(id);
    return found;
  };
  const [first, again] = [await written(), await written()];
  model.close();
  return { prompt: ids, ids: first, again, cached: report.cachedTokens };
}

export { main };
