/** A conversation of Claude Code as it keeps it: the messages of its wire, one line for each block, and lines about itself. */
import { z } from "zod";
import { createClaudeItems } from "./claude-items.ts";
import type { ImportingTurn, RecordReader } from "./import-record.ts";

const Line = z.looseObject({
  type: z.string(),
  /** Of a helper of the agent, whose result is told with its call. */
  isSidechain: z.boolean().optional(),
  /** For the model, by the program and not by the person. */
  isMeta: z.boolean().optional(),
  isCompactSummary: z.boolean().optional(),
  toolUseResult: z.unknown().optional(),
  message: z.unknown().optional(),
});
const Answer = z.object({
  id: z.string(),
  model: z.string().optional(),
  stop_reason: z.string().nullish(),
  usage: z.looseObject({ output_tokens: z.number().default(0) }).optional(),
});
const Said = z.object({
  content: z.union([z.string(), z.array(z.looseObject({ type: z.string(), text: z.string().optional() }))]),
});

export function readClaudeRecord(turn: ImportingTurn): RecordReader {
  const items = createClaudeItems(turn);
  /** The request whose blocks come now. */
  let last: z.infer<typeof Answer> | undefined;
  const event = (body: object): Promise<void> => items.heard("stream_event", { event: body });

  async function finish(): Promise<void> {
    if (last === undefined) return;
    const { stop_reason: reason, usage } = last;
    last = undefined;
    const output = { output_tokens: usage?.output_tokens ?? 0 };
    await event({ type: "message_delta", delta: { stop_reason: reason ?? "stop" }, usage: output });
    await event({ type: "message_stop" });
  }

  async function answered(line: z.infer<typeof Line>): Promise<void> {
    const answer = Answer.safeParse(line.message).data;
    if (answer === undefined) return turn.unknown("assistant");
    if (answer.id !== last?.id) {
      await finish();
      const { id, model, usage } = answer;
      await event({ type: "message_start", message: { id, model, usage } });
    }
    last = answer;
    await items.heard("assistant", { message: line.message });
  }

  async function said(line: z.infer<typeof Line>): Promise<void> {
    const content = Said.safeParse(line.message).data?.content;
    if (content === undefined) return turn.unknown("user");
    await finish();
    const blocks = typeof content === "string" ? [{ type: "text", text: content }] : content;
    if (blocks.some(({ type }) => type === "tool_result"))
      return items.heard("user", { message: line.message, tool_use_result: line.toolUseResult });
    if (line.isMeta === true || line.isCompactSummary === true) return;
    const text = blocks.map(({ type, text: own }) => own ?? `(${type})`).join("\n");
    if (text.trim() !== "") await turn.said(text);
  }

  return {
    async heard(raw) {
      const line = Line.safeParse(raw).data;
      if (line === undefined) return turn.unknown("line");
      if (line.isSidechain === true) return;
      if (line.type === "assistant") return answered(line);
      if (line.type === "user") return said(line);
      turn.unknown(line.type);
    },
    finish,
  };
}
