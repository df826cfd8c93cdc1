/** One tool of a server, as dispatch calls it. */
import type { Effect, Item, ItemOf, McpApproval, McpServerConfig } from "@heddle/protocol";
import { z } from "zod";
import { jsonTool } from "../calls/call-item.ts";
import type { CallContext, Tool, ToolContext, ToolResult } from "../calls/tool.ts";
import type { Elicitation, Elicited } from "./connection.ts";
import type { ToolDefinition } from "./definitions.ts";
import { messageOf } from "./failure.ts";
import { canonicalName } from "./names.ts";
import { shapeResult } from "./results.ts";
import type { McpServer } from "./server.ts";

const Arguments = z.record(z.string(), z.unknown());

/** Dispatch stops a call that outlives every limit of its own. */
const SLACK_MS = 10_000;

export function mcpTool(
  server: McpServer,
  definition: ToolDefinition,
  approval: Exclude<McpApproval, "deny">,
): Tool<z.infer<typeof Arguments>> {
  const { config } = server;
  const name = canonicalName(config.name, definition.name);
  const effects = effectsOf(definition, config);
  const describe = (args: unknown, { callId, itemId }: CallContext): ItemOf<"mcpToolCall"> => ({
    type: "mcpToolCall",
    id: itemId,
    callId,
    server: config.name,
    tool: definition.name,
    arguments: args,
    status: "inProgress",
  });
  return jsonTool<z.infer<typeof Arguments>>({
    name,
    description: definition.description,
    input: Arguments,
    parameters: definition.parameters,
    effects,
    approval,
    isReadOnly: () => definition.isReadOnly,
    deadlineMs: () => server.longestCallMs + SLACK_MS,
    describe,
    question: (args, { callId, itemId }) => ({
      kind: "tool",
      callId,
      itemId,
      tool: name,
      arguments: args,
      definition: definition.hash,
      ...(definition.description === "" ? {} : { description: definition.description }),
    }),
    async run(args, context) {
      const startedAt = performance.now();
      const item = describe(args, context);
      const took = (): number => Math.round(performance.now() - startedAt);
      try {
        const answer = await server.call({
          tool: definition,
          arguments: args,
          signal: context.signal,
          onProgress: (message) => showProgress(message, context),
          onElicit: (wanted) => askUser(config.name, wanted, context),
        });
        const { isError, output, result } = shapeResult(answer);
        const shown = output.find(({ type }) => type === "text");
        const error = shown?.type === "text" ? firstLine(shown.text) : "the tool reported an error";
        const end: Item = isError
          ? { ...item, status: "failed", result, error, durationMs: took() }
          : { ...item, status: "completed", result, durationMs: took() };
        return { isError, output, item: end };
      } catch (error) {
        // Dispatch reports a stopped call.
        if (context.signal.aborted) throw error;
        return failed({ ...item, durationMs: took() }, messageOf(error));
      }
    },
  });
}

/** A read-only claim is believed; otherwise the transport decides what a call can do. */
function effectsOf({ isReadOnly }: ToolDefinition, config: McpServerConfig): readonly Effect[] {
  if (isReadOnly) return ["read"];
  if ("url" in config) return ["net"];
  return config.network === true ? ["exec", "net"] : ["exec"];
}

function failed(item: ItemOf<"mcpToolCall">, message: string): ToolResult {
  return {
    isError: true,
    output: [{ type: "text", text: message }],
    item: { ...item, status: "failed", error: message },
    failure: { code: "tool.failed", message, details: { server: item.server } },
  };
}

const MAX_MESSAGE_CHARS = 4_000;
const MAX_SCHEMA_CHARS = 64 * 1024;

/** A question of the server to the user. Where no user can be asked, it is declined. */
async function askUser(server: string, { message, schema }: Elicitation, context: ToolContext): Promise<Elicited> {
  const isTooLarge = JSON.stringify(schema).length > MAX_SCHEMA_CHARS;
  if (context.envelope.approval === "never" || isTooLarge) return { action: "decline" };
  const { callId, itemId } = context;
  const shown = message.slice(0, MAX_MESSAGE_CHARS).toWellFormed();
  const answer = await context.ask({ kind: "elicitation", callId, itemId, server, message: shown, schema });
  if (answer.decision === "accept") return { action: "accept", content: answer.content ?? {} };
  return { action: answer.decision === "cancel" ? "cancel" : "decline" };
}

const MAX_PROGRESS_CHARS = 500;

function showProgress(message: string, context: ToolContext): void {
  context.stream(`${message.slice(0, MAX_PROGRESS_CHARS)}\n`);
}

function firstLine(text: string): string {
  return (text.split("\n", 1)[0] ?? "").slice(0, 500);
}
