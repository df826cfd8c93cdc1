/** What tests of MCP servers share: the fixture's configuration, one turn, and what it left. */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { EventBody, ItemOf, McpServerInput } from "@heddle/protocol";
import type { TestHeddle } from "./test-heddle.ts";

const STDIO_FIXTURE = join(import.meta.dirname, "mcp-stdio-in-child.ts");

/** The hand-written server of the session era, in one of its modes. */
export function fixture(mode = "good", more: Partial<McpServerInput> = {}): McpServerInput {
  return { name: "fix", command: process.execPath, args: [STDIO_FIXTURE, mode], ...more };
}

export function mcpCall(tool: string, args: Record<string, unknown>): { tool: string; args: Record<string, unknown> } {
  return { tool: `mcp__fix__${tool}`, args };
}

export interface Played {
  readonly status: string;
  readonly threadId: string;
  readonly bodies: readonly EventBody[];
}

export async function play(t: TestHeddle, thread?: string): Promise<Played> {
  const turn = await t.start("go", thread === undefined ? {} : { thread });
  const { body } = await turn.done;
  const { threadId } = turn;
  return { status: body.status, threadId, bodies: (await t.events(threadId)).map((event) => event.body) };
}

export function mcpItems(bodies: readonly EventBody[]): ItemOf<"mcpToolCall">[] {
  return bodies.flatMap((body) =>
    body.type === "item.completed" && body.item.type === "mcpToolCall" ? [body.item] : [],
  );
}

export function notices(bodies: readonly EventBody[]): ItemOf<"notice">[] {
  return bodies.flatMap((body) => (body.type === "item.completed" && body.item.type === "notice" ? [body.item] : []));
}

/** Processes of this machine with the mark in their environment. */
export async function processesWith(mark: string): Promise<string[]> {
  const found: string[] = [];
  for (const pid of await readdir("/proc")) {
    if (!/^\d+$/.test(pid)) continue;
    const environment = await readFile(`/proc/${pid}/environ`, "utf8").catch(() => "");
    if (environment.includes(mark)) found.push(pid);
  }
  return found;
}
