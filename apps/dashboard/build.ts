/**
 * Builds the page into packages/cli/dist/dashboard, each file beside itself as .br and .gz, and refuses a page that has
 * outgrown its limits. Built in a folder of its own and moved in place as a whole. Beside it, run-page.cjs: what draws a
 * stored run as one file, for commands; it is loaded by nothing else.
 * Usage: node apps/dashboard/build.ts [--out DIR]
 */
import { mkdir, mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import { parseArgs, promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import { build } from "vite";

const HERE = import.meta.dirname;
const { out } = parseArgs({
  options: { out: { type: "string", default: path.join(HERE, "..", "..", "packages", "cli", "dist", "dashboard") } },
}).values;
const PAGE = path.resolve(out);
const DIST = path.dirname(PAGE);
/** What a browser loads before it draws, compressed. */
const MAX_FIRST_JS_BYTES = 150_000;
const MAX_CSS_BYTES = 13_000;
/** In it: React's renderer for text, the components of a run, and the style sheet. */
const STILL = "run-page.cjs";
const MAX_STILL_BYTES = 700_000;
const COMPRESSED = /\.(?:html|js|css|svg|json|webmanifest)$/;

interface Chunk {
  readonly file: string;
  readonly isEntry?: boolean;
  readonly imports?: readonly string[];
  readonly css?: readonly string[];
}

// Whoever builds it: tests run in another mode, and React would bring along what it says to developers.
process.env["NODE_ENV"] = "production";

await mkdir(DIST, { recursive: true });
const scratch = await mkdtemp(path.join(DIST, ".dashboard-"));
const stillScratch = await mkdtemp(path.join(DIST, ".run-page-"));
try {
  // A configuration that is bundled first would be written into the tree, which may belong to somebody else.
  await build({ root: HERE, configLoader: "runner", logLevel: "warn", build: { outDir: scratch, emptyOutDir: true } });
  const sizes = await measure(scratch);
  await compress(scratch);
  await rm(path.join(scratch, ".vite"), { recursive: true, force: true });
  const still = await buildStill(stillScratch);
  await rm(PAGE, { recursive: true, force: true });
  await rename(scratch, PAGE);
  await rename(path.join(stillScratch, STILL), path.join(DIST, STILL));
  console.log(
    `built the page: first load ${kB(sizes.js)} of JS and ${kB(sizes.css)} of CSS, gzip; ${STILL} ${kB(still)}`,
  );
} finally {
  for (const folder of [scratch, stillScratch]) await rm(folder, { recursive: true, force: true });
}

/** One file for Node, with everything in it. */
async function buildStill(outDir: string): Promise<number> {
  await build({
    root: HERE,
    configLoader: "runner",
    logLevel: "warn",
    build: {
      ssr: "src/still/render.tsx",
      outDir,
      emptyOutDir: true,
      manifest: false,
      minify: true,
      copyPublicDir: false,
      rolldownOptions: { output: { format: "cjs", entryFileNames: STILL, codeSplitting: false } },
    },
    ssr: {
      noExternal: true,
      target: "webworker",
      resolve: { conditions: ["heddle-source", "browser", "import", "default"] },
    },
  });
  const { size } = await stat(path.join(outDir, STILL));
  if (size > MAX_STILL_BYTES) throw new Error(`${STILL} is ${kB(size)}, the limit is ${kB(MAX_STILL_BYTES)}`);
  return size;
}

/** The entry, and whatever it imports before it can run. */
async function measure(dir: string): Promise<{ js: number; css: number }> {
  const manifest = JSON.parse(await readFile(path.join(dir, ".vite", "manifest.json"), "utf8")) as Record<
    string,
    Chunk
  >;
  const reached = new Set(Object.keys(manifest).filter((key) => manifest[key]?.isEntry === true));
  // A set is walked to its end, also through what is added on the way.
  for (const key of reached) for (const imported of manifest[key]?.imports ?? []) reached.add(imported);
  const chunks = [...reached].flatMap((key) => manifest[key] ?? []);
  const js = await gzipBytes(
    dir,
    chunks.map(({ file }) => file).filter((file) => file.endsWith(".js")),
  );
  const all = await readdir(path.join(dir, "assets"));
  const css = await gzipBytes(
    dir,
    all.filter((name) => name.endsWith(".css")).map((name) => `assets/${name}`),
  );
  if (js === 0 || css === 0) throw new Error("the build has no script or no style sheet");
  if (js > MAX_FIRST_JS_BYTES) throw new Error(`first load is ${kB(js)} of JS, the limit is ${kB(MAX_FIRST_JS_BYTES)}`);
  if (css > MAX_CSS_BYTES) throw new Error(`the style sheets are ${kB(css)}, the limit is ${kB(MAX_CSS_BYTES)}`);
  return { js, css };
}

async function gzipBytes(dir: string, files: readonly string[]): Promise<number> {
  let bytes = 0;
  for (const file of files) bytes += (await gzipped(await readFile(path.join(dir, file)))).byteLength;
  return bytes;
}

async function compress(dir: string): Promise<void> {
  for (const name of await readdir(dir, { recursive: true })) {
    if (!COMPRESSED.test(name) || name.startsWith(".vite")) continue;
    const file = path.join(dir, name);
    const bytes = await readFile(file);
    await writeFile(`${file}.gz`, await gzipped(bytes));
    const params = { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY };
    await writeFile(`${file}.br`, await promisify(brotliCompress)(bytes, { params }));
  }
}

function gzipped(bytes: Buffer): Promise<Buffer> {
  return promisify(gzip)(bytes, { level: constants.Z_BEST_COMPRESSION });
}

function kB(bytes: number): string {
  return `${(bytes / 1000).toFixed(1)} kB`;
}
