/**
 * Walks a large store with several threads. This file is both sides: it starts the workers, and is what they run. A
 * worker takes the next range until none is left.
 */
import { parentPort, Worker, workerData } from "node:worker_threads";
import { HeddleError, type ErrorCode } from "@heddle/protocol";
import { connect, untilFree } from "./driver.ts";
import { asDamage, toStoreError } from "./store-errors.ts";
import type { RowRange } from "../evidence/stored-rows.ts";
import { NOTHING_WALKED, walkRange, type WalkedRange } from "../evidence/walk.ts";
import { rowsOf } from "./stored-rows.ts";
import { checkStructure } from "./walk-store.ts";

/** Positions at a time: a tenth of a second or two. */
const RANGE = 16_384;
/** Indexes in the shared memory. */
const NEXT_PART = 0;
const DONE_EVENTS = 1;
const TELL_EVERY_MS = 100;
/** The flag keeps a bundle, in which files are shared, from running as the program. */
const THREAD = 'globalThis.isHeddleThread = true; import(require("node:worker_threads").workerData.file);';

export interface ParallelWalk {
  readonly database: string;
  readonly last: number;
  readonly walkers: number;
  readonly signal?: AbortSignal | undefined;
  readonly onProgress: (events: number) => void;
}

type Part = RowRange | "structure";

interface Job {
  readonly isVerifying: true;
  readonly file: string;
  readonly database: string;
  readonly parts: readonly Part[];
  readonly shared: Int32Array<SharedArrayBuffer>;
}

type WorkerMessage =
  | { readonly index: number; readonly walked: WalkedRange }
  | { readonly failure: { readonly code: ErrorCode; readonly message: string } };

export async function walkInParallel({
  database,
  last,
  walkers,
  signal,
  onProgress,
}: ParallelWalk): Promise<WalkedRange[]> {
  const count = Math.max(1, Math.ceil(last / RANGE));
  const ranges = Array.from({ length: count }, (_, index): RowRange => {
    const after = index * RANGE;
    return index === count - 1 ? { after } : { after, upTo: after + RANGE };
  });
  const parts: readonly Part[] = ["structure", ...ranges];
  const shared = new Int32Array(new SharedArrayBuffer(8));
  const job: Job = { isVerifying: true, file: import.meta.url, database, parts, shared };
  const telling = setInterval(() => onProgress(Atomics.load(shared, DONE_EVENTS)), TELL_EVERY_MS);
  const walked: WalkedRange[] = [];
  try {
    const workers = Array.from({ length: Math.min(walkers, parts.length) }, () => runWalker(job, walked, signal));
    await Promise.all(workers);
  } finally {
    clearInterval(telling);
  }
  const isWhole = parts.every((_, index) => walked[index] !== undefined);
  if (!isWhole) throw new HeddleError("store.failed", "not all of the record was walked");
  return walked;
}

async function runWalker(job: Job, walked: WalkedRange[], signal: AbortSignal | undefined): Promise<void> {
  const worker = new Worker(THREAD, { eval: true, workerData: job, execArgv: ["--conditions=heddle-source"] });
  let onEnd: (() => void) | undefined;
  try {
    await new Promise<void>((resolve, reject) => {
      onEnd = () => reject(signal?.reason instanceof Error ? signal.reason : new Error("ended"));
      signal?.addEventListener("abort", onEnd, { once: true });
      worker.on("message", (message: WorkerMessage) => {
        if ("walked" in message) walked[message.index] = message.walked;
        else reject(new HeddleError(message.failure.code, message.failure.message));
      });
      worker.on("error", reject);
      worker.on("exit", (code) =>
        code === 0 ? resolve() : reject(new HeddleError("store.failed", `a walker ended with ${code}`)),
      );
    });
  } finally {
    if (onEnd !== undefined) signal?.removeEventListener("abort", onEnd);
    await worker.terminate();
  }
}

async function walk({ database, parts, shared }: Job, tell: (message: WorkerMessage) => void): Promise<void> {
  try {
    const connection = await connect(database, "read-only");
    for (;;) {
      const index = Atomics.add(shared, NEXT_PART, 1);
      const part = parts[index];
      if (part === undefined) break;
      const walked = await untilFree(() => walkOne(part));
      Atomics.add(shared, DONE_EVENTS, walked.events);
      tell({ index, walked });
    }
    connection.close();

    async function walkOne(part: Part): Promise<WalkedRange> {
      try {
        if (part === "structure") return checkStructure(connection);
        const steps = walkRange(rowsOf(connection), part);
        for (;;) {
          const { done, value } = await steps.next();
          if (done === true) return value;
        }
      } catch (error) {
        // A damaged page ends this range and no other.
        return { ...NOTHING_WALKED, damage: [asDamage(error)] };
      }
    }
  } catch (error) {
    const { code, message } = toStoreError(error, database);
    tell({ failure: { code, message } });
  }
}

function isJob(data: unknown): data is Job {
  return typeof data === "object" && data !== null && "isVerifying" in data;
}

const port = parentPort;
if (port !== null && isJob(workerData))
  walk(workerData, (message) => port.postMessage(message)).catch(() => process.exit(1));
