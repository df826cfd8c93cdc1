/** The last things an agent said and did in a thread, as notifications show them. */
import type { Journal } from "@heddle/journal";
import type { Item, StoredEvent } from "@heddle/protocol";

export interface Activity {
  readonly text: string;
  readonly completed_at: number;
  readonly tools: readonly { readonly tool: string; readonly status: string; readonly input_excerpt: string }[];
}

/** A notification is short; the record has the rest. */
const MAX_TEXT_CHARS = 1_000;
const MAX_INPUT_CHARS = 80;
const MAX_TOOLS = 20;
const MAX_EVENTS = 200;

/** Oldest first, at most `count`: messages, with the calls before each. */
export async function recentActivity(journal: Journal, threadId: string, count: number): Promise<readonly Activity[]> {
  if (count === 0) return [];
  const version = await journal.version(threadId);
  const events = await journal
    .read({ stream: threadId, after: Math.max(0, version - MAX_EVENTS), limit: MAX_EVENTS })
    .catch((): readonly StoredEvent[] => []);
  const found: Activity[] = [];
  let tools: Activity["tools"][number][] = [];
  for (const { at, body } of events) {
    if (body.type !== "item.completed") continue;
    const called = toolOf(body.item);
    if (called !== undefined) tools = [...tools, called].slice(-MAX_TOOLS);
    if (body.item.type !== "agentMessage" || body.item.isPartial === true) continue;
    found.push({ text: body.item.text.slice(0, MAX_TEXT_CHARS), completed_at: at / 1000, tools });
    tools = [];
  }
  if (tools.length > 0) found.push({ text: "", completed_at: (events.at(-1)?.at ?? 0) / 1000, tools });
  return found.slice(-count);
}

function toolOf(item: Item): Activity["tools"][number] | undefined {
  switch (item.type) {
    case "commandExecution":
      return { tool: "shell", status: item.status, input_excerpt: excerpt(item.command) };
    case "fileChange": {
      const paths = item.changes.map(({ path }) => path).join(" ");
      return { tool: "apply_patch", status: item.status, input_excerpt: excerpt(paths) };
    }
    case "collabToolCall":
      return { tool: `agent ${item.tool}`, status: item.status, input_excerpt: excerpt(item.prompt ?? "") };
    case "toolCall":
    case "mcpToolCall":
      return { tool: item.tool, status: item.status, input_excerpt: excerpt(JSON.stringify(item.arguments) ?? "") };
    default:
      return undefined;
  }
}

function excerpt(text: string): string {
  return text.slice(0, MAX_INPUT_CHARS);
}
