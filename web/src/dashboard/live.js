// News as it comes. The browser connects again by itself and says where it was; where it gives up, this does.
import { address, ask, askIn, note } from "./api.js";
import { readExactly } from "../figures.js";
import { useEffect, useRef, useState } from "../html.js";

const KEPT = 30; // verdicts in the list of new ones
const TOGETHER = 250; // ms in which verdicts are drawn as one change
const SOON = 1500; // ms after a connection until the figures are read again: no event reports earlier verdicts
const AGAIN = 3000; // ms until it is tried again, where the server has refused

/** `{state, news, tick, all}`: whether it is connected, the newest verdicts first, and two numbers: `tick` moves when figures of runs should be read anew, `all` when figures of all verdicts should. */
export function useLive(ledger) {
  const [state, setState] = useState("opening");
  const [news, setNews] = useState([]);
  const [tick, setTick] = useState(0);
  const [all, setAll] = useState(0);
  const waiting = useRef([]);
  useEffect(() => {
    let source = null;
    let drawing = null;
    let looking = null;
    let connected = false; // whether this connection has reported the ledger's newest row
    let seen = null; // the newest row of the ledger that was reported
    waiting.current = [];
    setNews([]);
    const draw = () => {
      drawing = null;
      const found = waiting.current.splice(0);
      setNews((before) => [...found.reverse(), ...before].slice(0, KEPT));
    };
    const look = (hasAll) => {
      looking = null;
      setTick((before) => before + 1);
      if (hasAll) setAll((before) => before + 1);
    };
    const take = (event) => {
      const row = Number(event.lastEventId);
      if (seen !== null && row <= seen) return;
      seen = row;
      waiting.current.push(readExactly(event.data));
      if (waiting.current.length > KEPT) waiting.current.shift();
      drawing ??= setTimeout(draw, TOGETHER);
    };
    const head = (event) => {
      setState("live");
      note(200);
      const newest = Number(readExactly(event.data).seq);
      if (seen !== null && newest < seen) {
        waiting.current = []; // another ledger is at this address now, and does not have the shown verdicts
        setNews([]);
      }
      seen = Number(event.lastEventId);
      if (connected) return;
      connected = true;
      askIn(null);
      looking ??= setTimeout(look, SOON, true);
    };
    const begin = (event) => {
      const round = JSON.parse(event.data);
      askIn(round.name);
      if (looking !== null) clearTimeout(looking);
      look(round.all || looking !== null);
    };
    const connect = () => {
      source = new EventSource(address("/events", { after: seen, brief: "true" }));
      source.addEventListener("open", () => { connected = false; });
      source.addEventListener("head", head);
      source.addEventListener("round", begin);
      source.addEventListener("verdict", take);
      source.addEventListener("failure", take);
      source.addEventListener("error", () => {
        ask(address("/ledgers")).catch(() => {}); // its status is the reason, which the page shows
        if (source.readyState !== EventSource.CLOSED) return setState("connecting");
        setState("closed");
        clearTimeout(again);
        again = setTimeout(connect, AGAIN);
        return undefined;
      });
    };
    let again = null;
    connect();
    return () => {
      clearTimeout(drawing);
      clearTimeout(looking);
      clearTimeout(again);
      source.close();
    };
  }, [ledger]);
  const again = () => {
    setTick((before) => before + 1);
    setAll((before) => before + 1);
  };
  return { state, news, tick, all, again };
}
