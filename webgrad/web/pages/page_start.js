// What runs before the page is drawn, as a plain script that old browsers read too: its colours, light or
// dark as the user chose last or the system prefers, and a message where the page's modules do not start.
(() => {
  const root = document.documentElement;
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");

  function stored() {
    try {
      return localStorage.getItem("webgrad-theme");
    } catch (error) {
      return null; // storage is switched off: the choice lasts as long as the page
    }
  }

  function keep(theme) {
    try {
      localStorage.setItem("webgrad-theme", theme);
    } catch (error) {
      // As above.
    }
  }

  function apply(theme) {
    root.dataset.theme = theme || (prefersDark.matches ? "dark" : "light");
  }

  apply(stored());
  prefersDark.addEventListener("change", () => apply(stored()));
  root.addEventListener("click", (event) => {
    if (!event.target.closest || !event.target.closest("#theme")) return;
    const theme = root.dataset.theme === "dark" ? "light" : "dark";
    apply(theme);
    keep(theme);
  });

  // Modules

  const ADVICE = {
    "file:": [
      "This page needs a server",
      "Browsers load the parts of a page by http only. Run `webgrad serve-static` on this folder and open " +
        "the address that it prints, or export the model with --single-file.",
    ],
    other: [
      "This page could not start",
      "The browser is too old for it, or the server lacks one of its files. Chrome and Edge since version " +
        "113, Safari since 26 and Firefox since 141 can run it.",
    ],
  };

  function showAdvice(words) {
    const [heading, advice] = ADVICE[location.protocol] || ADVICE.other;
    const problem = document.getElementById("problem");
    problem.textContent = "";
    for (const [tag, text] of [
      ["h2", heading],
      ["p", advice],
      ["pre", words],
    ]) {
      const made = document.createElement(tag);
      made.textContent = text;
      problem.append(made);
    }
    problem.hidden = false;
    document.getElementById("progress").hidden = true;
    document.getElementById("device").textContent = "Not running";
    document.body.dataset.state = "failed";
  }

  // An element's failure to load is heard on its way down only.
  function failed(event) {
    const isScript = event.target === window || event.target.localName === "script";
    if (!isScript || (document.body && document.body.dataset.state)) return;
    const words = event.message || "A script could not be loaded: " + event.target.src;
    if (document.body) showAdvice(words);
    else document.addEventListener("DOMContentLoaded", () => showAdvice(words));
  }

  addEventListener("error", failed, true);
})();
