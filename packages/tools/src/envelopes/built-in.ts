/**
 * The built-in envelopes and the edges between them, as data: the one list from which the command line, the protocol and
 * the documents are made. A model asks before it goes where more is allowed; `full` is entered by users alone.
 */
import { HeddleError, type BuiltInEnvelopeId, type HopEdge, type HopGuard, type SandboxMode } from "@heddle/protocol";
import { CHILD_TOOLS } from "../calls/child-threads.ts";
import { MESSAGE_TOOLS } from "../calls/messages.ts";
import { SETTINGS_ROOTS, WORKSPACE_ROOT, type EnvelopeSpec } from "./spec.ts";

const READING = [
  "exec_command",
  "write_stdin",
  "bash",
  "read",
  "list",
  "glob",
  "grep",
  "view_image",
  "update_plan",
  "skill",
] as const;
const WRITING = ["apply_patch", "edit", "write"] as const;
/** Offered where there is something to ask for and a user to ask. */
const ASKING = ["request_permissions"] as const;
/** With a client, a task, a provider or servers: they exist where those do. `hop`: where the envelope was chosen by name. */
const ADDED = [
  "hop",
  "request_user_input",
  "update_goal",
  "task_report",
  "evidence_search",
  "evidence_note",
  ...CHILD_TOOLS,
  ...MESSAGE_TOOLS,
  "client.*",
  "web_search",
  "mcp.*",
] as const;

/** What a turn may do at most that only a message of another agent has started, unless its owner says otherwise. */
export const OBSERVE = "observe";

/** To where no more is allowed. */
const down = (...ids: readonly string[]): HopEdge[] =>
  ids.map((to) => ({ to, by: ["model", "user", "task"], approval: "auto" }));

/** To where more is allowed. */
const up = (to: string): HopEdge[] => [
  { to, by: ["user", "task"], approval: "auto" },
  { to, by: ["model"], approval: "ask" },
];

const TO_FULL: readonly HopEdge[] = [{ to: "full", by: ["user"], approval: "auto" }];

/** What is deployed has passed its tests and is committed. */
const READY: readonly HopGuard[] = [
  { kind: "outcome" },
  { kind: "command", command: ["git", "diff", "--quiet", "HEAD", "--"] },
];

/** Where builds and tests put what they make. */
const BUILD_FOLDERS = [
  "build?",
  "dist?",
  "out?",
  "target?",
  "coverage?",
  ".cache?",
  "node_modules/.cache?",
  ".pytest_cache?",
];

const looking = {
  tools: [...READING, ...ADDED],
  effects: ["read", "exec"],
  addsEffects: true,
  write: [],
  sandbox: "required",
} as const;

const SPECS: readonly (EnvelopeSpec & { readonly id: BuiltInEnvelopeId })[] = [
  {
    ...looking,
    id: "explore",
    description: "Look around: read files and run commands that can write nothing.",
    whenAsked: { tools: [...WRITING, ...ASKING], effects: ["write"] },
    exits: [...down("plan", "review", "reflect"), ...up("edit"), ...up("test"), ...TO_FULL],
  },
  {
    ...looking,
    id: "plan",
    description: "Investigate and propose; nothing is changed.",
    exits: [...down("reflect"), ...up("explore"), ...up("edit"), ...TO_FULL],
  },
  {
    id: "edit",
    description: "Change files of the workspace and run commands there.",
    tools: [...READING, ...WRITING, ...ADDED],
    effects: ["read", "write", "exec"],
    whenAsked: { tools: ASKING, effects: [] },
    addsEffects: true,
    write: [WORKSPACE_ROOT, SETTINGS_ROOTS],
    sandbox: "required",
    exits: [...down("explore", "plan", "test", "review", "reflect"), ...TO_FULL],
  },
  {
    ...looking,
    id: "test",
    description: "Run tests and builds, which write only into the usual folders for their output.",
    write: BUILD_FOLDERS,
    exits: [
      ...down("plan", "review", "reflect"),
      ...up("explore"),
      ...up("edit"),
      { to: "deploy", by: ["model", "user", "task"], approval: "ask", guards: [...READY] },
      ...TO_FULL,
    ],
    outcome: {
      type: "object",
      properties: { passed: { const: true }, command: { type: "string" }, summary: { type: "string" } },
      required: ["passed"],
    },
  },
  {
    ...looking,
    id: "review",
    description: "Read and judge what was changed; nothing is changed.",
    exits: [...down("plan", "reflect"), ...up("explore"), ...up("edit"), ...TO_FULL],
  },
  {
    ...looking,
    id: "deploy",
    description: "Hand over what is tested: commands with the network, each one asked for.",
    effects: ["read", "exec", "net"],
    write: [WORKSPACE_ROOT],
    network: "all",
    approval: "untrusted",
    exits: [...down("reflect"), ...up("explore"), ...TO_FULL],
  },
  {
    ...looking,
    id: "reflect",
    description: "Look back at the work and write down what was learned; nothing is changed.",
    exits: [...down("plan", "review"), ...up("explore"), ...TO_FULL],
  },
  {
    id: OBSERVE,
    description: "See and answer: read files and the record; nothing is run, changed or sent.",
    tools: ["read", "list", "glob", "grep", "view_image", "update_plan", "skill", "evidence_search", "list_agents"],
    effects: ["read"],
    write: [],
    network: "none",
    sandbox: "required",
    exits: [...up("explore"), ...TO_FULL].filter(({ by }) => by.includes("user")),
  },
  {
    id: "full",
    description: "Everything the user may do, without a sandbox.",
    tools: [...READING, ...WRITING, ...ADDED],
    effects: ["read", "write", "exec", "net"],
    addsEffects: true,
    write: ["/"],
    network: "all",
    sandbox: "off",
    exits: down("explore", "plan", "edit", "test", "review", "reflect"),
  },
];

export const BUILT_IN_ENVELOPES: ReadonlyMap<string, EnvelopeSpec> = new Map(SPECS.map((spec) => [spec.id, spec]));

/** Codex's sandbox modes are names for envelopes. */
export const ENVELOPE_OF_MODE: Readonly<Record<SandboxMode, string>> = {
  "read-only": "explore",
  "workspace-write": "edit",
  "danger-full-access": "full",
};

export function builtInEnvelope(id: string): EnvelopeSpec {
  const spec = BUILT_IN_ENVELOPES.get(id);
  if (spec !== undefined) return spec;
  const ids = [...BUILT_IN_ENVELOPES.keys()].join(", ");
  throw new HeddleError(
    "envelope.unknown",
    `there is no envelope ${JSON.stringify(id.slice(0, 100))}; there are: ${ids}`,
  );
}
