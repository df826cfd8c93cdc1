/**
 * Writes witness and checkpoints of committed appends. A failure here changes nothing: the append stands, and the next
 * line covers this one. Relaxed appends are left out, because losing them to a power cut is not damage.
 */
import type { StoredEvent } from "@heddle/protocol";
import type { HomePaths } from "../home.ts";
import type { Notice } from "../journal.ts";
import { createCheckpointWriter, type CheckpointWriter } from "./checkpoint-writer.ts";
import { checkpointDue } from "./checkpoints.ts";
import { openWitness, type Witness } from "./witness.ts";

export interface Testimony extends Pick<CheckpointWriter, "flush">, Pick<Witness, "rotateWhenLarge" | "close"> {
  committed(events: readonly StoredEvent[], durability: "full" | "relaxed"): void;
}

/** `sync`: makes relaxed commits durable. */
export function openTestimony(
  { witness: file, checkpoints: folder, keys }: HomePaths,
  { sync, notice }: { readonly sync: () => void; readonly notice: (notice: Notice) => void },
): Testimony {
  const witness = openWitness(file);
  const checkpoints = createCheckpointWriter({
    folder,
    keys,
    sync: () => witness.sync(),
    onFailure: (error) => failed("checkpoint-failed", error),
  });

  function failed(kind: "witness-failed" | "checkpoint-failed", error: unknown): void {
    const said = error instanceof Error ? error.message : String(error);
    notice({ kind, message: `an event is stored, its ${kind.replace("-failed", "")} is not: ${said}` });
  }

  return {
    committed(events, durability) {
      const last = events.at(-1);
      const due = checkpointDue(events);
      if (last === undefined || (durability === "relaxed" && due === undefined)) return;
      const { position, stream, version, hash } = last;
      try {
        if (durability === "relaxed") sync();
        witness.write({ position, stream, version, hash, count: events.length });
      } catch (error) {
        failed("witness-failed", error);
      }
      if (due !== undefined) checkpoints.due(due);
    },
    flush: () => checkpoints.flush(),
    rotateWhenLarge: () => witness.rotateWhenLarge(),
    close: () => witness.close(),
  };
}
