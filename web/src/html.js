// preact with htm, the renderer of every module. Values are set as text and attributes, never as markup.
import { h } from "preact";
import htm from "htm";

export { render } from "preact";
export { useCallback, useEffect, useErrorBoundary, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
export const html = htm.bind(h);
