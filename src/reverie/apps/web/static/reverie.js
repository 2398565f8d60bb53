// The page's own script, whole: theme, keys, copying, the live light, and no swap under somebody who
// types.
// Everything else is HTML, forms, htmx.
(() => {
  const root = document.documentElement, store = window.localStorage;
  const set = t => t ? root.dataset.theme = t : delete root.dataset.theme;
  const $ = s => document.querySelector(s);
  set(store.getItem("theme") || "");
  root.dataset.script = "on";
  const live = on => document.querySelectorAll(".live.light").forEach(e => {
    e.classList.toggle("off", !on);
    e.lastChild.textContent = on ? "live" : "not connected";
  });
  const keysOn = () => store.getItem("keys") !== "off";
  const showKeys = () => {
    const box = $("#keys");
    if (!box) return;
    box.hidden = !box.hidden;
    if (!box.hidden) box.querySelector("button").focus();
  };
  const copy = async button => {
    const text = $(button.dataset.copy), told = button.parentNode.querySelector("[role=status]");
    told.textContent = "";
    try {
      await navigator.clipboard.writeText(text.textContent);
      told.textContent = "Copied. Paste it into a terminal.";
    } catch {  // no clipboard, or the browser does not give it
      getSelection().selectAllChildren(text);
      text.scrollIntoView({ block: "center" });
      told.textContent = "It cannot be copied from here. It is selected below: copy it there.";
    }
  };
  document.addEventListener("click", e => {
    if (e.target.closest("[data-theme-toggle]")) {
      const next = { "": "dark", dark: "light", light: "" }[root.dataset.theme || ""];
      store.setItem("theme", next); set(next);
    } else if (e.target.closest("[data-copy]")) copy(e.target.closest("[data-copy]"));
    else if (e.target.closest("[data-keys]")) showKeys();
    else if (e.target.closest("[data-keys-toggle]")) {
      store.setItem("keys", keysOn() ? "off" : "on");
      e.target.textContent = keysOn() ? "Switch keys off" : "Switch keys on";
    }
  });
  document.addEventListener("htmx:sseOpen", () => live(true));
  document.addEventListener("htmx:sseError", () => live(false));
  document.addEventListener("htmx:sseMessage", e => { if (e.detail.type === "reload") location.reload(); });
  document.addEventListener("htmx:beforeSwap", e => {
    const at = document.activeElement;
    if (e.target.contains(at) && at.matches("input,textarea,select")) e.preventDefault();
  });
  let g = false;
  document.addEventListener("keydown", e => {
    if (e.key === "Escape" && $("#keys") && !$("#keys").hidden) { showKeys(); return; }
    if (e.target.closest("input:not([type=checkbox]),textarea,select,[contenteditable]") || e.ctrlKey || e.metaKey || e.altKey) return;
    if (e.key === "?") { showKeys(); return; }
    if (!keysOn()) return;
    const go = g && $(`.side [data-go="${CSS.escape(e.key)}"]`);
    if (go) { location.href = go.href; return; }
    g = e.key === "g";
    if (e.key === "/") { const q = $("input[type=search]"); if (q) { q.focus(); e.preventDefault(); } return; }
    if (e.key === "j" || e.key === "k") {
      const all = [...document.querySelectorAll("a.item,.events>li>a,tbody th a")];
      const at = all.indexOf(document.activeElement) + (e.key === "j" ? 1 : -1);
      if (all[at]) { all[at].focus(); return; }
    }
    const name = { ArrowLeft: "left", ArrowRight: "right" }[e.key] || e.key;
    const act = $(`main [data-key="${CSS.escape(name)}"]`);
    if (act) { e.preventDefault(); act.click(); }
  });
})();
