/** What is refused: fields of experiments, choices that exclude each other, metadata of what is not kept, too much text. */
import { say } from "../../exec-case.ts";
import { initialize, text, threadStarted, turn, type Move, type Scenario } from "../scenario.ts";

const ON_THREAD = { threadId: "{thread}" };
const START = { cwd: "{ws}", approvalPolicy: "never", sandbox: "workspace-write" };
const MIB = 1024 * 1024;

function calls(method: string, each: readonly object[], common: object = {}): readonly Move[] {
  return each.map((params) => ({ call: method, params: { ...common, ...params } }));
}

export const GATES: readonly Scenario[] = [
  {
    id: "gates-start",
    about: "threads are started with fields of experiments, without the capability",
    moves: [
      initialize(),
      ...calls(
        "thread/start",
        [
          { allowProviderModelFallback: true },
          { daybreakEnabled: true },
          { dynamicTools: [] },
          { environments: [] },
          { experimentalRawEvents: true },
          { historyMode: "paginated" },
          { multiAgentMode: "explicitRequestOnly" },
          { permissions: ":workspace" },
          { projectId: "p" },
          { runtimeWorkspaceRoots: ["{ws}"] },
          { selectedCapabilityRoots: [] },
          { approvalPolicy: { granular: { sandbox_approval: true, rules: true, mcp_elicitations: true } } },
        ],
        { cwd: "{ws}" },
      ),
    ],
  },
  {
    id: "gates-thread",
    about: "threads are resumed, forked, listed and changed with fields of experiments, without the capability",
    script: [say("One.")],
    moves: [
      ...threadStarted(),
      ...turn("one"),
      ...calls(
        "thread/resume",
        [
          { history: [] },
          { initialTurnsPage: {} },
          { path: "/x" },
          { path: "" },
          { permissions: ":workspace" },
          { runtimeWorkspaceRoots: [] },
        ],
        ON_THREAD,
      ),
      ...calls(
        "thread/fork",
        [
          { attachToSource: true },
          { beforeTurnId: "x" },
          { deferGoalContinuation: true },
          { experimentalPredictionMode: true },
          { path: "/x" },
          { permissions: ":workspace" },
          { runtimeWorkspaceRoots: [] },
        ],
        ON_THREAD,
      ),
      ...calls("thread/list", [
        { ancestorThreadId: "x" },
        { parentThreadId: "x" },
        { projectId: "x" },
        { attachedToThreadId: "x" },
      ]),
      ...calls("thread/metadata/update", [{ projectId: "x" }, { daybreakEnabled: true }], ON_THREAD),
    ],
  },
  {
    id: "gates-turn",
    about: "turns are started and steered with fields of experiments, without the capability",
    moves: [
      ...threadStarted(),
      ...calls(
        "turn/start",
        [
          { additionalContext: {} },
          { collaborationMode: { mode: "plan", settings: { model: "gpt-5.5" } } },
          { cyberAccessProgram: "standard" },
          { environments: [] },
          { multiAgentMode: "explicitRequestOnly" },
          { permissions: ":workspace" },
          { responsesapiClientMetadata: {} },
          { runtimeWorkspaceRoots: [] },
          { approvalPolicy: { granular: { sandbox_approval: true, rules: true, mcp_elicitations: true } } },
        ],
        { ...ON_THREAD, input: text("x") },
      ),
      ...calls("turn/steer", [{ additionalContext: {} }, { responsesapiClientMetadata: {} }], {
        ...ON_THREAD,
        expectedTurnId: "x",
        input: text("x"),
      }),
      ...calls("command/exec", [{ permissionProfile: ":workspace" }], { command: ["true"] }),
    ],
  },
  {
    id: "permissions-excluded",
    about: "a named profile beside a sandbox of its own, a profile that is not there, and one that is",
    script: [say("One."), say("Two.")],
    moves: [
      ...threadStarted({}, true),
      { call: "thread/start", params: { ...START, permissions: ":read-only" } },
      { call: "thread/start", params: { cwd: "{ws}", permissions: ":nothing" } },
      {
        call: "turn/start",
        params: {
          ...ON_THREAD,
          input: text("x"),
          permissions: ":read-only",
          sandboxPolicy: { type: "workspaceWrite" },
        },
      },
      { call: "turn/start", params: { ...ON_THREAD, input: text("x"), permissions: ":nothing" } },
      {
        call: "thread/settings/update",
        params: { ...ON_THREAD, permissions: ":read-only", sandboxPolicy: { type: "workspaceWrite" } },
      },
      { call: "thread/resume", params: { ...ON_THREAD, permissions: ":read-only", sandbox: "read-only" } },
      {
        call: "command/exec",
        params: { command: ["true"], permissionProfile: ":read-only", sandboxPolicy: { type: "workspaceWrite" } },
      },
      { call: "command/exec", params: { command: ["true"], permissionProfile: ":nothing" } },
    ],
  },
  {
    id: "permissions-profile",
    about: "a thread, a turn and settings with the name of a profile",
    script: [say("One."), say("Two.")],
    moves: [
      initialize({ isExperimental: true }),
      { call: "thread/start", params: { cwd: "{ws}", approvalPolicy: "never", permissions: ":read-only" } },
      { until: "thread/started" },
      ...turn("one"),
      ...turn("two", "turn/completed", { permissions: ":workspace" }),
      { call: "thread/settings/update", params: { ...ON_THREAD, permissions: ":danger-full-access" } },
      { until: "thread/settings/updated" },
    ],
  },
  {
    id: "ephemeral-metadata",
    about: "what is stored beside a thread is refused for one that is not kept",
    script: [say("One.")],
    moves: [
      ...threadStarted({ ephemeral: true }),
      ...turn("one"),
      { call: "thread/metadata/update", params: { ...ON_THREAD, gitInfo: { branch: "x" } } },
      { call: "thread/name/set", params: { ...ON_THREAD, name: "x" } },
      { call: "thread/archive", params: ON_THREAD },
      { call: "thread/unarchive", params: ON_THREAD },
      { call: "thread/goal/set", params: { ...ON_THREAD, objective: "x" } },
      { call: "thread/goal/get", params: ON_THREAD },
      { call: "thread/turns/list", params: ON_THREAD },
      { call: "thread/items/list", params: ON_THREAD },
      { call: "thread/resume", params: { ...ON_THREAD, excludeTurns: true } },
      { call: "thread/fork", params: { ...ON_THREAD, excludeTurns: true } },
      { call: "thread/revert", params: { ...ON_THREAD, beforeTurnId: "{turn}" } },
      { call: "thread/delete", params: ON_THREAD },
    ],
  },
  {
    id: "input-too-large",
    about: "input of more characters than may be sent",
    script: [say("One.")],
    moves: [
      ...threadStarted(),
      { call: "turn/start", params: { ...ON_THREAD, input: text("x".repeat(MIB + 1)) } },
      {
        call: "turn/start",
        params: { ...ON_THREAD, input: [...text("ä".repeat(MIB)), ...text("yy")] },
      },
      { call: "turn/steer", params: { ...ON_THREAD, expectedTurnId: "x", input: text("x".repeat(MIB + 1)) } },
      { call: "turn/steer", params: { ...ON_THREAD, expectedTurnId: "x", input: [] } },
    ],
  },
];
