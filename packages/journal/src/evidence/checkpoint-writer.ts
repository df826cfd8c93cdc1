/**
 * Writes checkpoints a moment after they are due. They are written after the commit in any case and may lag behind it, so
 * reading the key, signing and syncing files need not hold up an append, least of all the first one of a run.
 */
import type { StoredEvent } from "@heddle/protocol";
import { writeCheckpoint } from "./checkpoints.ts";
import { loadOrMakeSigner, type Signer } from "./keys.ts";

/** Long enough for a turn to be on its way to its model on a busy machine too, short enough to be there after a crash a moment later. */
const DELAY_MS = 250;

export interface CheckpointWriter {
  due(head: StoredEvent): void;
  /** Writes what is due now: before closing, and before anybody reads the checkpoints. */
  flush(): void;
}

export interface CheckpointWriterOptions {
  readonly folder: string;
  readonly keys: string;
  /** The witness is made durable together with the checkpoint that leans on it. */
  sync(): void;
  onFailure(error: unknown): void;
}

export function createCheckpointWriter(options: CheckpointWriterOptions): CheckpointWriter {
  const waiting: StoredEvent[] = [];
  let signer: Signer | undefined;
  let timer: NodeJS.Timeout | undefined;

  function attempt(work: () => void): void {
    try {
      work();
    } catch (error) {
      options.onFailure(error);
    }
  }

  function flush(): void {
    clearTimeout(timer);
    timer = undefined;
    const heads = waiting.splice(0);
    if (heads.length > 0) attempt(() => options.sync());
    for (const head of heads) {
      attempt(() => {
        signer ??= loadOrMakeSigner(options.keys);
        writeCheckpoint(options.folder, head, signer);
      });
    }
  }

  return {
    due(head) {
      waiting.push(head);
      timer ??= setTimeout(flush, DELAY_MS).unref();
    },
    flush,
  };
}
