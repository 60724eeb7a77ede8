// Light or dark: what the user chose last, else what the system prefers. Runs before the page is drawn, as a
// plain script, so that no page is shown in the wrong colours first.
(() => {
  const root = document.documentElement;
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");

  function stored() {
    try {
      return localStorage.getItem("webgrad-theme");
    } catch {
      return null; // storage is switched off: the choice lasts as long as the page
    }
  }

  function keep(theme) {
    try {
      localStorage.setItem("webgrad-theme", theme);
    } catch {
      // As above.
    }
  }

  function apply(theme) {
    root.dataset.theme = theme ?? (prefersDark.matches ? "dark" : "light");
  }

  apply(stored());
  prefersDark.addEventListener("change", () => apply(stored()));
  root.addEventListener("click", (event) => {
    if (!event.target.closest?.("#theme")) return;
    const theme = root.dataset.theme === "dark" ? "light" : "dark";
    apply(theme);
    keep(theme);
  });
})();
