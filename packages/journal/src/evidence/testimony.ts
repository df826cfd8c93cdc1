/**
 * Writes witness and checkpoints of committed appends. A failure here changes nothing: the append stands, and the next
 * line covers this one. Relaxed appends are left out, because losing them to a power cut is not damage. Checkpoints are
 * written a moment after they are due, so that reading the key, signing and syncing do not delay an append.
 */
import type { StoredEvent } from "@heddle/protocol";
import type { HomePaths } from "../home.ts";
import type { Notice } from "../journal.ts";
import { checkpointDue, writeCheckpoint } from "./checkpoints.ts";
import { loadOrMakeSigner, type Signer } from "./keys.ts";
import { openWitness } from "./witness.ts";

/** A turn has reached its model by then on a busy machine too, and little is lost by a crash. */
const DELAY_MS = 250;

export type Testimony = ReturnType<typeof openTestimony>;

/** `sync`: makes relaxed commits durable. */
export function openTestimony(
  { witness: file, checkpoints: folder, keys }: HomePaths,
  { sync, notice }: { readonly sync: () => void; readonly notice: (notice: Notice) => void },
) {
  const witness = openWitness(file);
  const due: StoredEvent[] = [];
  let signer: Signer | undefined;
  let timer: NodeJS.Timeout | undefined;

  function attempt(kind: "witness-failed" | "checkpoint-failed", work: () => void): void {
    try {
      work();
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      notice({ kind, message: `an event is stored, its ${kind.replace("-failed", "")} is not: ${reason}` });
    }
  }

  /** Writes the checkpoints that are due. */
  function flush(): void {
    clearTimeout(timer);
    timer = undefined;
    const heads = due.splice(0);
    if (heads.length > 0) attempt("checkpoint-failed", () => witness.sync());
    for (const head of heads) {
      attempt("checkpoint-failed", () => {
        signer ??= loadOrMakeSigner(keys);
        writeCheckpoint(folder, head, signer);
      });
    }
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
      timer ??= setTimeout(flush, DELAY_MS).unref();
    },
    flush,
    rotateWhenLarge: () => witness.rotateWhenLarge(),
    close: () => witness.close(),
  };
}
