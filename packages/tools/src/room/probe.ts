/**
 * Whether this host mounts layers as a room needs them. Opens a room and uses it, because kernels differ in what a
 * mounted layer can do. Done once per process.
 */
import { mkdirSync, realpathSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { toHeddleError } from "@heddle/protocol";
import { CappedOutput } from "../commands/output.ts";
import { startCommand } from "../commands/process.ts";
import { findHostTool } from "../sandbox/host-tools.ts";
import type { RoomUpper } from "../sandbox/layout.ts";
import { openScratch } from "../sandbox/scratch.ts";
import { openOverlayRoom } from "./overlay-room.ts";

export type OverlayFound =
  | { readonly ok: true; readonly upper: RoomUpper["kind"]; readonly areReadsKnown: boolean }
  | { readonly ok: false; readonly reason: string };

/** A loaded machine needs a second. */
const PROBE_TIMEOUT_MS = 20_000;

let found: Promise<OverlayFound> | undefined;

/** In memory, or on disk where memory cannot hold the attributes of a layer (before Linux 6.6). */
export function findOverlay(): Promise<OverlayFound> {
  return (found ??= findOnce());
}

async function findOnce(): Promise<OverlayFound> {
  if (process.platform !== "linux") return { ok: false, reason: `there are none on ${process.platform}` };
  const inMemory = await probeOverlay("memory");
  if (inMemory.ok) return inMemory;
  const onDisk = await probeOverlay("disk");
  return onDisk.ok ? onDisk : inMemory;
}

export async function probeOverlay(upper: RoomUpper["kind"]): Promise<OverlayFound> {
  try {
    // If the process is killed, the next one removes it.
    await using scratch = openScratch();
    mkdirSync(scratch.room, { mode: 0o700 });
    return await tryOut(realpathSync.native(scratch.room), upper);
  } catch (error) {
    return { ok: false, reason: toHeddleError(error).message };
  }
}

/** Replaces a removed folder outside and inside, and reads one file of two. */
async function tryOut(folder: string, upper: RoomUpper["kind"]): Promise<OverlayFound> {
  const [base, layer, workspace] = [join(folder, "base"), join(folder, "layer"), join(folder, "workspace")];
  for (const path of [join(base, "one"), join(base, "two"), join(layer, "one"), workspace]) {
    mkdirSync(path, { recursive: true });
  }
  for (const path of ["one/old", "two/old"]) writeFileSync(join(base, path), "old");
  for (const path of ["one/read", "one/unread"]) writeFileSync(join(layer, path), "new");
  await using room = await openOverlayRoom({
    policy: { workspace, writeRoots: [workspace], masked: [], network: "none" },
    lower: [base],
    layer: { folder: layer, paths: ["one", "one/read", "one/unread"], removed: ["one"] },
    upper,
    areReadsKnown: true,
  });
  const output = new CappedOutput();
  await using command = await startCommand({
    sandbox: room.sandbox,
    argv: [
      findHostTool("sh") ?? "sh",
      "-c",
      "read -r x <one/read; rm -r two && mkdir two && ! [ -e two/old ] && ! [ -e one/old ]",
    ],
    cwd: workspace,
    env: { PATH: "/usr/bin:/bin" },
    stdin: "ignore",
    output,
    signal: AbortSignal.timeout(PROBE_TIMEOUT_MS),
  });
  const { exitCode, cause } = await command.exited;
  await output.close();
  if (exitCode !== 0) {
    const text = output.snapshot().text.trim();
    return { ok: false, reason: text || `a command in a room ended with ${exitCode ?? cause}` };
  }
  const reads = await room.reads();
  return { ok: true, upper, areReadsKnown: reads?.has("one/read") === true && !reads.has("one/unread") };
}
