// Data that came compressed inside the page: gzip, then base64, in a block of text.

/** The JSON in the element `id`. */
export async function unpack(id) {
  const text = document.getElementById(id).textContent;
  const bytes = Uint8Array.from(atob(text.trim()), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}
