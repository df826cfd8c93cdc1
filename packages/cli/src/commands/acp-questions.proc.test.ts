/** Questions of the agent to the user of an editor: as a form, as a choice, or not at all. */
import { expect, test } from "vitest";
import { openAcp, textPrompt } from "../../test/acp-client.ts";
import { at } from "../../test/app-server-client.ts";

const OPTIONS = [
  { label: "A", description: "the first" },
  { label: "B", description: "the second" },
];
const QUESTION = { id: "which", header: "Pick", question: "Which of them?", options: OPTIONS };

function asking(questions: readonly object[]) {
  return { script: [{ calls: [{ tool: "request_user_input", args: { questions } }] }, { text: "done" }] };
}

const ASKS = ["-c", "ask_user=true"];

test("an editor with forms is asked with a form, and the agent is given what was written", async () => {
  await using opened = await openAcp(asking([QUESTION]), { args: ASKS, capabilities: { elicitation: { form: {} } } });
  const { client, sessionId, model } = opened;
  client.answer = ({ method }) =>
    method === "elicitation/create" ? { action: "accept", content: { which: "none of these" } } : undefined;
  await client.call("session/prompt", { sessionId, prompt: textPrompt("go") });
  const asked = client.received.find(({ method }) => method === "elicitation/create");
  expect(asked?.params).toMatchObject({
    sessionId,
    mode: "form",
    requestedSchema: { type: "object", required: ["which"], properties: { which: { type: "string", title: "Pick" } } },
  });
  expect(model.requests.at(-1)?.source).toContain("none of these");
});

test("an editor without forms is asked one question with options as a choice", async () => {
  await using opened = await openAcp(asking([QUESTION]), { args: ASKS });
  const { client, sessionId, model } = opened;
  client.answer = ({ method }) =>
    method === "session/request_permission" ? { outcome: { outcome: "selected", optionId: "B" } } : undefined;
  await client.call("session/prompt", { sessionId, prompt: textPrompt("go") });
  const asked = client.received.find(({ method }) => method === "session/request_permission");
  expect(at(asked, "params.toolCall.title")).toBe("Which of them?");
  expect(at(asked, "params.options")).toMatchObject([{ name: "A" }, { name: "B" }]);
  expect(model.requests.at(-1)?.source).toMatch(/which.{0,60}B/);
});

test("what an editor cannot show is declined, and the agent is told why", async () => {
  await using opened = await openAcp(asking([QUESTION, { ...QUESTION, id: "other" }]), { args: ASKS });
  const { client, sessionId, model } = opened;
  await client.call("session/prompt", { sessionId, prompt: textPrompt("go") });
  expect(client.received.some(({ id, method }) => id !== undefined && method !== undefined)).toBe(false);
  expect(model.requests.at(-1)?.source).toContain("cannot show this question");
  expect(client.said()).toBe("done");
});

test("/review judges the changes of the workspace in the session", async () => {
  await using opened = await openAcp({ respond: () => ({ text: "Looks fine." }) });
  const { client, sessionId, model } = opened;
  await client.call("session/prompt", { sessionId, prompt: textPrompt("/review the names of variables") });
  expect(model.requests[0]?.source).toContain("the names of variables");
  expect(client.said()).toContain("Looks fine.");
  expect(client.updates("user_message_chunk")).toEqual([]);
});
