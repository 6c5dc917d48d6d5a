// New verdicts as they come. The browser connects again by itself and says where it was; a number of them is drawn as one change.
import { address } from "./api.js";
import { readExactly } from "../figures.js";
import { useEffect, useRef, useState } from "../html.js";

const KEPT = 30; // verdicts in the list of new ones
const SOONEST = 1500; // ms between two looks at the figures, while verdicts come
const SHARE = 5; // at most one part in so many of the time is spent asking

/** `{state, news, tick}`: whether it is connected, the newest verdicts first, and a number that moves when figures should be read anew. */
export function useLive(ledger) {
  const [state, setState] = useState("connecting");
  const [news, setNews] = useState([]);
  const [tick, setTick] = useState(0);
  const waiting = useRef([]);
  useEffect(() => {
    const source = new EventSource(address("/events"));
    let timer = null;
    const come = () => {
      timer = null;
      const found = waiting.current.splice(0);
      setNews((before) => [...found.reverse(), ...before].slice(0, KEPT));
      setTick((before) => before + 1);
    };
    const take = (event) => {
      waiting.current.push(readExactly(event.data));
      if (waiting.current.length > KEPT) waiting.current.shift();
      timer ??= setTimeout(come, Math.max(SOONEST, SHARE * lastLoad()));
    };
    source.addEventListener("open", () => setState("live"));
    source.addEventListener("head", () => setState("live"));
    source.addEventListener("error", () => setState(source.readyState === EventSource.CLOSED ? "closed" : "connecting"));
    source.addEventListener("verdict", take);
    source.addEventListener("failure", take);
    return () => {
      clearTimeout(timer);
      source.close();
    };
  }, [ledger]);
  return { state, news, tick, again: () => setTick((before) => before + 1) };
}

/** How long the slowest of the last answers took, in ms: on a large ledger the figures are read less often. */
function lastLoad() {
  const entries = performance.getEntriesByType("resource").filter((one) => one.initiatorType === "fetch").slice(-8);
  const slowest = Math.max(0, ...entries.map((one) => one.duration));
  if (performance.getEntriesByType("resource").length > 150) performance.clearResourceTimings();
  return Math.min(slowest, 6000);
}
