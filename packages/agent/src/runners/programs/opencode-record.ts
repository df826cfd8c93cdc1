/** A conversation of OpenCode as it keeps it: a line for each message, with what of its parts means something here. */
import { z } from "zod";
import type { ImportingTurn, RecordReader } from "./import-record.ts";
import { spent } from "./opencode.ts";
import { createOpenCodeItems, OpenCodePart } from "./opencode-items.ts";

const Message = z.object({
  id: z.string(),
  role: z.enum(["user", "assistant"]),
  model: z.string().optional(),
  parts: z.array(z.unknown()),
});
export const UserPart = z.object({
  type: z.enum(["text", "file"]),
  text: z.string().optional(),
  filename: z.string().optional(),
  /** Added by the program, not by the person. */
  synthetic: z.boolean().optional(),
});

export function readOpenCodeRecord(turn: ImportingTurn): RecordReader {
  return {
    async heard(raw) {
      const message = Message.safeParse(raw).data;
      if (message === undefined) return turn.unknown("line");
      if (message.role === "user") return said(turn, message.parts);
      await answered(turn, message);
    },
    finish: () => Promise.resolve(),
  };
}

async function said(turn: ImportingTurn, parts: readonly unknown[]): Promise<void> {
  const own = parts
    .flatMap((part) => UserPart.safeParse(part).data ?? [])
    .filter(({ synthetic }) => synthetic !== true);
  const text = own.map(
    ({ type, text: typed, filename }) => typed ?? `(${type}${filename === undefined ? "" : ` ${filename}`})`,
  );
  if (text.join("").trim() !== "") await turn.said(text.join("\n"));
}

async function answered(turn: ImportingTurn, { id, model, parts }: z.infer<typeof Message>): Promise<void> {
  const items = createOpenCodeItems({ ...turn, newHandle: id });
  for (const raw of parts) {
    const part = OpenCodePart.safeParse(raw).data;
    if (part === undefined) turn.unknown("part");
    else if (part.type === "step-finish") {
      await spent(turn, { items, model, ...part });
    } else await items.part(part.type === "tool" ? part : { ...part, time: { end: part.time?.end ?? 0 } });
  }
}
