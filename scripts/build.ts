/**
 * Bundles the command line into packages/cli/dist. Several builds may run at once and a running Heddle keeps working:
 * files, named by their content, are written to a folder of their own and moved in one by one, the stamp that names the
 * first of them last. Files of earlier builds stay for a day, for processes that still load them lazily.
 * Usage: node scripts/build.ts [--clean] [--quiet] [--no-minify] [--out DIR]
 */
import { globSync } from "node:fs";
import { copyFile, mkdir, mkdtemp, readdir, rename, rm, stat, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import path from "node:path";
import { parseArgs } from "node:util";
import { rolldown, type CodeSplittingGroup, type OutputAsset, type OutputChunk, type OutputOptions } from "rolldown";

const root = path.join(import.meta.dirname, "..");
const cli = path.join(root, "packages", "cli");
const STAMP = "build-stamp.json";
/** Read by their own names from beside the module that knows them, when a run needs them. */
const DATA_FILES = "packages/*/src/**/*.jsonl";
const KEEP_OLD_CHUNKS_MS = 24 * 60 * 60 * 1000;

const { quiet, clean, ...options } = parseArgs({
  options: {
    quiet: { type: "boolean", default: false },
    clean: { type: "boolean", default: false },
    "no-minify": { type: "boolean", default: false },
    out: { type: "string", default: path.join(cli, "dist") },
  },
}).values;
const dist = path.resolve(options.out);
const isReadable = options["no-minify"];
const startedAt = performance.now();

// Taken before the sources are read: a change during the build makes the next start build again.
const fingerprint = sourceFingerprint();
await mkdir(dist, { recursive: true });
const scratch = await mkdtemp(path.join(dist, ".build-"));
try {
  const { entry, files } = await bundleInto(scratch);
  await writeFile(path.join(scratch, STAMP), `${JSON.stringify({ fingerprint, entry, files })}\n`);
  for (const file of [...files, STAMP]) await rename(path.join(scratch, file), path.join(dist, file));
  await removeOldFiles(new Set([...files, STAMP]));
  if (!quiet) await report(files);
} finally {
  await rm(scratch, { recursive: true, force: true });
}

interface Bundle {
  readonly entry: string;
  readonly files: readonly string[];
}

async function bundleInto(dir: string): Promise<Bundle> {
  await using build = await rolldown({
    input: { heddle: path.join(cli, "src", "main.ts") },
    platform: "node",
    external: [/^node:/],
    resolve: { conditionNames: ["heddle-source", "node", "default"] },
    logLevel: "warn",
    transform: { define: { HEDDLE_BUILD: JSON.stringify(fingerprint) } },
    // It does not say so itself, and a run that only reads a configuration would load what writes one.
    treeshake: { moduleSideEffects: [{ test: /node_modules\/smol-toml\//, sideEffects: false }] },
  });
  const options: OutputOptions = {
    dir,
    format: "cjs",
    // Compiled code is kept by the name of its file, so a name stands for one content.
    entryFileNames: "[name]-[hash].cjs",
    chunkFileNames: "[name]-[hash].cjs",
    // The launcher loads the files by itself, and `import` would ask Node to.
    dynamicImportInCjs: false,
    minify: !isReadable,
  };
  // Loading a file costs more than what is in it, so what a run always loads together becomes one file.
  const { output: natural } = await build.generate(options);
  const start = modulesBehind(natural, ["packages/cli/src/main.ts", "packages/cli/src/commands/exec.ts"]);
  const run = modulesBehind(natural, ["packages/cli/src/exec/run-exec.ts"]);
  const sandbox = modulesBehind(natural, ["packages/tools/src/sandbox/open-confined.ts"]);
  const group = (name: string, modules: ReadonlySet<string>, priority: number): CodeSplittingGroup => ({
    name,
    test: (id) => modules.has(id),
    priority,
  });
  const { output } = await build.write({
    ...options,
    codeSplitting: { groups: [group("start", start, 3), group("run", run, 2), group("sandbox", sandbox, 1)] },
  });
  for (const file of output)
    if (file.type === "chunk") await writeFile(path.join(dir, file.fileName), inAscii(withShortExports(file.code)));
  const data = globSync(DATA_FILES, { cwd: root });
  for (const file of data) await copyFile(path.join(root, file), path.join(dir, path.basename(file)));
  const [{ fileName: entry }] = output;
  return { entry, files: [...output.map((file) => file.fileName), ...data.map((file) => path.basename(file))] };
}

/** What a run always loads is shared by hundreds of files that it may load later: each name costs a line, so a short one. */
function withShortExports(code: string): string {
  const getter = /Object\.defineProperty\(exports,("\w+"),\{enumerable:!0,get:function\(\)\{return ([\w$]+)\}\}\)/g;
  if (!getter.test(code)) return code;
  const define = "const $share=(name,get)=>Object.defineProperty(exports,name,{enumerable:!0,get});";
  return define + code.replaceAll(getter, "$$share($1,()=>$2)");
}

/** One character outside Latin-1 makes V8 keep two bytes for each of a file's characters. Escapes say the same. */
function inAscii(code: string): string {
  return code.replaceAll(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** Every module that is loaded, in the end, by loading these. */
function modulesBehind(output: readonly (OutputChunk | OutputAsset)[], sources: readonly string[]): Set<string> {
  const chunks = new Map(output.flatMap((file) => (file.type === "chunk" ? [[file.fileName, file]] : [])));
  const wanted = sources.map((source) => path.join(root, source));
  const isWanted = ({ moduleIds }: OutputChunk): boolean => moduleIds.some((id) => wanted.includes(id));
  const reached = new Set([...chunks.values()].filter(isWanted));
  // A set is walked to its end, also through what is added on the way.
  for (const chunk of reached) {
    for (const name of chunk.imports) {
      const imported = chunks.get(name);
      if (imported !== undefined) reached.add(imported);
    }
  }
  return new Set([...reached].flatMap(({ moduleIds }) => moduleIds));
}

/** The launcher decides what is fresh, so its own function makes the mark. */
function sourceFingerprint(): string {
  const launcher: unknown = createRequire(import.meta.url)("../packages/cli/bin/heddle.cjs");
  if (typeof launcher === "object" && launcher !== null && "sourceFingerprint" in launcher) {
    const { sourceFingerprint: take } = launcher;
    if (typeof take === "function") return String(take(root));
  }
  throw new Error("bin/heddle.cjs does not export sourceFingerprint");
}

async function removeOldFiles(current: ReadonlySet<string>): Promise<void> {
  for (const name of await readdir(dist)) {
    // The page is built beside the program, by a build of its own, and so is what draws a run as a file.
    if (current.has(name) || name === "dashboard" || name === "run-page.cjs") continue;
    const file = path.join(dist, name);
    const info = await stat(file).catch(() => undefined);
    if (info === undefined || path.basename(scratch) === name) continue;
    if (clean || Date.now() - info.mtimeMs > KEEP_OLD_CHUNKS_MS) await rm(file, { recursive: true, force: true });
  }
}

async function report(files: readonly string[]): Promise<void> {
  const sizes = await Promise.all(files.map(async (file) => (await stat(path.join(dist, file))).size));
  const kB = (sizes.reduce((sum, size) => sum + size, 0) / 1000).toFixed(0);
  console.log(`built ${files.length} files, ${kB} kB, in ${(performance.now() - startedAt).toFixed(0)} ms`);
}
