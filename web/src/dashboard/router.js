// Places in the page, behind the # of its address: the paths themselves are the API's, and a browser sends no text behind # to a server.
import { decoded } from "../decoded.js";
import { useEffect, useState } from "../html.js";
import { chosen } from "./api.js";

/** `#/subject/turn/a%2F1?run=x` is `{path: ["subject", "turn", "a/1"], query: {run: "x"}}`. */
export function readPlace(hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?");
  return { path: path.split("/").filter(Boolean).map(decoded), query: Object.fromEntries(new URLSearchParams(query)) };
}

/** The address of a place. With several ledgers it names the ledger, so that it opens the same place for a colleague. */
export function place(path, query = {}) {
  const filled = Object.entries({ ledger: chosen(), ...query }).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const text = new URLSearchParams(filled).toString();
  return `#/${path.map(encodeURIComponent).join("/")}${text ? `?${text}` : ""}`;
}

export const ofRun = (id, query) => place(["run", id], query);
export const ofSubject = (kind, id, query) => place(["subject", kind, id], query);

const scrolls = new Map(); // pixels that each entry of the history was scrolled to
let entry = null;
let goal = null; // pixels to scroll to once the page is high enough

/** The key of the current entry of the history. */
function entryKey() {
  if (!history.state?.key) history.replaceState({ key: `${Date.now()} ${Math.random()}` }, "");
  return history.state.key;
}

function remember() {
  if (goal === null) scrolls.set(entry, window.scrollY);
}

/** Scrolls to where the current entry of the history was left, when its content is there; a new entry begins at its top. */
export function scrollBack() {
  const mine = goal ?? 0;
  const end = performance.now() + 5000;
  const step = () => {
    if (goal !== mine) return; // the reader has scrolled
    window.scrollTo(0, mine);
    if (window.scrollY + 1 >= mine || performance.now() > end) goal = null;
    else requestAnimationFrame(step);
  };
  step();
}

export function usePlace() {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    history.scrollRestoration = "manual";
    entry = entryKey();
    const stop = () => { goal = null; };
    window.addEventListener("scroll", remember, { passive: true });
    for (const move of ["wheel", "touchmove", "keydown", "pointerdown"]) window.addEventListener(move, stop, { passive: true });
    let path = readPlace(location.hash).path.join("/");
    const moved = () => {
      const before = path;
      path = readPlace(location.hash).path.join("/");
      entry = entryKey();
      if (path !== before) goal = scrolls.get(entry) ?? 0; // until scrollBack is done, the scrolling of the view that is left is not recorded
      setHash(location.hash);
    };
    window.addEventListener("hashchange", moved);
  }, []);
  return readPlace(hash);
}

/** Changes part of the query without a step in the history. */
export function alter(values) {
  const { path, query } = readPlace(location.hash);
  replacePlace(place(path, { ...query, ...values }));
}

/** Shows another place without a step in the history. */
export function replacePlace(address) {
  history.replaceState(history.state, "", address);
  window.dispatchEvent(new HashChangeEvent("hashchange"));
}
