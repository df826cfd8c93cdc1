/** A base, a layer and a workspace for rooms, and a way to run commands in one. */
import { createHash } from "node:crypto";
import { lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, realpathSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { commandEnvironment } from "../src/commands/environment.ts";
import { CappedOutput } from "../src/commands/output.ts";
import { startCommand } from "../src/commands/process.ts";
import { openRoom, type RawPath, type Room, type RoomOptions } from "../src/room/open-room.ts";
import { toRaw, toSystem } from "../src/sandbox/raw-path.ts";

export interface RoomFixtureOptions {
  readonly base: Readonly<Record<string, string>>;
  readonly layer?: Readonly<Record<string, string>>;
  /** Name of the workspace's folder. */
  readonly name?: string;
}

export interface TestRooms extends AsyncDisposable {
  readonly folder: string;
  readonly base: string;
  readonly layer: string;
  readonly workspace: string;
  /** All that is in the layer, unless other paths are given. */
  open(options?: Partial<RoomOptions> & { readonly removed?: readonly RawPath[] }): Promise<Room>;
  /** Of everything in the base: names, kinds, modes, times, content. */
  baseState(): string;
}

export async function makeRooms({ base, layer = {}, name = "workspace" }: RoomFixtureOptions): Promise<TestRooms> {
  const folder = realpathSync.native(mkdtempSync(join(tmpdir(), "heddle-room-test-")));
  const paths = { base: join(folder, "base"), layer: join(folder, "layer"), workspace: join(folder, name) };
  for (const path of Object.values(paths)) mkdirSync(path);
  for (const [path, text] of Object.entries(base)) await put(join(paths.base, path), text);
  for (const [path, text] of Object.entries(layer)) await put(join(paths.layer, path), text);
  return {
    folder,
    ...paths,
    open: async ({ removed = [], ...options } = {}) =>
      await openRoom({
        policy: { workspace: paths.workspace, writeRoots: [], masked: [], network: "none" },
        lower: [paths.base],
        layer: { folder: paths.layer, paths: entriesOf(toRaw(paths.layer)), removed },
        ...options,
      }),
    baseState: () => stateOf(toRaw(paths.base)),
    [Symbol.asyncDispose]: async () => await rm(folder, { recursive: true, force: true }),
  };
}

async function put(path: string, text: string): Promise<void> {
  mkdirSync(dirname(path), { recursive: true });
  await writeFile(path, text);
}

/** Parents before children, as raw paths below the folder. */
export function entriesOf(folder: RawPath, below: RawPath = ""): RawPath[] {
  return readdirSync(toSystem(folder), "latin1").flatMap((name) => {
    const path = below === "" ? name : `${below}/${name}`;
    const isFolder = lstatSync(toSystem(`${folder}/${name}`)).isDirectory();
    return isFolder ? [path, ...entriesOf(`${folder}/${name}`, path)] : [path];
  });
}

function stateOf(folder: RawPath): string {
  const hash = createHash("sha256");
  for (const path of ["", ...entriesOf(folder).toSorted()]) {
    const at = toSystem(`${folder}/${path}`);
    const stat = lstatSync(at, { bigint: true });
    hash.update(`${path}\0${stat.mode} ${stat.size} ${stat.mtimeNs} ${stat.ctimeNs} ${stat.nlink} ${stat.ino}\0`);
    if (stat.isFile()) hash.update(readFileSync(at));
    if (stat.isSymbolicLink()) hash.update(readlinkSync(at, "buffer"));
  }
  return hash.digest("hex");
}

export async function runIn(
  room: Room,
  command: string | readonly string[],
  folder = "",
): Promise<{ readonly code: number | undefined; readonly text: string }> {
  const output = new CappedOutput();
  await using owned = await startCommand({
    sandbox: room.sandbox,
    argv: typeof command === "string" ? ["bash", "-c", command] : command,
    cwd: join(room.root, folder),
    env: commandEnvironment(process.env),
    stdin: "ignore",
    output,
    signal: AbortSignal.timeout(60_000),
  });
  const { exitCode } = await owned.exited;
  await output.close();
  return { code: exitCode, text: output.snapshot().text };
}

/** Sorted, so that whole lists can be compared. */
export async function readsOf(room: Room): Promise<readonly RawPath[] | undefined> {
  const reads = await room.reads();
  return reads === undefined ? undefined : [...reads].toSorted();
}
