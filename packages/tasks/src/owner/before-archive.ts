/** The hooks of a task that is about to be put away: commands in the sandbox, where the work was done. One that fails keeps it. */
import { HeddleError, type TaskRecord } from "@heddle/protocol";
import { isBroken, openFolderCommands } from "../checks/commands.ts";

const HOOK_MS = 600_000;
const MAX_SHOWN = 2000;

/** Throws `task.hook-failed`, with what the hook printed. */
export async function runHooks({ id, folder, spec }: TaskRecord, home: string): Promise<void> {
  const { signal } = new AbortController();
  await using commands = await openFolderCommands({ folder: folder ?? spec.workspace, spec, home, signal });
  for (const run of spec.beforeArchive) {
    const end = await commands.run({ run, cwd: ".", timeoutMs: HOOK_MS, network: spec.network });
    if (!isBroken(end) && end.exitCode === 0) continue;
    const how = isBroken(end) ? end.message : `it ended with ${end.exitCode}`;
    const message = `${id} is not archived: its hook ${JSON.stringify(run)} failed: ${how}\n${end.output.slice(-MAX_SHOWN)}`;
    throw new HeddleError("task.hook-failed", message.trim());
  }
}
