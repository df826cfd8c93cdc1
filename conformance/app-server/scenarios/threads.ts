/** Threads: kept, read, listed, named, put away; and those who come back to them. */
import { command, say } from "../../exec-case.ts";
import { initialize, threadStarted, turn, type Move, type Scenario } from "../scenario.ts";

const ON_THREAD = { threadId: "{thread}" };
const COMMAND = "item/commandExecution/requestApproval";

const KNOWN_B: readonly Move[] = [{ open: "b" }, initialize({ client: "b" })];

export const THREADS: readonly Scenario[] = [
  {
    id: "thread-read",
    about: "a thread is read, without and with its turns",
    script: [{ reasoning: "Hm", ...command("sleep 0.3; echo one") }, say("Done.")],
    moves: [
      ...threadStarted(),
      ...turn("one"),
      { call: "thread/read", params: ON_THREAD },
      { call: "thread/read", params: { ...ON_THREAD, includeTurns: true } },
      { call: "thread/turns/list", params: ON_THREAD },
      { call: "thread/items/list", params: ON_THREAD },
      { call: "thread/loaded/list", params: {} },
    ],
  },
  {
    id: "thread-list",
    about: "threads are listed page by page",
    // Codex tells threads apart by the second they last changed in.
    script: [command("sleep 1.2"), say("Done.")],
    moves: [
      ...threadStarted(),
      ...turn("one"),
      { call: "thread/start", params: { cwd: "{ws}", approvalPolicy: "never", sandbox: "workspace-write" } },
      { until: "thread/started" },
      { call: "turn/start", params: { threadId: "{thread2}", input: [{ type: "text", text: "two" }] } },
      { until: "turn/completed" },
      { call: "thread/list", params: { limit: 1 }, keep: { cursor: "nextCursor" } },
      { call: "thread/list", params: { limit: 1, cursor: "{cursor}" } },
      { call: "thread/list", params: { searchTerm: "two" } },
      { call: "thread/list", params: { cwd: "/nowhere" } },
    ],
  },
  {
    id: "thread-name",
    about: "a thread gets a name",
    script: [say("One.")],
    moves: [
      ...threadStarted(),
      ...turn("one"),
      { call: "thread/name/set", params: { ...ON_THREAD, name: "My thread" } },
      { until: "thread/name/updated" },
      { call: "thread/read", params: ON_THREAD },
      { call: "thread/name/set", params: { ...ON_THREAD, name: "  " } },
    ],
  },
  {
    id: "thread-archive",
    about: "a thread is put away, taken back and deleted",
    script: [say("One.")],
    moves: [
      ...threadStarted(),
      ...turn("one"),
      { call: "thread/archive", params: ON_THREAD },
      { until: "thread/archived" },
      { call: "thread/list", params: {} },
      { call: "thread/list", params: { archived: true } },
      { call: "thread/unarchive", params: ON_THREAD },
      { until: "thread/unarchived" },
      { call: "thread/delete", params: ON_THREAD },
      { until: "thread/deleted" },
      { call: "thread/read", params: ON_THREAD },
    ],
  },
  {
    id: "thread-resume",
    about: "a thread that is loaded is resumed, and goes on",
    script: [say("One."), say("Two.")],
    moves: [...threadStarted(), ...turn("one"), { call: "thread/resume", params: ON_THREAD }, ...turn("two")],
  },
  {
    id: "thread-unsubscribe",
    about: "a client no longer follows a thread",
    script: [say("One.")],
    moves: [
      ...threadStarted(),
      ...turn("one"),
      { call: "thread/unsubscribe", params: ON_THREAD },
      { call: "thread/unsubscribe", params: ON_THREAD },
    ],
  },
  {
    id: "thread-fork",
    about: "a thread goes on under a new id",
    script: [say("One."), say("Forked.")],
    moves: [
      ...threadStarted(),
      ...turn("one"),
      { call: "thread/fork", params: ON_THREAD },
      { until: "thread/started" },
      { call: "turn/start", params: { threadId: "{thread2}", input: [{ type: "text", text: "in the fork" }] } },
      { until: "turn/completed" },
    ],
  },
  {
    id: "thread-ephemeral",
    about: "a thread that is not kept",
    script: [say("One.")],
    moves: [
      ...threadStarted({ ephemeral: true }),
      ...turn("one"),
      { call: "thread/list", params: {} },
      { call: "thread/read", params: { ...ON_THREAD, includeTurns: true } },
    ],
  },
  {
    id: "thread-settings",
    about: "a thread with settings of its own",
    moves: [
      ...threadStarted({
        model: "gpt-5.5",
        sandbox: "read-only",
        approvalPolicy: "on-request",
        developerInstructions: "Be brief.",
        config: { model_reasoning_effort: "low" },
        someUnknown: 1,
      }),
    ],
  },
  {
    id: "thread-full-access",
    about: "a thread without a sandbox",
    moves: [...threadStarted({ sandbox: "danger-full-access" })],
  },
  {
    id: "goals",
    about: "a goal is set, read and taken away",
    script: [say("One."), say("Two."), say("Three.")],
    moves: [
      ...threadStarted(),
      ...turn("one"),
      { call: "thread/goal/get", params: ON_THREAD },
      { call: "thread/goal/set", params: { ...ON_THREAD, objective: "ship it", status: "paused" } },
      { until: "thread/goal/updated" },
      { call: "thread/goal/get", params: ON_THREAD },
      { call: "thread/goal/clear", params: ON_THREAD },
      { until: "thread/goal/cleared" },
    ],
  },
  {
    id: "goal-resumed",
    about: "a thread with a goal is resumed",
    script: [say("One.")],
    moves: [
      ...threadStarted(),
      ...turn("one"),
      { call: "thread/goal/set", params: { ...ON_THREAD, objective: "ship it", status: "paused" } },
      { until: "thread/goal/updated" },
      { call: "thread/resume", params: { ...ON_THREAD, excludeTurns: true } },
    ],
  },
  {
    id: "two-clients",
    about: "a second client resumes the thread, hears the turn and answers the question of the first",
    door: "unix",
    script: [say("One."), command("touch made.txt; sleep 0.4"), say("Two.")],
    moves: [
      ...threadStarted({ approvalPolicy: "untrusted" }),
      ...turn("one"),
      ...KNOWN_B,
      { client: "b", call: "thread/resume", params: ON_THREAD },
      ...turn("two", COMMAND),
      { client: "b", until: COMMAND },
      { client: "b", reply: { decision: "accept" }, to: COMMAND },
      { until: "turn/completed" },
      { client: "b", until: "turn/completed" },
    ],
  },
  {
    id: "thread-sample",
    about: "a question beside the conversation is answered, and refused for a turn that is not the last",
    script: [say("One."), say("Beside it.")],
    moves: [
      ...threadStarted({}, true),
      ...turn("one"),
      { call: "thread/sample", params: { ...ON_THREAD, expectedTurnId: "{turn}", prompt: "What was it?" } },
      { call: "thread/sample", params: { ...ON_THREAD, expectedTurnId: "{thread}", prompt: "What was it?" } },
      { call: "thread/sample", params: { ...ON_THREAD, expectedTurnId: "{turn}", prompt: "" } },
      { call: "thread/sample/cancel", params: { requestId: 99 } },
      { call: "thread/read", params: { ...ON_THREAD, includeTurns: true } },
    ],
  },
  {
    id: "stranger",
    about: "a second client that follows nothing",
    door: "unix",
    script: [say("One.")],
    moves: [
      ...KNOWN_B,
      ...threadStarted(),
      ...turn("one"),
      { client: "b", until: "thread/status/changed", where: { status: { type: "idle" } } },
    ],
  },
  {
    id: "client-vanishes",
    about: "the client goes in the middle of a turn; another one finds its end",
    door: "unix",
    script: [command("sleep 1; echo slept"), say("Done.")],
    moves: [
      ...KNOWN_B,
      ...threadStarted(),
      ...turn("slow", "item/started"),
      { until: "item/started", where: { item: { type: "commandExecution" } } },
      { leave: "a" },
      { client: "b", until: "thread/status/changed", where: { status: { type: "idle" } } },
      { client: "b", call: "thread/read", params: { ...ON_THREAD, includeTurns: true } },
    ],
  },
];
