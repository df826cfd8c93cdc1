/** Each line marked as an error must be one: types that are `any` would let them pass. */
export const MISUSES = `
import { HeddleClient, type Item, type TurnResult } from "heddle/client";
import { openHeddle, type ErrorCode } from "heddle/engine";
// @ts-expect-error there is no token
new HeddleClient({ url: "http://127.0.0.1:1" });
export async function misuse(client: HeddleClient): Promise<TurnResult> {
  const heddle = await openHeddle({ home: "/tmp/x", config: { model: "m" } });
  // @ts-expect-error a misspelt field
  await heddle.startTurn({ inputt: "go" });
  const turn = await heddle.startTurn({ input: [{ type: "text", text: "go" }], sandboxMode: "read-only" });
  for await (const { seq, body } of turn) {
    const position: number = seq;
    // @ts-expect-error no event is called so
    if (body.type === "turn.ended") return await client.runTurn("id", { input: String(position) });
    if (body.type === "item.completed" && body.item.type === "agentMessage") body.item.text.trim();
    // @ts-expect-error only some events have a question
    body.question;
  }
  const status: "completed" | "failed" | "interrupted" = (await turn.result()).status;
  // @ts-expect-error no such code
  const code: ErrorCode = "no.such-code";
  // @ts-expect-error not a decision
  await turn.answer("id", "perhaps");
  const item: Item = { type: "agentMessage", id: status, text: code };
  const { turn: ended } = await client.runTurn("id", { input: item.text, sandboxMode: "read-only" });
  // @ts-expect-error usage is in tokens
  ended.usage?.dollars;
  return { turn: ended, message: undefined };
}
`;

/** Uses the client as a page does. */
export const BROWSER = `
import { HeddleClient } from "heddle/client";
const client = new HeddleClient({ url: location.origin, token: "" });
for await (const heard of client.follow({ only: "tasks" })) if (heard.kind === "event") document.title = heard.event.body.type;
`;
