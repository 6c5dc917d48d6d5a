// Single keys that act on a page, while no field has the focus.
import { useEffect, useRef } from "../html.js";

/** Calls the function of a pressed key; `actions` are by key in lower case. A key that is held down acts once, unless `isRepeated`. */
export function useKeys(actions, isRepeated = false) {
  const newest = useRef(actions);
  newest.current = actions;
  useEffect(() => {
    const press = (event) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || (event.repeat && !isRepeated) || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
      const act = newest.current[event.key.toLowerCase()];
      if (!act) return;
      event.preventDefault();
      act();
    };
    window.addEventListener("keydown", press);
    return () => window.removeEventListener("keydown", press);
  }, []);
}
