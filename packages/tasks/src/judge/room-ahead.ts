/**
 * The room of the next command, made ready beside the one that runs, so that nobody waits for it. Each is still used once.
 * At most one is ahead, and none where rooms are copies or the work is large: it would be there twice.
 */
import type { TaskSpec } from "@heddle/protocol/tasks";
import type { Command, RoomCommands } from "../checks/commands.ts";
import { leavesOf } from "../checks/names.ts";
import type { Change } from "../tree/manifest.ts";
import { runsCommands, seesOutside } from "./named-work.ts";

/** Of work; rooms have it in memory. */
const MAX_BYTES = 16 * 1024 * 1024;

export interface RoomAhead extends AsyncDisposable {
  /** The one that is ready, or on its way; a new one otherwise. */
  take(): RoomCommands;
  /** Runs it, and makes the next room ready meanwhile if another command is to come. */
  run(command: Command, commands: RoomCommands): ReturnType<RoomCommands["run"]>;
}

export function openRoomAhead(
  { checks }: Pick<TaskSpec, "checks">,
  picked: readonly Change[],
  open: () => RoomCommands,
): RoomAhead {
  const isSmall = picked.reduce((bytes, { now }) => bytes + (now?.size ?? 0), 0) <= MAX_BYTES;
  let toCome = leavesOf(checks).filter((leaf) => runsCommands(leaf) && !seesOutside(leaf)).length;
  let next: RoomCommands | undefined;
  return {
    take() {
      const taken = next ?? open();
      next = undefined;
      return taken;
    },
    async run(command, commands) {
      await commands.open(command);
      if (!command.network) toCome -= 1;
      if (next === undefined && toCome > 0 && isSmall && commands.kind === "overlay") {
        next = open();
        // Who runs something in it meets what went wrong.
        next.open({ network: false }).catch(() => undefined);
      }
      return await commands.run(command);
    },
    async [Symbol.asyncDispose]() {
      await next?.[Symbol.asyncDispose]();
    },
  };
}
