// The title of the page, which names its view: tabs and the history of the browser show it.
import { useEffect } from "../html.js";

/** Sets the title to `text`; null leaves it to another part of the page. */
export function useTitle(text) {
  useEffect(() => {
    if (text !== null) document.title = `${text} · dicast`;
  }, [text]);
}
