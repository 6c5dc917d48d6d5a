// The dashboard: the verdicts and figures of a ledger, as it grows.
import { html, render, useEffect, useErrorBoundary, useRef, useState } from "../html.js";
import { ThemeToggle } from "../theme.js";
import { choose, chosen, useAnswer } from "./api.js";
import { Compare } from "./compare.js";
import { Label } from "./label/label.js";
import { useLive } from "./live.js";
import { Overview } from "./overview.js";
import { place, usePlace } from "./router.js";
import { Run, Runs } from "./runs.js";
import { Subject } from "./subject.js";

const VIEWS = [["", "Today"], ["runs", "Runs"], ["compare", "Compare"], ["label", "Label"]];
const STATES = { opening: ["none", "connecting"], live: ["pass", "live"], connecting: ["none", "not connected, trying again"], closed: ["fail", "refused, trying again"] };

function Dashboard() {
  const here = usePlace();
  const [name = "", ...rest] = here.path;
  if (here.query.ledger !== undefined) choose(here.query.ledger);
  const live = useLive(chosen());
  const session = useAnswer("/session");
  const mayLabel = session.document?.may_label === true;
  const main = useRef(null);
  const first = useRef(true);
  useEffect(() => {
    if (!first.current) {
      main.current?.focus({ preventScroll: true });
      window.scrollTo(0, 0);
    }
    first.current = false;
  }, [here.path.join("/")]);
  useEffect(() => {
    document.title = `${titleOf(here.path)} · dicast`;
  }, [here.path.join("/")]);
  const view = { live, mayLabel, query: here.query };
  return html`<a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); main.current.focus(); }}>Skip to the content</a>
    <header class="bar"><a class="brand" href=${place([])}>dicast</a>
      <nav aria-label="Views">${VIEWS.map(([key, word]) => html`<a href=${place(key ? [key] : [])} aria-current=${isIn(name, key) ? "page" : undefined}>${word}</a>`)}</nav>
      <div class="bar-end"><${Ledgers} tick=${live.tick} /><${State} state=${live.state} /><${ThemeToggle} /></div></header>
    <main id="main" tabindex="-1" ref=${main}><${Drawn} name=${name} rest=${rest} view=${view} key=${here.path.join("/")} /></main>`;
}

/** The view of a place. A view that fails on content of the ledger that no run wrote shows a message, and the other views still work. */
function Drawn({ name, rest, view }) {
  const [error] = useErrorBoundary();
  return error ? html`<h1>This cannot be shown</h1><p class="warnings" role="alert">The ledger holds content that this page cannot read. <code>dicast ledger verify</code> checks whether the ledger was changed.</p>` : shown(name, rest, view);
}

const titleOf = ([name = "", ...rest]) => (name === "subject" ? rest.slice(1).join("/") : name === "run" ? `run ${rest[0]}` : (VIEWS.find(([key]) => key === name)?.[1] ?? name));

const isIn = (name, key) => name === key || (key === "runs" && name === "run");

function shown(name, rest, view) {
  if (name === "") return html`<${Overview} ...${view} />`;
  if (name === "runs") return html`<${Runs} ...${view} />`;
  if (name === "run" && rest.length) return html`<${Run} id=${rest[0]} key=${rest[0]} ...${view} />`;
  if (name === "compare") return html`<${Compare} ...${view} />`;
  if (name === "label") return html`<${Label} ...${view} />`;
  if (name === "subject" && rest.length > 1) return html`<${Subject} kind=${rest[0]} id=${rest.slice(1).join("/")} key=${rest.join("/")} ...${view} />`;
  return html`<h1>There is no such page</h1><p><a href=${place([])}>Go to the first page</a></p>`;
}

function State({ state }) {
  const [outcome, word] = STATES[state];
  return html`<span class=${`state ${outcome}`} role="status"><span class="lamp" aria-hidden="true"></span>${word}</span>`;
}

/** The served ledgers; nothing for a single ledger. */
function Ledgers() {
  const { document } = useAnswer("/ledgers");
  const ledgers = document?.data ?? [];
  const [now, setNow] = useState(chosen() ?? "");
  useEffect(() => {
    if (ledgers.length > 1 && chosen() === null) choose(ledgers[0].name); // addresses name the ledger then
  }, [ledgers.length]);
  if (ledgers.length < 2) return null;
  const pick = (event) => {
    setNow(event.currentTarget.value);
    choose(event.currentTarget.value);
    location.hash = place([], { ledger: event.currentTarget.value });
  };
  return html`<label class="pick">ledger <select value=${now || ledgers[0].name} onChange=${pick}>${ledgers.map((one) => html`<option value=${one.name}>${one.name}</option>`)}</select></label>`;
}

render(html`<${Dashboard} />`, document.getElementById("dashboard"));
