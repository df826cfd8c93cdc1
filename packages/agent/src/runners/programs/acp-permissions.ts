/** A permission that an ACP agent asks for, put to Heddle's policy. Options are chosen by their kind: their ids differ. */
import type { ApprovalQuestion, Item } from "@heddle/protocol";
import { isKnownReadOnly } from "@heddle/tools/lines";
import { z } from "zod";
import type { AcpItems } from "./acp-items.ts";
import type { Act, ProgramTurn } from "./conversation.ts";

const Asked = z.object({
  toolCall: z.looseObject({ toolCallId: z.string() }),
  options: z.array(z.object({ optionId: z.string(), kind: z.string() })),
});

export interface AcpPermissions {
  answer(params: unknown): Promise<object>;
}

const ONLY_FOR_EVER = "the agent offers to allow this for ever only, and not once, so it was declined";
const CANCELLED = { outcome: { outcome: "cancelled" } };

export function createAcpPermissions(turn: ProgramTurn, items: AcpItems): AcpPermissions {
  return {
    async answer(params) {
      const { toolCall, options } = Asked.parse(params);
      const callId = toolCall.toolCallId;
      const { id: itemId, item } = await items.beginCall(toolCall);
      const { question, act } = questionOf(item, { callId, itemId });
      let decision: string;
      try {
        ({ decision } = await turn.decide(question, act));
      } catch {
        return CANCELLED;
      }
      const once = options.find(({ kind }) => kind === "allow_once");
      const isAllowed = decision === "accept" || decision === "acceptForThread";
      // What is allowed for the thread Heddle remembers itself: an agent that does so would not ask again.
      if (isAllowed && once === undefined) await turn.warn("runner.unsupported", ONLY_FOR_EVER);
      if (isAllowed && once !== undefined) return { outcome: { outcome: "selected", optionId: once.optionId } };
      items.refused(callId);
      if (decision === "cancel") return CANCELLED;
      const chosen = ["reject_once", "reject_always"]
        .map((kind) => options.find((option) => option.kind === kind))
        .find((option) => option !== undefined);
      return chosen === undefined ? CANCELLED : { outcome: { outcome: "selected", optionId: chosen.optionId } };
    },
  };
}

function questionOf(
  item: Item,
  ids: { readonly callId: string; readonly itemId: string },
): { question: ApprovalQuestion; act: Act } {
  const act = (effect: Act["effect"], isHarmless = false): Act => ({ effect, isHarmless, isBeyond: false });
  if (item.type === "commandExecution") {
    const { command, cwd } = item;
    return { question: { kind: "command", ...ids, command, cwd }, act: act("exec", isKnownReadOnly(command)) };
  }
  if (item.type === "fileChange") {
    return { question: { kind: "fileChange", ...ids, paths: item.changes.map(({ path }) => path) }, act: act("write") };
  }
  const tool = item.type === "toolCall" ? item.tool : "tool";
  const args = item.type === "toolCall" ? item.arguments : {};
  const effect = tool === "fetch" ? "net" : tool === "read" || tool === "search" ? "read" : "other";
  return { question: { kind: "tool", ...ids, tool, arguments: args }, act: act(effect, effect === "read") };
}
