// Messages as elements: text stays text, and only what stands between ``` fences is set apart as code.
import { copyFrom, element } from "./page_elements.js";

// [["div" | "pre", text], …] of an answer that may still grow.
function fencedParts(text) {
  const parts = [];
  for (const [place, piece] of text.split(/^[ \t]*```/m).entries()) {
    if (place % 2 === 0) parts.push(["div", place > 0 ? piece.replace(/^[^\n]*\n/, "") : piece]);
    else parts.push(["pre", piece.replace(/^[^\n]*\n?/, "").replace(/\n$/, "")]);
  }
  return parts.filter(([tag, words]) => tag === "pre" || words.trim() !== "").map(trimmed);
}

function trimmed([tag, words]) {
  return [tag, tag === "div" ? words.replace(/^\n+|\s+$/g, "") : words];
}

// Shows a text; what is there already and does not change is left alone, so that it can be selected.
function showWords(target, text) {
  const parts = fencedParts(text);
  while (target.children.length > parts.length) target.lastElementChild.remove();
  parts.forEach(([tag, words], place) => {
    let child = target.children[place];
    if (child?.localName !== tag) {
      const made = element(tag);
      if (child) child.replaceWith(made);
      else target.append(made);
      child = made;
    }
    if (child.textContent !== words) child.textContent = words;
  });
}

function userMessage(text) {
  const words = element("div", { class: "words" }, element("div", {}, text));
  return element("li", { class: "said user", "aria-label": "You" }, words);
}

// An answer with room for its figures: { item, show(text), end(figures, note, again) }. Changes of what is
// shown are given to `around`, which calls them.
function answerMessage(around) {
  const words = element("div", { class: "words" });
  const under = element("div", { class: "under" });
  // Busy until it is whole: else each of its words would be read out by itself.
  const attributes = { class: "said answer going", "aria-label": "Answer", "aria-busy": "true" };
  const item = element("li", attributes, words, under);
  let text = "";
  let frame = 0;
  const draw = () => {
    frame = 0;
    around(() => showWords(words, text));
  };
  return {
    item,
    show(now) {
      text = now;
      frame ||= requestAnimationFrame(draw);
    },
    end(figures, note, again) {
      cancelAnimationFrame(frame);
      draw();
      item.classList.remove("going");
      item.removeAttribute("aria-busy");
      const copy = element("button", { type: "button", class: "plain" }, "Copy");
      copy.addEventListener("click", () => copyFrom(copy, text));
      const told = [
        text ? copy : null,
        element("button", { type: "button", class: "plain again", onclick: again }, "Try again"),
        figures ? element("span", { class: "quiet figures" }, figures) : null,
        note ? element("span", { class: "note" }, note) : null,
      ];
      around(() => under.replaceChildren(...told.filter(Boolean)));
    },
  };
}

export { answerMessage, userMessage, fencedParts, showWords };
