/**
 * Builds what programs import from the published package, beside the bundle of the command line: `heddle/client`, one
 * file for Node 20 and browsers, and `heddle/engine` for Node 24, both ES modules with their declarations.
 * Usage: node scripts/build-library.ts [--out DIR]
 */
import { mkdir, readdir, rm } from "node:fs/promises";
import path from "node:path";
import { parseArgs } from "node:util";
import { rolldown, type InputOptions, type OutputOptions } from "rolldown";
import { writeTypes, type Library } from "./library-types.ts";

const root = path.join(import.meta.dirname, "..");
const CLIENT: Library = { name: "client", entry: "packages/client/src/index.ts" };
const ENGINE: Library = { name: "engine", entry: "packages/cli/src/engine/index.ts" };

const { values } = parseArgs({
  options: { out: { type: "string", default: path.join(root, "packages", "cli", "dist") } },
});
const out = path.resolve(values.out);
const startedAt = performance.now();
await mkdir(out, { recursive: true });
for (const name of await readdir(out))
  if (/^(?:client|engine)[\w-]*\.js$|^types$/.test(name)) await rm(path.join(out, name), { recursive: true });
// As people wrote it: a program that bundles it minifies it, and one that does not can be read.
await bundle(CLIENT, { platform: "neutral", transform: { target: "es2022" } }, { codeSplitting: false });
await bundle(ENGINE, { platform: "node", external: [/^node:/] }, { minify: true });
writeTypes(root, path.join(out, "types"), [CLIENT, ENGINE]);
console.log(`built ${CLIENT.name} and ${ENGINE.name} in ${(performance.now() - startedAt).toFixed(0)} ms`);

/** Beside the program's own files, so that data that both read is there once. */
async function bundle({ name, entry }: Library, input: InputOptions, output: OutputOptions): Promise<void> {
  await using build = await rolldown({
    ...input,
    input: { [name]: path.join(root, entry) },
    resolve: { conditionNames: ["heddle-source", "node", "default"] },
    logLevel: "silent",
  });
  const names = { entryFileNames: "[name].js", chunkFileNames: `${name}-[name]-[hash].js` };
  await build.write({ ...output, ...names, dir: out, format: "esm" });
}
