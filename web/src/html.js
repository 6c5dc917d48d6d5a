// preact with htm, the renderer of every module. Values are set as text and attributes, never as markup.
import { h, options } from "preact";
import htm from "htm";

export { render } from "preact";
export { useCallback, useEffect, useErrorBoundary, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
export const html = htm.bind(h);

// Effects run as soon as a drawing is in the page. By default they run after the next frame, and a key pressed before it finds no listener.
options.requestAnimationFrame = queueMicrotask;
