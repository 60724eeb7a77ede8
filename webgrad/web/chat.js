// Conversations to token ids, the same as Python's Tokenizer.encode_chat: makeChat(segments, tokenizer).
// Segments are what webgrad/web/chat_segments.py makes of a model's chat template: texts between messages.
// What a message writes like a control token is encoded as the characters it is written with.

// What Python takes for spaces at a text's ends, which differs from JavaScript's trim.
const SPACES = "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
const FIRST_SPACES = new RegExp(`^[${SPACES}]+`);
const LAST_SPACES = new RegExp(`(?<![${SPACES}])[${SPACES}]+$`);
const END_OF_THOUGHTS = "</think>";

const afterThoughts = (text) => text.slice(text.lastIndexOf(END_OF_THOUGHTS) + END_OF_THOUGHTS.length);

/** What templates do with a content: take thoughts out of it, then strip it. */
const CUTS = {
  none: (text) => text,
  thoughts: (text) => (text.includes(END_OF_THOUGHTS) ? afterThoughts(text) : text),
  thoughtsAndLines: (text) =>
    text.includes(END_OF_THOUGHTS) ? afterThoughts(text).replace(/^\n+/, "") : text,
};
const STRIPS = {
  none: (text) => text,
  both: (text) => text.replace(FIRST_SPACES, "").replace(LAST_SPACES, ""),
  start: (text) => text.replace(FIRST_SPACES, ""),
  end: (text) => text.replace(LAST_SPACES, ""),
};

/** A function that breaks what could become a special token after its first character, by a character that
 * the tokenizer takes out again. Segments follow a content: what ends like a token's start is broken, too. */
const makeBreaker = (special, breaker) => {
  const tokens = [...special].filter((token) => token !== "");
  if (tokens.length === 0) return (text) => text.replaceAll(breaker, "");
  const escaped = tokens.map((token) => token.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&"));
  const anyToken = new RegExp(`(?=${escaped.join("|")})`, "gu");
  const longest = Math.max(...tokens.map((token) => token.length));
  const begins = (text) => tokens.some((token) => token.startsWith(text));

  return (content) => {
    const text = content.replaceAll(breaker, "");
    const places = new Set(Array.from(text.matchAll(anyToken), (match) => match.index));
    for (const tail of [text, STRIPS.end(text)]) {
      for (let start = Math.max(0, tail.length - longest + 1); start < tail.length; start++) {
        if (begins(tail.slice(start))) places.add(start);
      }
    }
    let written = "";
    let last = 0;
    for (const place of [...places].sort((one, other) => one - other)) {
      const end = place + (text.codePointAt(place) > 0xffff ? 2 : 1);
      written += text.slice(last, end) + breaker;
      last = end;
    }
    return written + text.slice(last);
  };
};

/** encode(messages) → ids, which end where the answer starts; messages are [{ role, content }, …]. */
const makeChat = (segments, tokenizer) => {
  const broken = makeBreaker(tokenizer.special.values(), tokenizer.spec.break);

  const joint = (before, after) => {
    const text = segments.joints[before]?.[after];
    if (text !== undefined) return text;
    const place = before === "start" ? "at the start" : `after one of the role "${before}"`;
    throw new Error(
      after === "end"
        ? `this model answers messages of the user, not one of the role "${before}"`
        : `this model's conversations have no message of the role "${after}" ${place}`,
    );
  };

  const contentOf = ({ role, content }) => {
    if (typeof content !== "string") throw new Error(`the message of the role "${role}" has no text`);
    const [cut, strip] = segments.contents[role];
    const text = STRIPS[strip](CUTS[cut](broken(content.toWellFormed())));
    if (text === "" && segments.neverEmpty.includes(role)) {
      throw new Error(`the message of the role "${role}" is empty: leave it out`);
    }
    return text;
  };

  const write = (messages) => {
    let text = "";
    let before = "start";
    for (const message of messages) {
      text += joint(before, message.role) + contentOf(message);
      before = message.role;
    }
    return text + joint(before, "end");
  };

  const encode = (messages) => tokenizer.parts(write(messages)).flatMap((part) => {
    if (part.id !== undefined) return [part.id];
    const isForged = (id) => tokenizer.special.has(id) && id !== tokenizer.spec.model.unknown;
    const forged = part.written.includes(tokenizer.spec.break) ? part.ids.find(isForged) : undefined;
    if (forged === undefined) return part.ids;
    throw new Error(
      `a message writes the control token ${tokenizer.special.get(forged)}, and this model's vocabulary ` +
        "has no other way to write it: take it out of the message",
    );
  });

  return { encode };
};

export { makeChat };
