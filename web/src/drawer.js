// A panel over the page: a modal dialog, so that the browser keeps the focus inside and Escape closes it.
import { html, useEffect, useRef } from "./html.js";

export function Drawer({ title, onClose, actions, children }) {
  const dialog = useRef(null);
  useEffect(() => {
    const element = dialog.current;
    const before = document.activeElement;
    element.showModal();
    element.querySelector(".drawer-body").focus();
    return () => {
      if (element.open) element.close();
      if (before instanceof HTMLElement) before.focus({ preventScroll: true });
    };
  }, []);
  const outside = (event) => {
    if (event.target === dialog.current) onClose();
  };
  return html`<dialog class="drawer" ref=${dialog} aria-label=${title} onClick=${outside}
    onCancel=${(event) => { event.preventDefault(); onClose(); }}>
    <div class="drawer-frame">
      <header class="drawer-head">
        <h2 dir="auto">${title}</h2>
        <div class="actions">${actions}
          <button class="quiet" type="button" onClick=${onClose} aria-label="Close"><span aria-hidden="true">✕</span></button></div>
      </header>
      <div class="drawer-body" tabindex="0" role="region" aria-label="Details">${children}</div>
    </div>
  </dialog>`;
}
