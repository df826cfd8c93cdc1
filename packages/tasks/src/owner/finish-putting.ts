/** Whoever opens the tasks of a home finishes what a process that died was putting into a workspace. */
import { existsSync } from "node:fs";
import { basename } from "node:path";
import { toHeddleError } from "@heddle/protocol";
import type { Journal } from "@heddle/journal";
import { listed } from "../checks/shown.ts";
import { roomsRoot } from "../judge/task-rooms.ts";
import { recordUndone } from "./settle-undo.ts";

const PUTTING_MS = 600_000;

export interface FinishOptions {
  readonly journal: Journal;
  readonly home: string;
  readonly log: (line: string) => void;
}

/**
 * Before anybody works or looks there; one that cannot be finished keeps nobody from work elsewhere. An undo that is finished
 * is on record like any other. Where nothing was ever kept nothing is loaded.
 */
export async function finishPutting({ journal, home, log }: FinishOptions): Promise<void> {
  const rooms = roomsRoot(home);
  if (!existsSync(rooms)) return;
  try {
    const { finishPutting: finish } = await import("../tree/put-back.ts");
    const finished = await finish(rooms, AbortSignal.timeout(PUTTING_MS), ({ workspace, dir, error }) =>
      log(`${workspace ?? dir} is half written, and finishing it failed: ${error.message}`),
    );
    for (const { dir, workspace, left, isTakenBack } of finished) {
      const but =
        left.length === 0 ? "" : `; ${listed(left)} changed meanwhile and was left as it is: look at it yourself`;
      const did = isTakenBack === true ? "undid" : "finished";
      log(`${workspace}: ${did} the changes that a process was writing there when it ended${but}`);
      await recordUndone({ journal, home }, basename(dir));
    }
  } catch (error) {
    log(
      `the changes that a process was writing into a workspace when it ended could not be finished: ${toHeddleError(error).message}`,
    );
  }
}
