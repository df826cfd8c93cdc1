/** Tools that clients bring, and questions that the model puts to the user. */
import { command, MOCK_CONFIG, say } from "../../exec-case.ts";
import { initialize, text, threadStarted, turn, type Move, type Scenario } from "../scenario.ts";

const CALL = "item/tool/call";
const ASK = "item/tool/requestUserInput";

const LOOKUP = {
  type: "function",
  name: "lookup",
  description: "Looks a ticket up",
  inputSchema: { type: "object", properties: { id: { type: "string" } }, required: ["id"] },
};
const USE_LOOKUP = { calls: [{ tool: "lookup", args: { id: "7" } }] };

/** A client that understands experiments, and a thread with its tools. */
function withTools(...dynamicTools: readonly unknown[]): readonly Move[] {
  return threadStarted({ dynamicTools }, true);
}

function called(id: string, about: string, reply: unknown): Scenario {
  return {
    id: `tool-${id}`,
    about,
    script: [USE_LOOKUP, say("ok")],
    moves: [...withTools(LOOKUP), ...turn("Look it up", CALL), { reply, to: CALL }, { until: "turn/completed" }],
  };
}

const PLAN = { mode: "plan", settings: { model: "gpt-5.5", reasoning_effort: null, developer_instructions: null } };
const QUESTION = {
  id: "q1",
  header: "Pick",
  question: "Which?",
  options: [
    { label: "A", description: "a" },
    { label: "B", description: "b" },
  ],
};
const ASK_USER = { calls: [{ tool: "request_user_input", args: { questions: [QUESTION] } }] };

const asksInPlan: readonly Move[] = [
  ...threadStarted({ approvalPolicy: "on-request" }, true),
  ...turn("Plan it", ASK, { collaborationMode: PLAN }),
];

const PROPOSAL = "<proposed_plan>\n- one\n</proposed_plan>";
const planned: readonly Move[] = [
  ...threadStarted({}, true),
  ...turn("Plan it", "turn/completed", { collaborationMode: PLAN }),
];

export const TOOLS: readonly Scenario[] = [
  called("success", "a tool of the client is called and answers", {
    contentItems: [{ type: "inputText", text: "ticket 7 is open" }],
    success: true,
  }),
  called("failure", "a tool of the client says that it failed", {
    contentItems: [{ type: "inputText", text: "no such ticket" }],
    success: false,
  }),
  called("image", "a tool of the client answers with a picture", {
    contentItems: [
      { type: "inputText", text: "here" },
      { type: "inputImage", imageUrl: "data:image/png;base64,iVBORw0KGgo=" },
    ],
    success: true,
  }),
  called("unreadable", "a tool of the client answers with something else", { words: "no" }),
  {
    id: "tool-gate",
    about: "tools of a client that has not asked for experiments, and tools that cannot be",
    moves: [
      initialize({ isExperimental: false }),
      { call: "thread/start", params: { cwd: "{ws}", dynamicTools: [LOOKUP] } },
    ],
  },
  {
    id: "tool-wrong",
    about: "tools that cannot be",
    moves: [
      initialize({ isExperimental: true }),
      ...[
        [{ ...LOOKUP, name: "look up" }],
        [{ ...LOOKUP, name: "" }],
        [LOOKUP, LOOKUP],
        [{ ...LOOKUP, name: "exec_command" }],
        [{ ...LOOKUP, name: "mcp__a__b" }],
        [{ ...LOOKUP, inputSchema: "no" }],
        [{ ...LOOKUP, inputSchema: { type: "string" } }],
        [{ ...LOOKUP, inputSchema: { type: "object", properties: 5 } }],
        [{ type: "function", name: "lookup", inputSchema: {} }],
        [{ type: "smell", name: "x" }],
        [{ ...LOOKUP, deferLoading: true }],
        [{ type: "namespace", name: "a b", description: "x", tools: [] }],
        [{ type: "namespace", name: "desk", description: "x", tools: [] }],
      ].map((dynamicTools): Move => ({ call: "thread/start", params: { cwd: "{ws}", dynamicTools } })),
    ],
  },
  {
    id: "tool-interrupted",
    about: "the turn is stopped while a tool of the client works",
    script: [USE_LOOKUP, say("ok")],
    moves: [
      ...withTools(LOOKUP),
      ...turn("Look it up", CALL),
      { call: "turn/interrupt", params: { threadId: "{thread}", turnId: "{turn}" } },
      { until: "turn/completed" },
    ],
  },
  {
    id: "tool-untrusted",
    about: "a tool of the client where every act is asked about",
    script: [USE_LOOKUP, say("ok")],
    moves: [
      ...threadStarted({ dynamicTools: [LOOKUP], approvalPolicy: "untrusted" }, true),
      ...turn("Look it up", CALL),
      { reply: { contentItems: [], success: true }, to: CALL },
      { until: "turn/completed" },
    ],
  },
  {
    id: "tool-shared",
    about: "two clients follow the thread whose tools one of them brought",
    door: "unix",
    script: [USE_LOOKUP, say("ok"), USE_LOOKUP, say("ok")],
    moves: [
      ...withTools(LOOKUP),
      ...turn("Hello", CALL),
      { reply: { contentItems: [{ type: "inputText", text: "one" }], success: true }, to: CALL },
      { until: "turn/completed" },
      { open: "b" },
      { ...initialize({ client: "b", isExperimental: true }) },
      { client: "b", call: "thread/resume", params: { threadId: "{thread}", excludeTurns: true } },
      ...turn("Again", CALL),
      { client: "b", until: CALL },
      { client: "b", reply: { contentItems: [{ type: "inputText", text: "two" }], success: true }, to: CALL },
      { until: "turn/completed" },
      { client: "b", until: "turn/completed" },
    ],
  },
  {
    id: "ask-user",
    about: "the model asks the user while it plans",
    script: [ASK_USER, say("ok")],
    moves: [...asksInPlan, { reply: { answers: { q1: { answers: ["A"] } } }, to: ASK }, { until: "turn/completed" }],
  },
  {
    id: "ask-user-unreadable",
    about: "an answer that nobody can read",
    script: [ASK_USER, say("ok")],
    moves: [...asksInPlan, { reply: { words: "no" }, to: ASK }, { until: "turn/completed" }],
  },
  {
    id: "ask-user-empty",
    about: "an answer without a word",
    script: [ASK_USER, say("ok")],
    moves: [...asksInPlan, { reply: { answers: {} }, to: ASK }, { until: "turn/completed" }],
  },
  {
    id: "ask-user-interrupted",
    about: "the turn is stopped while the user is asked",
    script: [ASK_USER, say("ok")],
    moves: [
      ...asksInPlan,
      { call: "turn/interrupt", params: { threadId: "{thread}", turnId: "{turn}" } },
      { until: "turn/completed" },
    ],
  },
  {
    id: "ask-user-default",
    about: "the model asks the user outside planning",
    script: [ASK_USER, say("ok")],
    moves: [...threadStarted({ approvalPolicy: "on-request" }, true), ...turn("Do it")],
  },
  {
    id: "ask-user-never",
    about: "the model asks the user while it plans, in a thread where nobody is asked for approval",
    script: [ASK_USER, say("ok")],
    moves: [
      ...threadStarted({ approvalPolicy: "never" }, true),
      ...turn("Plan it", ASK, { collaborationMode: PLAN }),
      { reply: { answers: { q1: { answers: ["A"] } } }, to: ASK },
      { until: "turn/completed" },
    ],
  },
  {
    id: "ask-user-two-clients",
    about: "two clients are asked, one answers",
    door: "unix",
    script: [say("hello"), ASK_USER, say("ok")],
    moves: [
      ...threadStarted({ approvalPolicy: "on-request" }, true),
      ...turn("Hello"),
      { open: "b" },
      initialize({ client: "b", isExperimental: true }),
      { client: "b", call: "thread/resume", params: { threadId: "{thread}", excludeTurns: true } },
      ...turn("Plan it", ASK, { collaborationMode: PLAN }),
      { client: "b", until: ASK },
      { client: "b", reply: { answers: { q1: { answers: ["B"] } } }, to: ASK },
      { until: "turn/completed" },
      { client: "b", until: "turn/completed" },
    ],
  },
  {
    id: "goal-begins",
    about: "an active goal is worked for until the agent says that it is reached",
    marks: ["<objective>\\nship it\\n</objective>"],
    script: [say("one"), say("two"), { calls: [{ tool: "update_goal", args: { status: "complete" } }] }, say("three")],
    moves: [
      ...threadStarted(),
      ...turn("Hello"),
      { call: "thread/goal/set", params: { threadId: "{thread}", objective: "ship it" } },
      { until: "turn/completed" },
      { until: "turn/completed" },
    ],
  },
  {
    id: "goal-restarted",
    about: "the program is killed at work for a goal, and the thread is resumed in the next",
    script: [
      say("one"),
      command("sleep 5"),
      { calls: [{ tool: "update_goal", args: { status: "complete" } }] },
      say("three"),
    ],
    moves: [
      ...threadStarted(),
      ...turn("Hello"),
      { call: "thread/goal/set", params: { threadId: "{thread}", objective: "ship it" } },
      { until: "item/started", where: { item: { type: "commandExecution" } } },
      { restart: "b" },
      initialize({ client: "b" }),
      { client: "b", call: "thread/goal/get", params: { threadId: "{thread}" } },
      { client: "b", call: "thread/resume", params: { threadId: "{thread}", excludeTurns: true } },
      { client: "b", until: "turn/completed" },
    ],
  },
  {
    id: "plan-alone",
    about: "the model proposes a plan while it plans, and says nothing else",
    script: [say("<proposed_plan>\n# Plan\n\n- one\n</proposed_plan>\n")],
    moves: [...planned, { call: "thread/read", params: { threadId: "{thread}", includeTurns: true } }],
  },
  {
    id: "plan-among-words",
    about: "the model proposes a plan with words around it, and another in the next turn without an end",
    script: [say(`Before.\n${PROPOSAL}\nAfter.`), say("Well <proposed_plan> then:\n<proposed_plan>\n- two")],
    moves: [
      ...planned,
      ...turn("Again"),
      { call: "thread/read", params: { threadId: "{thread}", includeTurns: true } },
    ],
  },
  {
    id: "plan-twice",
    about: "the model proposes two plans in one message",
    script: [say(`${PROPOSAL}\n\nOr:\n<proposed_plan>\n- two\n</proposed_plan>`)],
    moves: planned,
  },
  {
    id: "plan-default",
    about: "the model writes a plan in tags while it does not plan",
    script: [say(PROPOSAL)],
    moves: [...threadStarted({}, true), ...turn("Plan it")],
  },
  {
    id: "shell-command-active",
    about: "a command of the user while a turn runs",
    script: [command("echo begun; sleep 2; echo done"), say("ok")],
    moves: [
      ...threadStarted(),
      ...turn("Do it", "item/started"),
      { until: "item/started", where: { item: { type: "commandExecution" } } },
      { call: "thread/shellCommand", params: { threadId: "{thread}", command: "echo from-shell" } },
      { until: "turn/completed" },
    ],
  },
  {
    id: "key-missing",
    about: "a thread whose provider has no key",
    config: MOCK_CONFIG.replace("MOCK_KEY", "NO_SUCH_KEY"),
    moves: [
      ...threadStarted(),
      { call: "turn/start", params: { threadId: "{thread}", input: text("Hello") } },
      { until: "turn/completed" },
    ],
  },
];
