// Labels and retractions on their way to the server, sent one after the other. The browser keeps each until the ledger has it, also when the tab is closed.
import { useEffect, useRef, useState } from "../../html.js";
import { send } from "../api.js";

const KEPT = "dicast.unsent.";
const ABANDONED = 10000; // ms after which another tab sends what a closed tab has left
const AGAIN = 3000; // ms until a server that did not answer is tried again

/** A request to send: `url` and `body`, or a function for a body that is known once an earlier job is done. */
class Job {
  constructor(url, body, id = `${Date.now()}.${Math.random()}`) {
    Object.assign(this, { url, body, id, result: null, isDropped: false });
  }

  store() {
    if (typeof this.body !== "function") localStorage.setItem(KEPT + this.id, JSON.stringify({ url: this.url, body: this.body }));
  }

  forget() {
    localStorage.removeItem(KEPT + this.id);
  }
}

const abandoned = () =>
  Object.keys(localStorage)
    .filter((key) => key.startsWith(KEPT) && Date.now() - Number(key.slice(KEPT.length).split(".")[0]) > ABANDONED)
    .sort()
    .map((key) => {
      const { url, body } = JSON.parse(localStorage.getItem(key));
      return new Job(url, body, key.slice(KEPT.length));
    });

/** The jobs of this page: they are sent also while another view is shown. */
const box = { jobs: [], isSending: false, error: null, timer: null, isOpen: false, listeners: new Set() };

const changed = (job = null) => box.listeners.forEach((listen) => listen(job));

async function run() {
  if (box.isSending || box.error?.status > 0) return;
  box.isSending = true;
  clearTimeout(box.timer);
  while (box.jobs.length) {
    const job = box.jobs[0];
    const body = typeof job.body === "function" ? job.body() : job.body;
    try {
      job.result = body === null ? {} : await send(job.url, body);
      box.error = null;
    } catch (error) {
      box.error = error;
      if (error.status === 0) box.timer = setTimeout(run, AGAIN);
      break;
    }
    job.forget();
    box.jobs.shift();
    changed(job);
  }
  box.isSending = false;
  changed();
}

function add(url, body) {
  const job = new Job(url, body);
  job.store();
  box.jobs.push(job);
  run();
  changed();
  return job;
}

/** Whether a job was removed before it was sent. */
function remove(job) {
  const place = box.jobs.indexOf(job);
  if (place < 0 || (place === 0 && box.isSending)) return false;
  if (place === 0) box.error = null;
  box.jobs.splice(place, 1);
  job.forget();
  run();
  changed();
  return true;
}

function again() {
  box.error = null;
  run();
}

function drop() {
  box.jobs[0].isDropped = true;
  remove(box.jobs[0]);
}

function replace(change) {
  Object.assign(box.jobs[0].body, change);
  box.jobs[0].store();
  again();
}

/** `{waiting, error, first, add, remove, again, drop, replace}`: the jobs that are not recorded, and the error that stops them. `onRecorded` is called after each. */
export function useOutbox(onRecorded) {
  const [, draw] = useState(0);
  const newest = useRef(onRecorded);
  newest.current = onRecorded;
  useEffect(() => {
    const listen = (job) => {
      if (job !== null) newest.current(job);
      draw((count) => count + 1);
    };
    box.listeners.add(listen);
    if (!box.isOpen) {
      box.isOpen = true;
      box.jobs.push(...abandoned());
    }
    run();
    return () => box.listeners.delete(listen);
  }, []);
  return { waiting: box.jobs.length, error: box.error, first: box.jobs[0] ?? null, add, remove, again, drop, replace };
}
