// Whether the window is narrow, as a phone's.
import { useEffect, useMemo, useState } from "../html.js";

export function useNarrow() {
  const query = useMemo(() => window.matchMedia("(max-width: 640px)"), []);
  const [narrow, setNarrow] = useState(query.matches);
  useEffect(() => {
    const changed = (event) => setNarrow(event.matches);
    query.addEventListener("change", changed);
    return () => query.removeEventListener("change", changed);
  }, [query]);
  return narrow;
}
