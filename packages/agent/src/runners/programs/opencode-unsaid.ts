/**
 * The answer in which an OpenCode was killed. It keeps the answer and nothing of its words, and sends it empty with every
 * request that follows: OpenAI accepts that, other services refuse the conversation from then on.
 */
import { z } from "zod";
import type { OpenCodeHttp } from "./opencode-http.ts";

const Last = z.tuple([
  z.object({
    info: z.object({
      id: z.string(),
      role: z.string(),
      time: z.object({ completed: z.number().optional() }),
      error: z.unknown().optional(),
    }),
    parts: z.array(z.object({ type: z.string(), text: z.string().optional() })),
  }),
]);
type Message = z.infer<typeof Last>[0];

/** Takes it out of the conversation. One that somebody works on stays, because OpenCode refuses. */
export async function removeUnsaid(http: OpenCodeHttp, sessionId: string): Promise<void> {
  const messages = `/session/${encodeURIComponent(sessionId)}/message`;
  const { body } = await http.ask("GET", `${messages}?limit=1`);
  const last = Last.safeParse(body).data?.[0];
  if (last === undefined || !isUnsaid(last)) return;
  await http.ask("DELETE", `${messages}/${encodeURIComponent(last.info.id)}`);
}

function isUnsaid({ info: { role, time, error }, parts }: Message): boolean {
  if (role !== "assistant" || time.completed !== undefined || error !== undefined) return false;
  return parts.every(({ type, text }) => UNSAID.has(type) || (type === "text" && text?.trim() === ""));
}

/** What it only thought is of no use without the words that came from it. */
const UNSAID: ReadonlySet<string> = new Set(["step-start", "snapshot", "reasoning"]);
