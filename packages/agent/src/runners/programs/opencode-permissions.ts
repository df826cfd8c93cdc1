/** What OpenCode asks during a turn, put to Heddle's policy. Allowed once each time: what is remembered Heddle remembers. */
import { HeddleError, type ApprovalAnswer, type ApprovalQuestion, type Item } from "@heddle/protocol";
import { isKnownReadOnly } from "@heddle/tools/lines";
import { z } from "zod";
import type { Act, ProgramTurn } from "./conversation.ts";
import type { OpenCodeHttp } from "./opencode-http.ts";
import type { OpenCodeItems } from "./opencode-items.ts";

export const Asked = z.object({
  id: z.string(),
  sessionID: z.string(),
  permission: z.string(),
  patterns: z.array(z.string()).default([]),
  metadata: z.record(z.string(), z.unknown()).default({}),
  tool: z.object({ callID: z.string() }).nullish(),
});
export type Asked = z.infer<typeof Asked>;

export const Questions = z.object({
  id: z.string(),
  sessionID: z.string(),
  questions: z.array(
    z.object({
      question: z.string(),
      header: z.string().default(""),
      options: z.array(z.object({ label: z.string(), description: z.string().default("") })).default([]),
    }),
  ),
});

/** Config and session say the same: nothing is done unasked but looking. */
const LOOKS = ["read", "glob", "grep", "list", "lsp", "skill", "question", "todowrite", "todoread"] as const;
const ACTS = [
  "edit",
  "bash",
  "task",
  "webfetch",
  "websearch",
  "codesearch",
  "external_directory",
  "doom_loop",
] as const;

export const ASKING: Readonly<Record<string, string>> = Object.fromEntries([
  ["*", "ask"],
  ...ACTS.map((name) => [name, "ask"]),
  ...LOOKS.map((name) => [name, "allow"]),
]);

export const ASKING_RULES = Object.entries(ASKING).map(([permission, action]) => ({
  permission,
  pattern: "*",
  action,
}));

export interface OpenCodePermissions {
  /** Settles when it is answered; not to be waited for by the reader. */
  permission(asked: Asked): Promise<void>;
  question(asked: z.infer<typeof Questions>): Promise<void>;
  /** Somebody has answered it, perhaps the person who has joined. */
  answered(replied: unknown): Promise<void> | undefined;
}

const Replied = z.object({ requestID: z.string(), reply: z.string().optional() });
const GONE = 404;

export function createOpenCodePermissions(
  turn: ProgramTurn,
  items: OpenCodeItems,
  http: OpenCodeHttp,
): OpenCodePermissions {
  /** Those without an answer from here; aborted with what was answered elsewhere. */
  const open = new Map<string, AbortController>();
  const elsewhere = (how = "answered"): Promise<void> =>
    turn.warn("approval.elsewhere", `the agent's question was answered in its own interface: ${how}`);

  /** undefined: somebody else was asked too, and answered first. */
  async function decide(id: string, question: ApprovalQuestion, act: Act): Promise<ApprovalAnswer | undefined> {
    const waiting = new AbortController();
    open.set(id, waiting);
    try {
      const answer = await turn.decide(question, act, waiting.signal);
      return waiting.signal.aborted ? undefined : answer;
    } finally {
      open.delete(id);
    }
  }

  async function reply(path: string, body: object): Promise<void> {
    const { status } = await http.ask("POST", path, body);
    if (status === GONE) await elsewhere();
    else if (status >= 300) throw new HeddleError("runner.failed", `opencode answered ${path} with ${status}`);
  }

  return {
    answered(raw) {
      const replied = Replied.safeParse(raw).data;
      const waiting = open.get(replied?.requestID ?? "");
      if (waiting === undefined) return undefined;
      waiting.abort();
      return elsewhere(replied?.reply);
    },
    async permission(asked) {
      const { id, permission, patterns, metadata } = asked;
      const callId = asked.tool?.callID ?? id;
      const diff = typeof metadata["diff"] === "string" ? metadata["diff"] : undefined;
      const path = metadata["filepath"];
      const input = { ...metadata, ...(typeof path === "string" ? { filePath: path } : {}) };
      const tool = permission === "edit" ? "edit" : permission;
      const { id: itemId, item } = await items.beginCall({ callId, tool, input, diff });
      const { question, act } = questionOf(item, { callId, itemId, permission, patterns });
      const answered = await decide(id, question, act);
      if (answered === undefined) return;
      const { decision, reason } = answered;
      const isYes = decision === "accept" || decision === "acceptForThread";
      if (!isYes) items.refused(callId);
      // Without a message the whole turn would end.
      const answer = isYes ? { reply: "once" } : { reply: "reject", message: reason ?? "the user declined it" };
      await reply(`/permission/${id}/reply`, answer);
    },
    async question({ id, questions: given }) {
      const questions = given.map((one, index) => ({ id: `q${index + 1}`, ...one }));
      const question = { kind: "userInput", callId: id, itemId: id, questions } as const;
      const answered = await decide(id, question, OTHER);
      if (answered === undefined) return;
      const { decision, answers } = answered;
      const isYes = (decision === "accept" || decision === "acceptForThread") && answers !== undefined;
      if (!isYes) await reply(`/question/${id}/reject`, {});
      else
        await reply(`/question/${id}/reply`, {
          answers: questions.map((one) => [...(answers[one.id] ?? [])]),
        });
    },
  };
}

const OTHER: Act = { effect: "other", isHarmless: false, isBeyond: false };

interface Naming {
  readonly callId: string;
  readonly itemId: string;
  readonly permission: string;
  readonly patterns: readonly string[];
}

function questionOf(
  item: Item,
  { callId, itemId, permission, patterns }: Naming,
): { question: ApprovalQuestion; act: Act } {
  const ids = { callId, itemId };
  // Its own words for a place outside the folder of the turn, whatever the call is.
  const isBeyond = permission === "external_directory";
  const act = (effect: Act["effect"], isHarmless = false): Act => ({ effect, isHarmless, isBeyond });
  if (item.type === "commandExecution" && !isBeyond) {
    const { command, cwd } = item;
    return { question: { kind: "command", ...ids, command, cwd }, act: act("exec", isKnownReadOnly(command)) };
  }
  if (item.type === "fileChange" && !isBeyond) {
    return { question: { kind: "fileChange", ...ids, paths: item.changes.map(({ path }) => path) }, act: act("write") };
  }
  const effect = permission.startsWith("web") ? "net" : "other";
  return { question: { kind: "tool", ...ids, tool: permission, arguments: { patterns } }, act: act(effect) };
}
