/**
 * One holder at a time, among all processes. The lock is a lock of the kernel on an empty SQLite file, so it ends with its
 * process, however that ends. Waiting has a deadline.
 */
import { HeddleError } from "@heddle/protocol";
import { pause as rest } from "../requests/retry.ts";

const SQLITE_BUSY = 5;
const FIRST_PAUSE_MS = 5;
const MAX_PAUSE_MS = 100;
const NEVER = new AbortController().signal;

export interface LockOptions {
  readonly waitMs: number;
  readonly signal?: AbortSignal | undefined;
  /** For messages. */
  readonly shown: string;
}

/** `file` exists: it was created by the check of its folder. */
export async function acquireLock(file: string, options: LockOptions): Promise<Disposable> {
  const signal = options.signal ?? NEVER;
  const { DatabaseSync } = process.getBuiltinModule("node:sqlite");
  const database = new DatabaseSync(file);
  try {
    database.exec("PRAGMA busy_timeout = 0");
    const deadline = performance.now() + options.waitMs;
    for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(2 * pause, MAX_PAUSE_MS)) {
      signal.throwIfAborted();
      try {
        database.exec("BEGIN EXCLUSIVE");
        return { [Symbol.dispose]: () => database.close() };
      } catch (error) {
        if (!isBusy(error)) throw error;
      }
      if (performance.now() >= deadline) {
        throw new HeddleError("store.busy", `another process has held ${options.shown} for ${options.waitMs} ms`);
      }
      // Random pauses: waiting processes must not all try at the same time.
      await rest(pause * (0.5 + Math.random()), signal);
    }
  } catch (error) {
    database.close();
    if (error instanceof HeddleError || signal.aborted) throw error;
    throw new HeddleError("store.failed", `${options.shown} cannot be locked`, { cause: error });
  }
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && "errcode" in error && error.errcode === SQLITE_BUSY;
}
