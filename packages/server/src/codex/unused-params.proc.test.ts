import { PARAMS_OF_NO_CONCERN, PARAMS_WITHOUT_EFFECT } from "@heddle/dialects/codex-app-server";
import { expect, test } from "vitest";
import { at, text, type ChatClient } from "../../test/chat-client.ts";
import { codexClient, openChatWorld } from "../../test/chat-world.ts";

const input = [{ type: "text", text: "go" }];
const GIT = { gitInfo: { branch: "main" } };
const ROOTS = { runtimeWorkspaceRoots: ["/elsewhere"] };

/** What a client may ask for, by method, and does not get. */
const WITHOUT_EFFECT: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  "thread/start": {
    ...ROOTS,
    environments: [{ environmentId: "far" }],
    experimentalRawEvents: true,
    historyMode: "legacy",
    multiAgentMode: "proactive",
    projectId: "p",
    selectedCapabilityRoots: [{ path: "/skills" }],
    sessionStartSource: "clear",
  },
  "thread/resume": { ...ROOTS },
  "thread/fork": { ...ROOTS, deferGoalContinuation: true },
  "thread/metadata/update": { projectId: "p" },
  "thread/settings/update": { multiAgentMode: "none" },
  "turn/start": { ...ROOTS, environments: [{ environmentId: "far" }], multiAgentMode: "none" },
};

/** The same params, asking for what happens anyway. */
const AS_IT_IS = {
  deferGoalContinuation: false,
  environments: [],
  experimentalRawEvents: false,
  historyMode: "paginated",
  multiAgentMode: "explicitRequestOnly",
  projectId: null,
  runtimeWorkspaceRoots: [],
  selectedCapabilityRoots: [],
  sessionStartSource: "startup",
};

/** Params of `thread/start` and `turn/start` that change nothing. */
const OF_NO_CONCERN = {
  approvalsReviewer: "auto_review",
  allowProviderModelFallback: true,
  cyberAccessProgram: "standard",
  daybreakEnabled: true,
  mockExperimentalField: "x",
  parentTurnId: "x",
  responsesapiClientMetadata: { a: "b" },
  responsesapiClientMetadataPatch: { a: "b" },
  rootTurnId: "x",
  serviceName: "x",
  threadSource: "user",
  turnTrigger: "user",
};

async function warningsOf(client: ChatClient, method: string, params: object): Promise<readonly string[]> {
  const from = client.received.length;
  await client.call(method, params);
  // The warning comes after the answer, and before the answer to a later call.
  await client.call("thread/loaded/list", {});
  const sent = client.received.slice(from).filter(({ method: name }) => name === "warning");
  return sent.flatMap(({ params: warning }) => {
    const [, named = ""] = text(warning, "message").split("no effect in heddle app-server: ");
    return named.split(", ").sort();
  });
}

function baseOf(method: string, threadId: string): object {
  switch (method) {
    case "thread/start":
      return {};
    case "thread/metadata/update":
      return { threadId, ...GIT };
    case "turn/start":
      return { threadId, input };
    default:
      return { threadId };
  }
}

test("every param without effect is named in a warning of the methods that have it, and only when it asks for more", async () => {
  await using world = await openChatWorld({ script: Array.from({ length: 4 }, () => ({ text: "ok" })) });
  const client = await codexClient(world);
  const threadId = text(await client.call("thread/start", {}), "thread.id");
  const warned = new Map<string, readonly string[]>();
  const quiet = new Map<string, readonly string[]>();
  for (const [method, params] of Object.entries(WITHOUT_EFFECT)) {
    const base = baseOf(method, threadId);
    warned.set(method, await warningsOf(client, method, { ...base, ...params }));
    quiet.set(method, await warningsOf(client, method, { ...base, ...AS_IT_IS }));
  }
  const asked = Object.entries(WITHOUT_EFFECT).map(([method, params]) => [method, Object.keys(params).sort()] as const);
  expect([...warned]).toEqual(asked);
  expect([...quiet]).toEqual(asked.map(([method]) => [method, []]));
  const names = new Set(Object.keys(PARAMS_WITHOUT_EFFECT).map((entry) => entry.split(" ").at(-1)));
  expect(new Set(asked.flatMap(([, params]) => params))).toEqual(names);
});

test("params of no concern change neither an answer nor a request to the model", async () => {
  await using world = await openChatWorld({ script: Array.from({ length: 2 }, () => ({ text: "ok" })) });
  const client = await codexClient(world);
  async function seen(more: object): Promise<string> {
    const begun = await client.call("thread/start", { ...more });
    const threadId = text(begun, "thread.id");
    const turn = await client.call("turn/start", { threadId, input, ...more });
    const turnId = text(turn, "turn.id");
    await client.waitFor(({ method, params }) => method === "turn/completed" && at(params, "turn.id") === turnId);
    const whole = JSON.stringify([begun, turn, world.model.requests.at(-1)?.body]);
    return (
      whole
        .replaceAll(threadId, "THREAD")
        .replaceAll(turnId, "TURN")
        .replaceAll(/"\w+At":\d+/g, "TIME")
        // The path of a thread carries the second in which it began.
        .replaceAll(/rollout-[\dT-]+-(?=THREAD)/g, "rollout-TIME-")
    );
  }
  expect(Object.keys(OF_NO_CONCERN).filter((name) => !Object.hasOwn(PARAMS_OF_NO_CONCERN, name))).toEqual([]);
  expect(await seen(OF_NO_CONCERN)).toBe(await seen({}));
  // Clients show a warning as if the agent had said it.
  expect(client.received.filter(({ method }) => method === "warning")).toEqual([]);
});
