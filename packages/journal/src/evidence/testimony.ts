/**
 * Writes witness and checkpoints of committed appends. A failure here changes nothing: the append stands, and the next
 * line covers this one. Relaxed appends are left out, because losing them to a power cut is not damage. Checkpoints are
 * written a moment after they are due and synced beside other work, so that neither delays an append.
 */
import { closeSync, fsync, openSync } from "node:fs";
import { reasonOf, type StoredEvent } from "@heddle/protocol";
import { sizeOf, syncFile, type HomePaths } from "../home.ts";
import type { Notice } from "../journal.ts";
import { checkpointDue, signHead, writeCheckpoint, type Checkpoint } from "./checkpoints.ts";
import { loadOrMakeSigner, type Signer } from "./keys.ts";
import { openWitness } from "./witness.ts";

/** A turn has reached its model by then on a busy machine too, and little is lost by a crash. */
const DELAY_MS = 250;

type Failure = "witness-failed" | "checkpoint-failed";

export type Testimony = ReturnType<typeof openTestimony>;

/** `sync`: makes relaxed commits durable. `signed`: for those who keep checkpoints elsewhere too. */
export function openTestimony(
  { witness: file, checkpoints: folder, keys }: HomePaths,
  {
    sync,
    notice,
    signed,
  }: {
    readonly sync: () => void;
    readonly notice: (notice: Notice) => void;
    readonly signed?: (checkpoint: Checkpoint) => void;
  },
) {
  const witness = openWitness(file);
  const due: StoredEvent[] = [];
  let signer: Signer | undefined;
  let timer: NodeJS.Timeout | undefined;

  function attempt(kind: Failure, work: () => void): void {
    try {
      work();
    } catch (error) {
      failed(kind, error);
    }
  }

  function failed(kind: Failure, error: unknown): void {
    const reason = reasonOf(error);
    notice({ kind, message: `an event is stored, its ${kind.replace("-failed", "")} is not: ${reason}` });
  }

  function flushInBackground(): void {
    write((path) => {
      const fd = openSync(path, "r");
      fsync(fd, (error) => {
        closeSync(fd);
        if (error !== null) failed("checkpoint-failed", error);
      });
    });
  }

  /** Writes the checkpoints that are due, and has every file they rest on synced, the witness first. */
  function write(sync: (path: string) => void): void {
    clearTimeout(timer);
    timer = undefined;
    const heads = due.splice(0);
    // Renamed away a moment ago, it has no line yet.
    const written = new Set(heads.length > 0 && sizeOf(file) >= 0 ? [file] : []);
    for (const head of heads) {
      attempt("checkpoint-failed", () => {
        signer ??= loadOrMakeSigner(keys);
        const checkpoint = signHead(head, signer);
        for (const path of writeCheckpoint(folder, checkpoint)) written.add(path);
        signed?.(checkpoint);
      });
    }
    for (const path of written) attempt("checkpoint-failed", () => sync(path));
  }

  return {
    committed(events: readonly StoredEvent[], durability: "full" | "relaxed"): void {
      const last = events.at(-1);
      const head = checkpointDue(events);
      if (last === undefined || (durability === "relaxed" && head === undefined)) return;
      const { position, stream, version, hash } = last;
      attempt("witness-failed", () => {
        if (durability === "relaxed") sync();
        witness.write({ position, stream, version, hash, count: events.length });
      });
      if (head === undefined) return;
      due.push(head);
      timer ??= setTimeout(flushInBackground, DELAY_MS).unref();
    },
    /** Durable when it returns. */
    flush: () => write(syncFile),
    rotateWhenLarge: () => witness.rotateWhenLarge(),
    close: () => witness.close(),
  };
}
