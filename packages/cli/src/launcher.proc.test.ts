import { spawnSync } from "node:child_process";
import { chmod, cp, mkdir, readdir, readFile, rm, symlink, utimes, writeFile } from "node:fs/promises";
import path from "node:path";
import { expect, test } from "vitest";
import {
  LAUNCHER,
  openWorld,
  run,
  start,
  type Ran,
  type RunOptions,
  type Running,
  type World,
} from "../test/heddle-process.ts";

const REPOSITORY = path.join(import.meta.dirname, "..", "..", "..");

/** A program small enough to see what the launcher does to it. */
const PROGRAM = `
import { watchLauncher } from "./launcher.ts";
import { word } from "@heddle/words";
void watchLauncher(process.env);
const [what, argument] = process.argv.slice(2);
if (what === "exit") process.exit(Number(argument));
if (what === "kill") process.kill(process.pid, argument);
if (what === "env") console.log(Object.keys(process.env).filter((name) => name.startsWith("HEDDLE_LAUNCH")).join());
if (what === "wait") {
  process.on("SIGTERM", () => { console.log("got SIGTERM"); process.exit(7); });
  process.on("SIGINT", () => { console.log("got SIGINT"); process.exit(9); });
  setInterval(() => undefined, 1000);
  console.log("ready " + process.pid);
}
if (what === "mistyped") process.exit(2);
if (what === undefined) console.log(word + " " + (import.meta.url.endsWith(".ts") ? "source" : "bundle") + " " + process.version);
`;

interface Checkout extends AsyncDisposable {
  readonly world: World;
  readonly root: string;
  readonly dist: string;
  readonly launcher: string;
  say(word: string): Promise<void>;
}

/** A checkout like this one, with the real launcher and build script around a program of its own. */
async function openCheckout(): Promise<Checkout> {
  const world = await openWorld();
  const root = path.join(world.root, "checkout");
  const cli = path.join(root, "packages", "cli");
  const words = path.join(root, "packages", "words");
  await mkdir(path.join(cli, "bin"), { recursive: true });
  await mkdir(path.join(cli, "src"), { recursive: true });
  await mkdir(path.join(words, "src"), { recursive: true });
  await mkdir(path.join(root, "scripts"));
  await mkdir(path.join(root, "node_modules", "@heddle"), { recursive: true });
  const launcher = path.join(cli, "bin", "heddle.cjs");
  await cp(LAUNCHER, launcher);
  await cp(path.join(REPOSITORY, "scripts", "build.ts"), path.join(root, "scripts", "build.ts"));
  await cp(path.join(import.meta.dirname, "launcher.ts"), path.join(cli, "src", "launcher.ts"));
  await writeFile(path.join(cli, "src", "main.ts"), PROGRAM);
  await writeFile(path.join(cli, "package.json"), `{"name": "heddle", "type": "module"}`);
  await writeFile(path.join(root, "package.json"), `{"type": "module"}`);
  await writeFile(path.join(root, "package-lock.json"), "{}");
  await writeFile(
    path.join(words, "package.json"),
    `{"name": "@heddle/words", "type": "module", "exports": {".": {"heddle-source": "./src/index.ts"}}}`,
  );
  for (const name of await readdir(path.join(REPOSITORY, "node_modules"))) {
    if (!/^(rolldown|@rolldown|@oxc-project|node-(linux|win)-.*)$/.test(name)) continue;
    await symlink(path.join(REPOSITORY, "node_modules", name), path.join(root, "node_modules", name));
  }
  await symlink(words, path.join(root, "node_modules", "@heddle", "words"));
  const say = (word: string): Promise<void> =>
    writeFile(path.join(words, "src", "index.ts"), `export const word: string = ${JSON.stringify(word)};\n`);
  await say("hello");
  return {
    world,
    root,
    dist: path.join(cli, "dist"),
    launcher,
    say,
    [Symbol.asyncDispose]: () => world[Symbol.asyncDispose](),
  };
}

function launch(checkout: Checkout, args: readonly string[] = [], options: Partial<RunOptions> = {}): Promise<Ran> {
  return run(args, { world: checkout.world, launcher: checkout.launcher, ...options });
}

function launching(checkout: Checkout, args: readonly string[], options: Partial<RunOptions> = {}): Running {
  return start(args, { world: checkout.world, launcher: checkout.launcher, ...options });
}

test("a checkout builds itself at the first run and again when a source has changed", async () => {
  await using checkout = await openCheckout();
  expect(await launch(checkout)).toMatchObject({ code: 0, stdout: `hello bundle ${process.version}\n`, stderr: "" });
  const stamp = await readFile(path.join(checkout.dist, "build-stamp.json"), "utf8");
  expect(await launch(checkout)).toMatchObject({ code: 0, stdout: `hello bundle ${process.version}\n` });
  expect(await readFile(path.join(checkout.dist, "build-stamp.json"), "utf8")).toBe(stamp);
  await checkout.say("goodbye");
  expect(await launch(checkout)).toMatchObject({ code: 0, stdout: `goodbye bundle ${process.version}\n`, stderr: "" });
});

test("a change that keeps size and number of files is seen by its time, a removed file by the count", async () => {
  await using checkout = await openCheckout();
  await launch(checkout);
  await checkout.say("jello");
  const index = path.join(checkout.root, "packages", "words", "src", "index.ts");
  await utimes(index, new Date(), new Date(Date.now() + 5000));
  expect(await launch(checkout)).toMatchObject({ stdout: `jello bundle ${process.version}\n` });
});

test("eight first runs at once all work and leave no half-made folder", async () => {
  await using checkout = await openCheckout();
  const runs = await Promise.all(Array.from({ length: 8 }, () => launch(checkout)));
  for (const ran of runs) {
    expect(ran).toMatchObject({ code: 0, stdout: `hello bundle ${process.version}\n`, stderr: "" });
  }
  expect((await readdir(checkout.dist)).filter((name) => name.startsWith("."))).toEqual([]);
});

test("a checkout that cannot be written runs from source", async () => {
  await using checkout = await openCheckout();
  // A file where the folder should be stops every user, root too.
  await writeFile(checkout.dist, "");
  const ran = await launch(checkout);
  expect(ran).toMatchObject({ code: 0, stdout: `hello source ${process.version}\n` });
});

test.runIf(process.getuid?.() !== 0)("a read-only checkout runs from source without a word (not as root)", async () => {
  await using checkout = await openCheckout();
  const cli = path.dirname(checkout.dist);
  await chmod(cli, 0o555);
  const ran = await launch(checkout);
  await chmod(cli, 0o755);
  expect(ran).toMatchObject({ code: 0, stdout: `hello source ${process.version}\n`, stderr: "" });
});

test("an installed package, without sources, loads what it brought", async () => {
  await using checkout = await openCheckout();
  await launch(checkout);
  await rm(path.join(checkout.root, "packages", "cli", "src"), { recursive: true });
  await rm(path.join(checkout.root, "scripts"), { recursive: true });
  await checkout.say("not seen");
  expect(await launch(checkout)).toMatchObject({ code: 0, stdout: `hello bundle ${process.version}\n`, stderr: "" });
  await rm(checkout.dist, { recursive: true });
  const broken = await launch(checkout);
  expect(broken).toMatchObject({ code: 8, stdout: "" });
  expect(broken.stderr).toMatch(/^heddle: cannot load /);
});

test("a source that does not parse is reported with its place", async () => {
  await using checkout = await openCheckout();
  await writeFile(path.join(checkout.root, "packages", "words", "src", "index.ts"), "export const = ;\n");
  const ran = await launch(checkout);
  expect(ran.code).not.toBe(0);
  expect(ran.stderr).toContain("words/src/index.ts");
});

test("exit codes pass through", async () => {
  await using checkout = await openCheckout();
  expect(await launch(checkout, ["exit", "42"])).toMatchObject({ code: 42, signal: null });
});

// ---- compiled code

test("compiled code is kept for each command, learnt from the first runs, and then left alone", async () => {
  await using checkout = await openCheckout();
  for (const lessons of [1, 2, 3, 4, 4, 4]) {
    expect(await launch(checkout, ["exit", "0"])).toMatchObject({ code: 0, stderr: "" });
    const kept = await compiled(checkout, "exit");
    expect(kept.map(({ bytes }) => bytes.at(-1))).toEqual(kept.map(() => lessons));
    expect(kept.map(({ name }) => name)).toContainEqual(expect.stringMatching(/^heddle-[\w-]{8}\.cjs\.bin$/));
  }
  expect(await compiled(checkout, "env")).toEqual([]);
  await launch(checkout, ["env"]);
  expect(await compiled(checkout, "env")).not.toEqual([]);
  await launch(checkout, ["mistyped"]);
  expect(await compiled(checkout, "mistyped")).toEqual([]);
});

test.each([
  ["cut short", (bytes: Buffer) => bytes.subarray(0, bytes.length / 2)],
  ["empty", () => Buffer.alloc(0)],
  ["of another program", () => Buffer.from("what is this?".repeat(1000))],
])("compiled code that is %s is made again", async (_what, damage) => {
  await using checkout = await openCheckout();
  await launch(checkout, ["env"]);
  const [whole] = await compiled(checkout, "env");
  await writeFile(whole?.file ?? "", damage(whole?.bytes ?? Buffer.alloc(0)));
  expect(await launch(checkout, ["env"])).toMatchObject({ code: 0, stderr: "" });
  const [fixed] = await compiled(checkout, "env");
  expect(fixed?.bytes.at(-1)).toBe(1);
  expect(fixed?.bytes.length).toBeGreaterThan(1000);
});

test("compiled code that cannot be kept is no failure", async () => {
  await using checkout = await openCheckout();
  await writeFile(path.join(checkout.root, "node_modules", ".cache"), "not a folder");
  expect(await launch(checkout)).toMatchObject({ code: 0, stderr: "" });
  expect(await launch(checkout)).toMatchObject({ code: 0, stderr: "" });
});

test("compiled code that nothing has used for a week goes away", async () => {
  await using checkout = await openCheckout();
  await launch(checkout, ["env"]);
  const [fresh] = await compiled(checkout, "env");
  const old = path.join(path.dirname(fresh?.file ?? ""), "heddle-00000000.cjs.bin");
  await writeFile(old, "old");
  const aWeekAgo = new Date(Date.now() - 8 * 24 * 60 * 60 * 1000);
  await utimes(old, aWeekAgo, aWeekAgo);
  await launch(checkout, ["env"]);
  expect((await compiled(checkout, "env")).map(({ file }) => file)).toContain(fresh?.file);
  await expect(readFile(old)).rejects.toThrow("ENOENT");
});

interface Compiled {
  readonly name: string;
  readonly file: string;
  readonly bytes: Buffer;
}

async function compiled(checkout: Checkout, command: string): Promise<readonly Compiled[]> {
  const folder = path.join(checkout.root, "node_modules", ".cache", "heddle");
  const [byNode] = await readdir(folder);
  const files = path.join(folder, byNode ?? "", command);
  const names = await readdir(files).catch(() => []);
  return Promise.all(
    names.map(async (name) => ({ name, file: path.join(files, name), bytes: await readFile(path.join(files, name)) })),
  );
}

// ---- an older Node

const OLD_NODE = ["/usr/bin/node", "/usr/local/bin/node"].find((file) => {
  const version = spawnSync(file, ["-p", "process.versions.node"], { encoding: "utf8" }).stdout ?? "";
  const major = Number(version.split(".")[0]);
  return major >= 12 && major < 24;
});
const testOld = test.runIf(OLD_NODE !== undefined);
const old = { node: OLD_NODE ?? "" };

testOld("an older Node hands over to the checkout's own and keeps the exit code (needs a Node below 24)", async () => {
  await using checkout = await openCheckout();
  expect(await launch(checkout, [], old)).toMatchObject({
    code: 0,
    stdout: expect.stringContaining("hello bundle v24."),
  });
  expect(await launch(checkout, ["exit", "42"], old)).toMatchObject({ code: 42, signal: null });
});

testOld("an older Node dies by the signal its child died by (needs a Node below 24)", async () => {
  await using checkout = await openCheckout();
  expect(await launch(checkout, ["kill", "SIGTERM"], old)).toMatchObject({ code: null, signal: "SIGTERM" });
  expect(await launch(checkout, ["kill", "SIGKILL"], old)).toMatchObject({ code: null, signal: "SIGKILL" });
});

testOld("an older Node forwards signals and waits for the answer (needs a Node below 24)", async () => {
  await using checkout = await openCheckout();
  for (const [signal, code] of [
    ["SIGTERM", 7],
    ["SIGINT", 9],
  ] as const) {
    await using waiting = launching(checkout, ["wait"], old);
    await waiting.sees("ready");
    waiting.child.kill(signal);
    expect(await waiting.ended).toMatchObject({ code, stdout: expect.stringContaining(`got ${signal}`) });
  }
});

testOld("a killed launcher does not leave its child running (needs a Node below 24)", async () => {
  await using checkout = await openCheckout();
  await using waiting = launching(checkout, ["wait"], old);
  await waiting.sees("ready");
  waiting.child.kill("SIGKILL");
  // stdout closes only when the child behind the launcher has ended too.
  expect(await waiting.ended).toMatchObject({ signal: "SIGKILL", stdout: expect.stringContaining("got SIGTERM") });
});

testOld(
  "the marks between launcher and program do not reach what the program starts (needs a Node below 24)",
  async () => {
    await using checkout = await openCheckout();
    expect(await launch(checkout, ["env"], old)).toMatchObject({ code: 0, stdout: "\n" });
  },
);

testOld("without a newer Node there is one clear line and exit code 8 (needs a Node below 24)", async () => {
  await using checkout = await openCheckout();
  const modules = path.join(checkout.root, "node_modules");
  for (const name of await readdir(modules)) if (name.startsWith("node-")) await rm(path.join(modules, name));
  const none = await launch(checkout, [], old);
  expect(none).toMatchObject({ code: 8, stdout: "" });
  expect(none.stderr).toMatch(/^heddle: Node 24\.19 or newer is needed, this is v[^\n]+HEDDLE_NODE[^\n]+\n$/);
  expect(await launch(checkout, [], { ...old, env: { HEDDLE_NODE: process.execPath } })).toMatchObject({ code: 0 });
  const missing = await launch(checkout, [], { ...old, env: { HEDDLE_NODE: "/no/such/node" } });
  expect(missing).toMatchObject({ code: 8, stderr: expect.stringMatching(/^heddle: cannot start \/no\/such\/node/) });
  const loop = await launch(checkout, [], { ...old, env: { HEDDLE_NODE: OLD_NODE ?? "" } });
  expect(loop).toMatchObject({
    code: 8,
    stderr: expect.stringMatching(/^heddle: the Node that HEDDLE_NODE names is v/),
  });
});
