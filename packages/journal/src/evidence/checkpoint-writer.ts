/**
 * Writes checkpoints a moment after they are due, so that reading the key, signing and syncing do not delay an append,
 * least of all the first one of a run.
 */
import type { StoredEvent } from "@heddle/protocol";
import { writeCheckpoint } from "./checkpoints.ts";
import { loadOrMakeSigner, type Signer } from "./keys.ts";

/** A turn has reached its model by then on a busy machine too, and little is lost by a crash. */
const DELAY_MS = 250;

export interface CheckpointWriter {
  due(head: StoredEvent): void;
  flush(): void;
}

export interface CheckpointWriterOptions {
  readonly folder: string;
  readonly keys: string;
  /** Makes the witness durable together with its checkpoint. */
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
