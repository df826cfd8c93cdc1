/** A conversation of Qwen Code as it keeps it: a line for each message of its model's API and for each result of a call. */
import type { Item } from "@heddle/protocol";
import { z } from "zod";
import { fittedOutput } from "./fitted-output.ts";
import type { ImportingTurn, RecordReader } from "./import-record.ts";

const Part = z.looseObject({
  text: z.string().optional(),
  /** The text is a thought. */
  thought: z.boolean().optional(),
  functionCall: z.object({ id: z.string(), name: z.string(), args: z.unknown().optional() }).optional(),
  functionResponse: z
    .object({
      id: z.string(),
      response: z.looseObject({ output: z.unknown().optional(), error: z.unknown().optional() }),
    })
    .optional(),
});
const Line = z.object({
  uuid: z.string(),
  type: z.string(),
  /** Who speaks; of older versions nobody. */
  provenance: z.string().optional(),
  isSidechain: z.boolean().optional(),
  model: z.string().optional(),
  message: z.object({ parts: z.array(Part) }).optional(),
  usageMetadata: z
    .object({
      promptTokenCount: z.number().default(0),
      candidatesTokenCount: z.number().default(0),
      thoughtsTokenCount: z.number().default(0),
      cachedContentTokenCount: z.number().default(0),
    })
    .optional(),
  toolCallResult: z.object({ callId: z.string(), status: z.string() }).optional(),
});
type Line = z.infer<typeof Line>;
type Call = NonNullable<z.infer<typeof Part>["functionCall"]>;
const Command = z.object({ command: z.string() });

export function readQwenRecord(turn: ImportingTurn): RecordReader {
  const { items, unknown, workspace } = turn;
  const calls = new Map<string, Call>();

  async function answered({ uuid, message, model, usageMetadata: used }: Line): Promise<void> {
    const parts = message?.parts ?? [];
    const thought = textOf(parts.filter((part) => part.thought === true));
    const text = textOf(parts.filter((part) => part.thought !== true));
    if (thought !== "")
      await items.end(`thought ${uuid}`, (id) => ({ type: "reasoning", id, summary: [], text: thought }));
    if (text !== "") await items.end(uuid, (id) => ({ type: "agentMessage", id, text }));
    for (const { functionCall: call } of parts) {
      if (call === undefined) continue;
      calls.set(call.id, call);
      await items.begin(call.id, (id) => itemOf(id, call, workspace));
    }
    if (used === undefined) return;
    await turn.spent({
      model,
      text,
      stopReason: "stop",
      usage: {
        inputTokens: used.promptTokenCount,
        cachedInputTokens: used.cachedContentTokenCount,
        cacheWriteInputTokens: 0,
        outputTokens: used.candidatesTokenCount,
        reasoningOutputTokens: used.thoughtsTokenCount,
      },
    });
  }

  async function settled({ message, toolCallResult }: Line): Promise<void> {
    for (const { functionResponse: answer } of message?.parts ?? []) {
      const call = calls.get(answer?.id ?? "");
      if (answer === undefined || call === undefined) {
        unknown("tool_result");
        continue;
      }
      const { output, error } = answer.response;
      const told = output ?? error ?? "";
      const text = typeof told === "string" ? told : JSON.stringify(told);
      const isSuccess = (toolCallResult?.status ?? (error === undefined ? "success" : "error")) === "success";
      await items.end(call.id, (id) => endedItem(itemOf(id, call, workspace), { text, isSuccess }));
    }
  }

  return {
    async heard(raw) {
      const line = Line.safeParse(raw).data;
      if (line === undefined) return unknown("line");
      // Of a helper of the agent, whose result is told with its call.
      if (line.isSidechain === true) return;
      if (line.type === "assistant") return answered(line);
      if (line.type === "tool_result") return settled(line);
      if (line.type !== "user") return line.type === "system" ? undefined : unknown(line.type);
      const text = textOf(line.message?.parts ?? []);
      const isOfPerson = line.provenance === undefined || line.provenance === "real_user";
      if (isOfPerson && text.trim() !== "") await turn.said(text);
    },
    finish: () => Promise.resolve(),
  };
}

function textOf(parts: readonly z.infer<typeof Part>[]): string {
  return parts.map(({ text = "" }) => text).join("");
}

function itemOf(id: string, { id: callId, name: tool, args }: Call, cwd: string): Item {
  const begun = { id, callId, status: "inProgress" } as const;
  const command = tool === "run_shell_command" ? Command.safeParse(args).data?.command : undefined;
  if (command === undefined) return { type: "toolCall", ...begun, tool, arguments: args };
  return { type: "commandExecution", ...begun, command, cwd, output: "" };
}

interface Settled {
  readonly text: string;
  readonly isSuccess: boolean;
}

function endedItem(item: Item, { text, isSuccess }: Settled): Item {
  if (item.type === "toolCall") return { ...item, status: isSuccess ? "completed" : "failed", ...fittedOutput(text) };
  if (item.type !== "commandExecution") return item;
  const [, code] = /^Exit Code: (\d+)$/m.exec(text) ?? [];
  const isDone = isSuccess && (code ?? "0") === "0";
  const exitCode = code === undefined ? {} : { exitCode: Number(code) };
  return { ...item, status: isDone ? "completed" : "failed", ...fittedOutput(text), ...exitCode };
}
