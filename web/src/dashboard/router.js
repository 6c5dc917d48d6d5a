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

export function usePlace() {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const moved = () => setHash(location.hash);
    window.addEventListener("hashchange", moved);
    return () => window.removeEventListener("hashchange", moved);
  }, []);
  return readPlace(hash);
}

/** Changes part of the query without a step in the history. */
export function alter(values) {
  const { path, query } = readPlace(location.hash);
  history.replaceState(null, "", place(path, { ...query, ...values }));
  window.dispatchEvent(new HashChangeEvent("hashchange"));
}
