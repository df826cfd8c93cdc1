/** Commands of a thread that outlived their calls. */
import type { Journal } from "@heddle/journal";
import { sendInput, type Sandbox, type ThreadState } from "@heddle/tools";
import type { RunningCommand, Terminal } from "../heddle.ts";

export async function listTerminals(
  journal: Journal,
  threadId: string,
  state: ThreadState | undefined,
): Promise<readonly Terminal[]> {
  const running = state?.processes.running ?? [];
  if (running.length === 0) return [];
  return Promise.all(
    running.map(async ({ id, command, cwd, pid, hasInput }) => {
      const processId = String(id);
      const look = { stream: threadId, kinds: ["processLeft"], name: processId, newest: 1 } as const;
      const left = (await journal.marks.events(look))[0]?.body;
      const itemId = left?.type === "tool.settled" ? left.itemId : undefined;
      return { processId, itemId, command, cwd, pid, hasInput };
    }),
  );
}

export function listCommands(state: ThreadState | undefined, own: Sandbox | undefined): readonly RunningCommand[] {
  return (state?.processes.running ?? []).map(({ id, command, pid, hasInput, awaitedBy, sandbox }) => {
    return { processId: String(id), command, pid, hasInput, awaitedBy, isBeyond: sandbox !== own };
  });
}

/** `closed`: it was started without an input. `gone`: no such command runs. */
export async function writeInput(
  state: ThreadState | undefined,
  processId: string,
  text: string,
): Promise<"sent" | "waits" | "closed" | "gone"> {
  const command = state?.processes.running.find(({ id }) => String(id) === processId);
  if (command === undefined) return "gone";
  return command.hasInput ? sendInput(command, text) : "closed";
}

/** Returns how many were ended. The model learns of it when it next looks at its command. */
export async function endTerminals(state: ThreadState | undefined, processId?: string): Promise<number> {
  const chosen = (state?.processes.running ?? []).filter(({ id }) => (processId ?? String(id)) === String(id));
  await Promise.all(chosen.map((command) => command.kill()));
  return chosen.length;
}

/** Closes the input of one of them, or of all. Returns how many. */
export function endInputs(state: ThreadState | undefined, processId?: string): number {
  const chosen = (state?.processes.running ?? []).filter(
    ({ id, hasInput }) => hasInput && (processId ?? String(id)) === String(id),
  );
  for (const command of chosen) command.endInput();
  return chosen.length;
}
