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

/** `{waiting, error, add, remove, again, drop, replace}`: the jobs that are not recorded, and the error that stops them. `onRecorded` is called after each. */
export function useOutbox(onRecorded) {
  const [, draw] = useState(0);
  const box = useRef(null);
  box.current ??= { jobs: [], isSending: false, error: null, timer: null };
  const here = box.current;
  const changed = () => draw((count) => count + 1);
  const run = async () => {
    if (here.isSending || here.error?.status > 0) return;
    here.isSending = true;
    clearTimeout(here.timer);
    while (here.jobs.length) {
      const job = here.jobs[0];
      const body = typeof job.body === "function" ? job.body() : job.body;
      try {
        job.result = body === null ? {} : await send(job.url, body);
        here.error = null;
      } catch (error) {
        here.error = error;
        if (error.status === 0) here.timer = setTimeout(run, AGAIN);
        break;
      }
      job.forget();
      here.jobs.shift();
      onRecorded(job);
      changed();
    }
    here.isSending = false;
    changed();
  };
  const add = (url, body) => {
    const job = new Job(url, body);
    job.store();
    here.jobs.push(job);
    run();
    changed();
    return job;
  };
  /** Whether a job was removed before it was sent. */
  const remove = (job) => {
    const place = here.jobs.indexOf(job);
    if (place < 0 || (place === 0 && here.isSending)) return false;
    if (place === 0) here.error = null;
    here.jobs.splice(place, 1);
    job.forget();
    run();
    return true;
  };
  const again = () => {
    here.error = null;
    run();
  };
  const drop = () => {
    here.jobs[0].isDropped = true;
    remove(here.jobs[0]);
    changed();
  };
  const replace = (change) => {
    Object.assign(here.jobs[0].body, change);
    again();
  };
  useEffect(() => {
    here.jobs.push(...abandoned());
    run();
    return () => clearTimeout(here.timer);
  }, []);
  return { waiting: here.jobs.length, error: here.error, first: here.jobs[0] ?? null, add, remove, again, drop, replace };
}
