/** Tasks as tests order them, and the states they come to. */
import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { HeddleApiError, type Task } from "@heddle/client";
import type { StreamedEvent } from "@heddle/protocol/http";
import { until } from "../world.ts";
import type { Stage } from "./stage.ts";

/** A command beyond the sandbox is asked for. */
export const OUTSIDE = { sandbox_permissions: "require_escalated", justification: "the registry is outside" } as const;

export function run(
  cmd: string,
  more: Readonly<Record<string, unknown>> = {},
): { tool: string; args: Record<string, unknown> } {
  return { tool: "exec_command", args: { cmd, ...more } };
}

/** A command that waits for its input. */
export const HANGS = {
  tool: "exec_command",
  args: { cmd: "echo begun; cat", tty: true, yield_time_ms: 300_000 },
} as const;

export function addsFile(name: string, text = "one"): { tool: string; args: string } {
  return { tool: "apply_patch", args: `*** Begin Patch\n*** Add File: ${name}\n+${text}\n*** End Patch` };
}

/** One task works in a folder at a time, and tests do not wait for each other. */
export function folderOf({ world }: Stage, mark: string): string {
  return path.join(world.root, "folders", mark);
}

/** The mark says which script of the model is played. */
export async function order(stage: Stage, mark: string, spec: Readonly<Record<string, unknown>> = {}): Promise<Task> {
  const workspace = folderOf(stage, mark);
  await mkdir(path.join(workspace, ".git"), { recursive: true });
  await writeFile(path.join(workspace, ".git", "HEAD"), "ref: refs/heads/main\n");
  return await stage.server.client.tasks.create({
    spec: { name: mark, goal: `do [[${mark}]]`, checks: [{ "file-exists": `${mark}.txt` }], ...spec },
    workspace,
  });
}

/** What has not ended would keep a place. */
export async function cancelAll({ server: { client } }: Stage): Promise<void> {
  const open = ["running", "waiting", "pending", "paused", "rejected"] as const;
  for (const { id } of (await client.tasks.list({ state: open, limit: 100 })).data) {
    await client.tasks.cancel(id).catch((error: unknown) => {
      // It may have ended meanwhile.
      if (!(error instanceof HeddleApiError && error.code === "task.illegal")) throw error;
    });
  }
}

/** Asks for a command outside the sandbox, then says that it is done. */
export async function orderQuestion(stage: Stage, mark: string, cmd = `touch ${mark}.txt`): Promise<Task> {
  stage.plays(mark, [{ calls: [run(cmd, OUTSIDE)] }, { text: "It is done." }]);
  return await order(stage, mark, { approval: "on-request" });
}

export async function comesTo(stage: Stage, id: string, state: Task["state"]): Promise<Task> {
  const read = (): Promise<Task> => stage.server.client.tasks.read(id);
  await until(async () => (await read()).state === state, `${id} is ${state}`, 60_000);
  return await read();
}

/** The events of one kind in a thread so far. */
export async function heardOf({ server: { client } }: Stage, threadId: string, type: string) {
  const found: StreamedEvent[] = [];
  for await (const heard of client.follow({ threadId, signal: AbortSignal.timeout(20_000) })) {
    if (heard.kind === "event" && heard.event.body.type === type) found.push(heard.event);
    if (heard.kind === "caughtUp") break;
  }
  return found;
}

/** A turn of the model that lasts until it is let go. */
export function heldModel(): { readonly step: () => Promise<{ text: string }>; readonly letGo: () => void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { step: () => promise.then(() => ({ text: "It is done." })), letGo: resolve };
}
