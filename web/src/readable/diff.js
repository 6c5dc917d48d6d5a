// Differences between two texts, word by word.

const MOST = 3000; // words of a text that are compared one by one; a longer text is compared by its lines

/** `{kind: same|added|removed, text}` in order: the steps from `before` to `after`. Neighbors of one kind are joined. */
export function differences(before, after) {
  const [a, b] = [parts(before, /\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu), parts(after, /\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu)];
  return a.length > MOST || b.length > MOST ? steps(parts(before, /[^\n]*\n|[^\n]+/g), parts(after, /[^\n]*\n|[^\n]+/g)) : steps(a, b);
}

const parts = (text, pattern) => text.match(pattern) ?? [];

function steps(a, b) {
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1;
  const found = [];
  const put = (kind, text) => {
    if (!text) return;
    if (found.at(-1)?.kind === kind) found.at(-1).text += text;
    else found.push({ kind, text });
  };
  put("same", a.slice(0, start).join(""));
  for (const [kind, text] of middle(a.slice(start, a.length - end), b.slice(start, b.length - end))) put(kind, text);
  put("same", end ? a.slice(-end).join("") : "");
  return found;
}

/** The steps of the longest common subsequence, by Myers' greedy algorithm; texts with little in common are removed and added as a whole. */
function middle(a, b) {
  const most = Math.min(a.length + b.length, 1500);
  const trace = [];
  const reach = new Map([[1, 0]]);
  for (let d = 0; d <= most; d++) {
    trace.push(new Map(reach));
    for (let k = -d; k <= d; k += 2) {
      let x = k === -d || (k !== d && (reach.get(k - 1) ?? -1) < (reach.get(k + 1) ?? -1)) ? reach.get(k + 1) ?? 0 : (reach.get(k - 1) ?? 0) + 1;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x += 1;
      reach.set(k, x);
      if (x >= a.length && x - k >= b.length) return walked(a, b, trace);
    }
  }
  return [["removed", a.join("")], ["added", b.join("")]];
}

function walked(a, b, trace) {
  const found = [];
  let [x, y] = [a.length, b.length];
  for (let d = trace.length - 1; d >= 0; d--) {
    const reach = trace[d];
    const k = x - y;
    const from = k === -d || (k !== d && (reach.get(k - 1) ?? -1) < (reach.get(k + 1) ?? -1)) ? k + 1 : k - 1;
    const fromX = d === 0 ? 0 : reach.get(from) ?? 0;
    const fromY = d === 0 ? 0 : fromX - from;
    while (x > fromX && y > fromY && a[x - 1] === b[y - 1]) {
      found.push(["same", a[x - 1]]);
      x -= 1;
      y -= 1;
    }
    if (d === 0) break;
    if (x === fromX) found.push(["added", b[(y -= 1)]]);
    else found.push(["removed", a[(x -= 1)]]);
  }
  return found.reverse();
}
