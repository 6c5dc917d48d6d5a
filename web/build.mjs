// Bundles each page's script and style into dicast_web/, or into the folder that is named; the same sources give the same bytes.
import { build } from "esbuild";
import { existsSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const target = process.argv[2] ?? "dicast_web";
const pages = ["dashboard", "report"];

await build({
  entryPoints: pages.flatMap((page) => [`src/${page}/${page}.js`, `src/${page}/${page}.css`]),
  outdir: target,
  entryNames: "[name]",
  bundle: true,
  minify: true,
  format: "iife",
  target: ["es2022"],
  charset: "ascii",
  legalComments: "none",
});

// What is shipped inside has its licence beside it.
const { dependencies } = JSON.parse(readFileSync("package.json", "utf8"));
const licences = Object.entries(dependencies).map(([name, version]) => {
  const folder = join("node_modules", name);
  const file = readdirSync(folder).find((each) => /^licen[cs]e(\.|$)/i.test(each));
  if (!file || !existsSync(join(folder, file))) throw new Error(`${name} has no licence file`);
  return `${name} ${version}\n${"=".repeat(name.length + version.length + 1)}\n\n${readFileSync(join(folder, file), "utf8").trim()}\n`;
});
writeFileSync(join(target, "LICENSES.txt"), licences.join("\n\n"));
