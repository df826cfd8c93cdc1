/** What `config/value/write` and `config/batchWrite` leave behind where the file cannot be written: the old one, whole. */
import { spawnSync } from "node:child_process";
import { chmod, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { expect, test } from "vitest";
import { KEY, serve } from "../../test/app-server-client.ts";
import { openWorld, type RunOptions, type World } from "../../test/heddle-process.ts";

const isRoot = process.getuid?.() === 0;
const canMount = isRoot && spawnSync("unshare", ["--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]).status === 0;
/** Root without the right to pass over the modes of files. */
const HELD = ["--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-dac_override,-dac_read_search"];
const canBeHeld = isRoot && spawnSync("setpriv", [...HELD, "true"]).status === 0;

const CONFIG = `# mine\nmodel = "gpt-5.5"\nmodel_provider = "mock"\n[model_providers.mock]\nbase_url = "http://127.0.0.1:9/v1"\n`;
const BATCH = [
  { keyPath: "model", value: "gpt-5.4", mergeStrategy: "replace" },
  { keyPath: "model_reasoning_effort", value: "low", mergeStrategy: "replace" },
];
const [ONE] = BATCH;

interface Fault {
  /** Code and text of what the client is told; the file stands before it. */
  readonly code: string;
  readonly says: string;
  begin(folder: string): Promise<void>;
  end(folder: string): Promise<void>;
}

const remount = (folder: string, mode: "ro" | "rw"): void => {
  expect(spawnSync("mount", ["-o", `remount,${mode}`, folder]).status).toBe(0);
};

const FULL: Fault = {
  code: "store.full",
  says: "the disk is full",
  async begin(folder) {
    const error: unknown = await writeFile(path.join(folder, "filler"), Buffer.alloc(4 * 1024 * 1024)).catch(
      (cause: unknown) => cause,
    );
    expect(error).toMatchObject({ code: "ENOSPC" });
  },
  end: (folder) => rm(path.join(folder, "filler")),
};

const READ_ONLY: Fault = {
  code: "store.read-only",
  says: "the file system is read-only",
  begin: async (folder) => remount(folder, "ro"),
  end: async (folder) => remount(folder, "rw"),
};

const CLOSED: Fault = {
  code: "store.failed",
  says: "permission denied",
  begin: (folder) => chmod(folder, 0o555),
  end: (folder) => chmod(folder, 0o755),
};

/** Both calls are refused and leave no trace; once the fault has passed both are carried out, by the same server. */
async function expectKept(world: World, fault: Fault, more: Partial<RunOptions> = {}): Promise<void> {
  const folder = path.join(world.root, "codex");
  const file = await world.file("codex/config.toml", CONFIG);
  await using served = serve([], { world, env: KEY, ...more });
  const { client } = served;
  await client.initialize({ experimentalApi: true });
  const before = await client.call("config/read", { includeLayers: true });
  const names = (await readdir(folder)).toSorted();
  await fault.begin(folder);
  const message = `${file} could not be written: ${fault.says}`;
  const refusal = { code: -32603, message, data: { code: fault.code } };
  // Sent at once: none waits for one that has failed.
  const refused = await Promise.all([
    client.ask("config/value/write", ONE),
    client.ask("config/batchWrite", { edits: BATCH }),
    client.ask("config/value/write", ONE),
  ]);
  expect(refused.map(({ error }) => error)).toMatchObject([refusal, refusal, refusal]);
  expect(await readFile(file, "utf8")).toBe(CONFIG);
  expect(await client.call("config/read", { includeLayers: true })).toEqual(before);
  await fault.end(folder);
  expect((await readdir(folder)).toSorted()).toEqual(names);
  expect(await client.call("config/value/write", ONE)).toMatchObject({ status: "ok", filePath: file });
  expect(await client.call("config/batchWrite", { edits: BATCH })).toMatchObject({ status: "ok" });
  expect(await client.call("config/read", {})).toMatchObject({
    config: { model: "gpt-5.4", model_reasoning_effort: "low" },
  });
  expect(await readFile(file, "utf8")).toMatch(/^# mine\n/);
  expect((await readdir(folder)).toSorted()).toEqual(names);
}

async function mounted(world: World): Promise<AsyncDisposable> {
  const folder = path.join(world.root, "codex");
  await mkdir(folder);
  expect(spawnSync("mount", ["-t", "tmpfs", "-o", "size=64k", "tmpfs", folder]).status).toBe(0);
  return {
    async [Symbol.asyncDispose]() {
      spawnSync("umount", ["--lazy", folder]);
    },
  };
}

test.runIf(canMount)(
  "15.8: (as root, to mount one) a full disk leaves the old configuration, and with room it is written",
  async () => {
    await using world = await openWorld();
    await using _disk = await mounted(world);
    await expectKept(world, FULL);
  },
);

test.runIf(canMount)(
  "15.8: (as root, to mount one) a read-only disk leaves the old configuration, and a writable one is written",
  async () => {
    await using world = await openWorld();
    await using _disk = await mounted(world);
    await expectKept(world, READ_ONLY);
  },
);

test.runIf(canBeHeld || !isRoot)(
  "15.8: (without the rights of root) a closed folder leaves the old configuration, and an open one is written",
  async () => {
    await using world = await openWorld();
    const held = `#!/bin/sh\nexec setpriv ${HELD.join(" ")} ${process.execPath} "$@"\n`;
    const node = await world.file("held-node", held);
    await chmod(node, 0o755);
    await expectKept(world, CLOSED, isRoot ? { node } : {});
  },
);
