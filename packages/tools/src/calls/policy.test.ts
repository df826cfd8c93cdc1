import type { ApprovalPolicy, ApprovalQuestion, SandboxMode } from "@heddle/protocol";
import { expect, test } from "vitest";
import { envelopeFor } from "./envelopes.ts";
import { approvalKey, decide, type CallFacts } from "./policy.ts";

const NOTHING: ReadonlySet<string> = new Set();
const envelope = (mode: SandboxMode, approval: ApprovalPolicy) =>
  envelopeFor({ mode, workspace: "/w", writableRoots: [], networkAccess: false, approval, masked: [] });

const base = { writePaths: [], cwd: "/w", approvalKey: "key" };
const CALLS = {
  reading: { ...base, tool: "read", effects: ["read"], isReadOnly: true },
  listing: { ...base, tool: "exec_command", effects: ["read", "exec"], isReadOnly: true },
  command: { ...base, tool: "exec_command", effects: ["read", "exec"], isReadOnly: false },
  patch: { ...base, tool: "apply_patch", effects: ["read", "write"], isReadOnly: false, writePaths: ["/w/a"] },
  farPatch: {
    ...base,
    tool: "apply_patch",
    effects: ["read", "write"],
    isReadOnly: false,
    writePaths: ["/w/a", "/etc/x"],
  },
  plan: { ...base, tool: "update_plan", effects: [], isReadOnly: true },
  leaving: { ...base, tool: "exec_command", effects: ["read", "exec"], isReadOnly: false, hop: {} },
  leavingToRead: { ...base, tool: "exec_command", effects: ["read", "exec"], isReadOnly: true, hop: {} },
} satisfies Record<string, CallFacts>;
type CallName = keyof typeof CALLS;

type Row = [SandboxMode, ApprovalPolicy, Record<CallName, "run" | "ask" | "deny">];
const run = "run";
const ask = "ask";
const deny = "deny";
const TABLE: Row[] = [
  [
    "workspace-write",
    "never",
    {
      reading: run,
      listing: run,
      command: run,
      patch: run,
      farPatch: run,
      plan: run,
      leaving: deny,
      leavingToRead: deny,
    },
  ],
  [
    "workspace-write",
    "on-request",
    {
      reading: run,
      listing: run,
      command: run,
      patch: run,
      farPatch: run,
      plan: run,
      leaving: ask,
      leavingToRead: ask,
    },
  ],
  [
    "workspace-write",
    "untrusted",
    {
      reading: run,
      listing: run,
      command: ask,
      patch: ask,
      farPatch: ask,
      plan: run,
      leaving: ask,
      leavingToRead: ask,
    },
  ],
  [
    "read-only",
    "never",
    {
      reading: run,
      listing: run,
      command: run,
      patch: run,
      farPatch: run,
      plan: run,
      leaving: deny,
      leavingToRead: deny,
    },
  ],
  [
    "read-only",
    "untrusted",
    {
      reading: run,
      listing: run,
      command: ask,
      patch: ask,
      farPatch: ask,
      plan: run,
      leaving: ask,
      leavingToRead: ask,
    },
  ],
  [
    "danger-full-access",
    "never",
    {
      reading: run,
      listing: run,
      command: run,
      patch: run,
      farPatch: run,
      plan: run,
      leaving: run,
      leavingToRead: run,
    },
  ],
  [
    "danger-full-access",
    "on-request",
    {
      reading: run,
      listing: run,
      command: ask,
      patch: run,
      farPatch: ask,
      plan: run,
      leaving: ask,
      leavingToRead: run,
    },
  ],
  [
    "danger-full-access",
    "untrusted",
    {
      reading: run,
      listing: run,
      command: ask,
      patch: ask,
      farPatch: ask,
      plan: run,
      leaving: ask,
      leavingToRead: run,
    },
  ],
];

test.each(TABLE)("under %s with approval %s each kind of call gets its decision", (mode, approval, expected) => {
  const decided = Object.fromEntries(
    Object.entries(CALLS).map(([name, facts]) => [name, decide(facts, envelope(mode, approval), NOTHING).kind]),
  );
  expect(decided).toEqual(expected);
});

test("never asks nobody, whatever the call", () => {
  for (const mode of ["read-only", "workspace-write", "danger-full-access"] as const) {
    for (const facts of Object.values(CALLS)) {
      expect(decide(facts, envelope(mode, "never"), NOTHING).kind).not.toBe("ask");
    }
  }
});

test("an act accepted for the thread is not asked again, inside its wall or outside", () => {
  const remembered = new Set(["key"]);
  expect(decide(CALLS.command, envelope("workspace-write", "untrusted"), remembered)).toEqual({ kind: "run" });
  expect(decide(CALLS.leaving, envelope("workspace-write", "untrusted"), remembered)).toEqual({ kind: "run" });
  expect(decide(CALLS.leaving, envelope("workspace-write", "never"), remembered).kind).toBe("deny");
});

test("an acceptance covers the same command in the same folder and nothing that begins alike", () => {
  const question = (command: string, cwd = "/w", callId = "c"): ApprovalQuestion => ({
    kind: "command",
    callId,
    itemId: `item_${callId}`,
    command,
    cwd,
    reason: callId,
  });
  const key = approvalKey(question("npm test"));
  expect(approvalKey(question("npm test", "/w", "another"))).toBe(key);
  for (const other of [
    question("npm test; rm -rf ~"),
    question("npm test "),
    question("npm  test"),
    question("npm test", "/x"),
    { ...question("npm test"), wish: { kind: "outside" } } as const,
  ]) {
    expect(approvalKey(other)).not.toBe(key);
  }
});

test("a tool that is configured to need a person asks whoever can be asked, and is declined where nobody can", () => {
  const call: CallFacts = { ...base, tool: "mcp.wiki.edit", effects: ["exec"], isReadOnly: false, needsPerson: true };
  expect(decide(call, envelope("workspace-write", "on-request"), NOTHING)).toMatchObject({ kind: "ask" });
  expect(decide(call, envelope("workspace-write", "untrusted"), NOTHING)).toMatchObject({ kind: "ask" });
  expect(decide(call, envelope("workspace-write", "never"), NOTHING)).toEqual({
    kind: "deny",
    code: "policy.denied",
    message: expect.stringContaining("--allow-tool mcp.wiki.edit"),
  });
  expect(decide(call, envelope("workspace-write", "never"), new Set(["key"]))).toEqual({ kind: "run" });
  const reading: CallFacts = { ...call, effects: ["read"], isReadOnly: true };
  expect(decide(reading, envelope("workspace-write", "never"), NOTHING)).toEqual({ kind: "run" });
});

test("a question to the user is put every time, whatever was accepted before, and not where nobody is asked", () => {
  const question = { ...CALLS.plan, tool: "request_user_input", isQuestion: true };
  const accepted = new Set(["key"]);
  expect(decide(question, envelope("read-only", "on-request"), accepted)).toMatchObject({ kind: "ask" });
  expect(decide(question, envelope("read-only", "untrusted"), accepted)).toMatchObject({ kind: "ask" });
  expect(decide(question, envelope("read-only", "never"), accepted)).toMatchObject({
    kind: "deny",
    code: "policy.denied",
    message: expect.stringContaining("no question can be asked"),
  });
});

test("a tool of a client is called without a question: whoever would be asked carries it out", () => {
  const call = { ...base, tool: "client.lookup", effects: ["message"], isReadOnly: false } satisfies CallFacts;
  for (const policy of ["never", "on-request", "untrusted"] as const) {
    expect(decide(call, envelope("danger-full-access", policy), NOTHING)).toEqual({ kind: "run" });
  }
});

test("an answer about an MCP tool covers one definition of it", () => {
  const question: ApprovalQuestion = { kind: "tool", callId: "1", itemId: "1", tool: "mcp.a.b", arguments: {} };
  const first = approvalKey({ ...question, definition: "one" });
  expect(approvalKey({ ...question, callId: "2", definition: "one" })).toBe(first);
  expect(approvalKey({ ...question, definition: "two" })).not.toBe(first);
  expect(approvalKey({ ...question, definition: "one", description: "what it is for" })).toBe(first);
});
