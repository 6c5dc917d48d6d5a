// Single keys that act on a page, while no field has the focus.
import { useEffect, useRef } from "../../html.js";

/** Calls the function of a pressed key; `actions` are by key. A key that is held down acts once. */
export function useKeys(actions) {
  const newest = useRef(actions);
  newest.current = actions;
  useEffect(() => {
    const press = (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
      const act = newest.current[event.key.toLowerCase()];
      if (act === undefined) return;
      event.preventDefault();
      act();
    };
    window.addEventListener("keydown", press);
    return () => window.removeEventListener("keydown", press);
  }, []);
}
