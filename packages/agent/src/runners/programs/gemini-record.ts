/**
 * A conversation of Gemini CLI as it keeps it: a line for each message, once more when a call of it has ended, and lines that set
 * what is known of the whole, among them all messages again.
 */
import type { Item, ItemStatus } from "@heddle/protocol";
import { z } from "zod";
import { fittedOutput } from "./fitted-output.ts";
import type { ImportingTurn, RecordReader } from "./import-record.ts";

const Call = z.object({
  id: z.string(),
  name: z.string(),
  args: z.unknown().optional(),
  status: z.string().optional(),
  result: z.unknown().optional(),
});
type Call = z.infer<typeof Call>;
const Line = z.object({
  id: z.string(),
  type: z.string(),
  content: z.unknown().optional(),
  model: z.string().optional(),
  thoughts: z.array(z.object({ subject: z.string().default(""), description: z.string().default("") })).nullish(),
  toolCalls: z.array(Call).nullish(),
  tokens: z
    .object({
      input: z.number().default(0),
      output: z.number().default(0),
      cached: z.number().default(0),
      thoughts: z.number().default(0),
    })
    .nullish(),
});
type Line = z.infer<typeof Line>;
const OfTheWhole = z.union([z.object({ $set: z.unknown() }), z.object({ sessionId: z.string(), kind: z.string() })]);
const Parts = z.array(z.looseObject({ text: z.string().optional(), functionResponse: z.unknown().optional() }));
const Command = z.object({ command: z.string() });
const Answered = z.array(
  z.object({
    functionResponse: z.object({
      response: z.looseObject({ output: z.unknown().optional(), error: z.unknown().optional() }),
    }),
  }),
);

export function readGeminiRecord(turn: ImportingTurn): RecordReader {
  const { items, unknown, workspace } = turn;
  /** Messages that have been heard: a later line of one adds its calls. */
  const heard = new Set<string>();

  async function first({ id: name, content, thoughts, tokens, model }: Line): Promise<void> {
    const thought = (thoughts ?? [])
      .map(({ subject, description }) => `${subject}\n${description}`.trim())
      .join("\n\n");
    if (thought !== "")
      await items.end(`thought ${name}`, (id) => ({ type: "reasoning", id, summary: [], text: thought }));
    const text = textOf(content);
    if (text !== "") await items.end(name, (id) => ({ type: "agentMessage", id, text }));
    if (tokens === undefined || tokens === null) return;
    await turn.spent({
      model,
      text,
      stopReason: "stop",
      usage: {
        inputTokens: tokens.input,
        cachedInputTokens: tokens.cached,
        cacheWriteInputTokens: 0,
        outputTokens: tokens.output + tokens.thoughts,
        reasoningOutputTokens: tokens.thoughts,
      },
    });
  }

  async function called(call: Call): Promise<void> {
    const status = STATUSES[call.status ?? ""];
    if (status === undefined) await items.begin(call.id, (id) => itemOf(id, call, { status: "inProgress", workspace }));
    else await items.end(call.id, (id) => itemOf(id, call, { status, workspace }));
  }

  return {
    skipped(raw) {
      const { id } = Line.safeParse(raw).data ?? {};
      if (id !== undefined) heard.add(id);
    },
    async heard(raw) {
      if (OfTheWhole.safeParse(raw).success) return;
      const line = Line.safeParse(raw).data;
      if (line === undefined) return unknown("line");
      const isNew = !heard.has(line.id);
      heard.add(line.id);
      if (line.type === "user") {
        const text = textOf(line.content);
        if (isNew && text.trim() !== "") await turn.said(text);
      } else if (line.type === "gemini") {
        if (isNew) await first(line);
        for (const call of line.toolCalls ?? []) await called(call);
      } else unknown(line.type);
    },
    finish: () => Promise.resolve(),
  };
}

/** Of calls that have ended. */
const STATUSES: Readonly<Record<string, ItemStatus | undefined>> = {
  success: "completed",
  error: "failed",
  cancelled: "declined",
};

function itemOf(
  id: string,
  { id: callId, name: tool, args, result }: Call,
  { status, workspace }: { readonly status: ItemStatus; readonly workspace: string },
): Item {
  const command = tool === "run_shell_command" ? Command.safeParse(args).data?.command : undefined;
  const output = fittedOutput(resultOf(result));
  if (command === undefined) return { type: "toolCall", id, callId, status, tool, arguments: args, ...output };
  const [, code] = /^Exit Code: (\d+)$/m.exec(output.output) ?? [];
  const exitCode = code === undefined ? {} : { exitCode: Number(code) };
  const isFailed = status === "completed" && code !== undefined && code !== "0";
  return {
    type: "commandExecution",
    id,
    callId,
    command,
    cwd: workspace,
    status: isFailed ? "failed" : status,
    ...output,
    ...exitCode,
  };
}

function resultOf(result: unknown): string {
  const [answer] = Answered.safeParse(result).data ?? [];
  const { output, error } = answer?.functionResponse.response ?? {};
  const told = output ?? error ?? "";
  const text = typeof told === "string" ? told : JSON.stringify(told);
  // What it says to its model of where the text comes from.
  return text.replace(/^<untrusted_context>\n?/, "").replace(/\n?<\/untrusted_context>\s*$/, "");
}

function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  return (Parts.safeParse(content).data ?? []).map(({ text = "" }) => text).join("");
}
