// Calls one function of a module about one output: the process behind check/javascript.
import { createHash } from "node:crypto";
import { readFileSync, writeSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [path, name, digest] = process.argv.slice(2);
const data = JSON.parse(readFileSync(0, "utf8"));
process.stdout.write = process.stderr.write.bind(process.stderr); // prints of the user's code are no answer

function reply(value) {
  const bytes = Buffer.from(JSON.stringify(value));
  for (let done = 0; done < bytes.length; ) done += writeSync(1, bytes, done);
  process.exit(0);
}

function callable(module) {
  const candidates = name ? [module[name], module.default?.[name]] : [module.default, module.default?.default];
  const target = candidates.find((one) => typeof one === "function");
  if (target === undefined) {
    const names = Object.keys({ ...module.default, ...module }).filter((one) => one !== "default");
    throw new Error(`the file has no ${name ? `function '${name}'` : "default export that is a function"}; it exports ${names.join(", ") || "nothing"}`);
  }
  return target;
}

try {
  if (createHash("sha256").update(readFileSync(path)).digest("hex") !== digest) {
    throw new Error("the file has changed since the run started");
  }
  const result = await callable(await import(pathToFileURL(path).href))(data.output, data.row);
  if (typeof result === "number" && !Number.isFinite(result)) {
    reply({ error: `it returned ${result}`, kind: "invalid_score" });
  }
  reply({ result: result === undefined ? null : result });
} catch (error) {
  reply({ error: error instanceof Error ? `${error.name}: ${error.message}` : String(error), kind: "crashed" });
}
