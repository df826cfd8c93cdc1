/**
 * Real pipes for the streams of commands. Node gives a child socket pairs, which cannot be opened again through
 * /dev/stdout, as many scripts do. One pipe for both outputs also keeps their order. The named pipes they are made from
 * are unlinked before use.
 */
import { execFile } from "node:child_process";
import { closeSync, constants, openSync, readdirSync, rmSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { HeddleError, hostFaultOr, reasonOf } from "@heddle/protocol";
import { privateFolder } from "../sandbox/private-folder.ts";
import { temporaryFolder } from "../sandbox/temporary-folder.ts";

export interface PipeEnds {
  readonly readFd: number;
  readonly writeFd: number;
}

/** One start of mkfifo costs as much as a small command. */
const BATCH = 8;

/** Open in both directions until used. */
const ready: number[] = [];

/** `heddleEnd` must not block; the other end blocks, as programs expect. */
export async function openPipe(heddleEnd: "read" | "write"): Promise<PipeEnds> {
  const fd = ready.pop() ?? (await makeBatch());
  const again = `/proc/self/fd/${fd}`;
  let readFd: number | undefined;
  try {
    readFd = openSync(again, constants.O_RDONLY | (heddleEnd === "read" ? constants.O_NONBLOCK : 0));
    const writeFd = openSync(again, constants.O_WRONLY | (heddleEnd === "write" ? constants.O_NONBLOCK : 0));
    return { readFd, writeFd };
  } catch (error) {
    if (readFd !== undefined) closeSync(readFd);
    throw error;
  } finally {
    closeSync(fd);
  }
}

/** Takes over named pipes that were made ahead of the first command. */
export function adoptPipes(folder: string): void {
  if (ready.length > 0) return;
  try {
    keepReady(readdirSync(folder).map((name) => join(folder, name)));
    rmSync(folder, { recursive: true, force: true });
  } catch {
    // `openPipe` makes its own, and reports why it cannot.
  }
}

function keepReady(paths: readonly string[]): void {
  try {
    for (const path of paths) ready.push(openSync(path, constants.O_RDWR | constants.O_NONBLOCK));
  } catch (error) {
    // Where descriptors are scarce, others need them more.
    for (const fd of ready.splice(1)) closeSync(fd);
    if (ready.length === 0) throw error;
  }
}

async function makeBatch(): Promise<number> {
  // If Heddle is killed here, the next sandbox removes a folder of this name (sandbox/scratch.ts).
  const shared = temporaryFolder();
  const folder = await mkdtemp(join(privateFolder(shared) ?? shared, "heddle-sandbox-pipes-"));
  try {
    const names = Array.from({ length: BATCH }, (_, index) => join(folder, String(index)));
    await promisify(execFile)("mkfifo", ["-m", "600", ...names]);
    keepReady(names);
  } catch (cause) {
    const why = reasonOf(cause);
    throw new HeddleError(hostFaultOr(cause, "tool.failed"), `cannot make a pipe for a command: ${why}`, { cause });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  const fd = ready.pop();
  if (fd === undefined) throw new HeddleError("tool.failed", "cannot make a pipe for a command");
  return fd;
}
