// Answers of the API, read exactly: every number keeps its token. The browser keeps answers by their ETag.
import { readExactly } from "../figures.js";
import { useEffect, useRef, useState } from "../html.js";

/** An error answer: `status`, the message of the API, and its `errors`, each with the name and the value of a parameter. */
export class Refused extends Error {
  constructor(status, message, errors = []) {
    super(message);
    this.status = status;
    this.errors = errors;
  }
}

let ledger = null;
let round = null;

const TROUBLES = { 0: "gone", 401: "token", 503: "unreadable" }; // statuses after which figures that were read before remain in the page

/** Whether an error may pass by itself: the server is gone, has another token, or cannot read the ledger. */
export const isPassing = (error) => error !== null && error !== undefined && error.status in TROUBLES;

let health = { trouble: null, since: null, readAt: null };
const onHealth = new Set();

/** Records that the server answered with `status`, 0 for no answer. */
export function note(status) {
  const trouble = TROUBLES[status] ?? null;
  const now = new Date();
  if (trouble === null) health.readAt = now;
  if (trouble === health.trouble) return;
  health = { ...health, trouble, since: now };
  for (const draw of onHealth) draw();
}

/** `{trouble, since, readAt}`: why figures may be old (`gone`, `token`, `unreadable`, or null), since when, and when the server last answered. */
export function useHealth() {
  const [, draw] = useState(0);
  useEffect(() => {
    const again = () => draw((before) => before + 1);
    onHealth.add(again);
    return () => onHealth.delete(again);
  }, []);
  return health;
}

/** Sets the ledger of later requests; null is the first. */
export const choose = (name) => {
  ledger = name;
};
export const chosen = () => ledger;

/** Sets the round of later requests: the server answers each round once for all open pages. Null requests the newest data. */
export const askIn = (name) => {
  round = name;
};

/** `/path?a=1&b=2`; a null is left out, and a list gives one parameter for each member. */
export function address(path, values = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries({ ...values, ledger })) {
    for (const one of Array.isArray(value) ? value : [value]) if (one !== null && one !== undefined && one !== "") query.append(name, one);
  }
  return query.size ? `${path}?${query}` : path;
}

async function read(url, options) {
  let response;
  try {
    response = await fetch(url, { credentials: "same-origin", headers: round === null ? {} : { "dicast-round": round }, ...options });
  } catch {
    note(0);
    throw new Refused(0, "The server does not answer. Is dicast serve running?");
  }
  const text = await response.text();
  note(response.status);
  if (!response.ok) throw new Refused(response.status, messageOf(text, response.status), errorsOf(text));
  return readExactly(text);
}

function messageOf(text, status) {
  if (status === 401) return "The server does not accept the token of this page. Open the address that dicast serve has printed.";
  try {
    const { message, errors } = JSON.parse(text).error;
    return [message, ...errors.map((one) => one.hint).filter(Boolean)].join(" · ");
  } catch {
    return `The server answered ${status}.`;
  }
}

function errorsOf(text) {
  try {
    return JSON.parse(text).error.errors ?? [];
  } catch {
    return [];
  }
}

let asking = 0;

/** Marks the content of the page while it loads; `<html>` itself may not have `aria-busy`. */
function setBusy(isBusy) {
  const content = document.getElementById("dashboard");
  if (isBusy) content.setAttribute("aria-busy", "true");
  else content.removeAttribute("aria-busy");
}

/** While a request is open, the page tells screen readers that it loads; requests that follow from an answer start a moment later. */
export async function ask(url) {
  asking += 1;
  setBusy(true);
  try {
    return await read(url);
  } finally {
    setTimeout(() => {
      asking -= 1;
      if (asking === 0) setBusy(false);
    }, 60);
  }
}
export async function send(url, body) {
  const found = await read(url, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
  askIn(null); // the result is newer than any round
  return found;
}

/**
 * The answer at `url`, asked for again when `tick` moves; until the new one is there the old one stays, also while the server is gone. `{document, error, at}` with
 * `at(path)` for the place of a number: the address, `#`, and the path in the document. A url of null is not asked for.
 */
export function useAnswer(url, tick = 0) {
  const [found, setFound] = useState({ url: null, document: null, error: null });
  const open = useRef(null); // the request that is open: a busy server gets the next one after its answer
  useEffect(() => {
    if (url === null) {
      open.current = null;
      return;
    }
    if (open.current?.url === url) {
      open.current.again = true;
      return;
    }
    const request = { url, again: false };
    open.current = request;
    const take = (change) => {
      if (open.current !== request) return;
      setFound(change);
      if (request.again) {
        request.again = false;
        start();
      } else open.current = null;
    };
    const start = () => ask(url).then(
      (document) => take({ url, document, error: null }),
      (error) => take((before) => (isPassing(error) && before.url === url && before.document !== null ? before : { url, document: null, error })),
    );
    start();
  }, [url, tick]);
  useEffect(() => () => {
    open.current = null;
  }, []);
  return { ...found, fresh: found.url === url, at: (path) => `${found.url}#${path}` };
}
