/** Whoever opens the tasks of a home finishes what a process that died was putting into a workspace. */
import { existsSync } from "node:fs";
import { toHeddleError } from "@heddle/protocol";
import { roomsRoot } from "../judge/task-rooms.ts";

const PUTTING_MS = 600_000;

/** Before anybody works or looks there; one that cannot be finished keeps nobody from work elsewhere. Where nothing was ever kept nothing is loaded. */
export async function finishPutting(home: string, log: (line: string) => void): Promise<void> {
  const rooms = roomsRoot(home);
  if (!existsSync(rooms)) return;
  try {
    const { resumePutting } = await import("../tree/put-back.ts");
    const finished = await resumePutting(rooms, AbortSignal.timeout(PUTTING_MS), ({ workspace, dir, error }) =>
      log(`${workspace ?? dir} is half written, and finishing it failed: ${error.message}`),
    );
    for (const folder of finished) log(`${folder}: finished what was being put there when its process died`);
  } catch (error) {
    log(
      `what a process was putting into a workspace when it died could not be finished: ${toHeddleError(error).message}`,
    );
  }
}
