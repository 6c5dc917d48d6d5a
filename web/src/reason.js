// The reason for a score of a metric.

/** The details and the feedback of a score, `written` as texts; lines of the feedback that the details contain are not repeated. */
export function reasonOf({ details, feedback }, written) {
  if (!details || !feedback) return [details, feedback].filter(Boolean).map(written).join("\n");
  const [first, second] = [details, feedback].map(written);
  const known = first.toLowerCase();
  const added = second.split("\n").filter((line) => !known.includes(line.trim().replace(/\.$/, "").toLowerCase()));
  return [first, ...added].join("\n");
}
