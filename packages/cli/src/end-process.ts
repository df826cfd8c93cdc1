/**
 * The end of the process, when everything is stored and printed. `process.exit` waits for the threads of V8 and libuv: a
 * compiler thread that waits for a collection (nodejs/node#54918), or one that opens a file on a disk that does not answer,
 * keeps the process for ever. So it is replaced by a shell that gives the exit code, which takes its threads with it.
 */
import { accessSync, constants, fstatSync } from "node:fs";

const SHELL = "/bin/sh";

export function endProcess(code: number): never {
  if (!hasShell()) return process.exit(code);
  process.exitCode = code;
  // What `process.exit` does before it waits; a listener may still change the code.
  process.emit("exit", code);
  const last = Number(process.exitCode);
  for (const descriptor of [0, 1, 2]) makeBlocking(descriptor);
  try {
    // A shell complains of a current folder that is gone.
    process.chdir("/");
    process.execve?.(SHELL, ["sh", "-c", `exit ${last}`], {});
  } catch {
    // Not allowed to: the usual way is left.
  }
  return process.exit(last);
}

function hasShell(): boolean {
  if (process.platform === "win32" || process.execve === undefined) return false;
  try {
    accessSync(SHELL, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Node reads and writes pipes without waiting, and other processes with the same descriptor would be left with that. */
function makeBlocking(descriptor: number): void {
  try {
    const kind = fstatSync(descriptor);
    if (!kind.isFIFO() && !kind.isSocket()) return;
    const { Socket } = process.getBuiltinModule("node:net");
    const handle: unknown = Reflect.get(new Socket({ fd: descriptor, readable: false, writable: false }), "_handle");
    if (typeof handle !== "object" || handle === null || !("setBlocking" in handle)) return;
    if (typeof handle.setBlocking === "function") handle.setBlocking(true);
  } catch {
    // Closed, or no kind of pipe: there is nothing to give back.
  }
}
