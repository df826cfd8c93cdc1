import { expect, test } from "vitest";
import type { EventBody, EventOf, Item, StoredEvent } from "@heddle/protocol";
import { codexExecDialect, type CodexExecLine } from "./codex-exec.ts";

const THREAD = "thread-1";
const TURN = "turn-1";

function lines(...bodies: readonly EventBody[]): readonly CodexExecLine[] {
  const dialect = codexExecDialect();
  return bodies.flatMap((body, index) => dialect.event(stored(body, index + 1)));
}

function stored(body: EventBody, version: number): StoredEvent {
  return { position: version, stream: THREAD, version, id: `evt_${version}`, at: 0, author: "system", body, hash: "" };
}

const started = (item: Item): EventBody => ({ type: "item.started", v: 1, turnId: TURN, item });
const completed = (item: Item): EventBody => ({ type: "item.completed", v: 1, turnId: TURN, item });

const admitted: EventOf<"turn.admitted"> = {
  type: "turn.admitted",
  v: 1,
  turnId: TURN,
  input: [{ type: "text", text: "go" }],
  settings: {
    provider: "mock",
    model: "m",
    sandboxMode: "read-only",
    networkAccess: false,
    writableRoots: [],
    approvalPolicy: "never",
  },
  holder: { pid: 1, startTicks: "1", bootId: "b", pidNamespace: "p" },
};
const command = {
  type: "commandExecution",
  id: "item_a",
  callId: "call_1",
  command: "echo hello; exit 3",
  cwd: "/home/dev/project",
} as const;

test("a command that could not be started has the exit code Codex gives, one that was stopped has none", () => {
  const item = { ...command, output: "" };
  const shown = lines(
    completed({ ...item, status: "failed", error: "no such folder" }),
    completed({ ...item, status: "interrupted" }),
    completed({ ...item, status: "failed", signal: "SIGKILL" }),
  ).map((line) => ("item" in line && line.item.type === "command_execution" ? line.item.exit_code : undefined));
  expect(shown).toEqual([-1, null, null]);
});

test("a command that outlives its call is one item, and the calls that read it are none", () => {
  const settled: EventBody = {
    type: "tool.settled",
    v: 1,
    turnId: TURN,
    callId: "call_1",
    itemId: "item_a",
    tool: "exec_command",
    outcome: "ok",
    output: [],
    processId: "1000",
  };
  const poll = (id: string, session: number): Extract<Item, { type: "toolCall" }> => {
    const args = { session_id: session, chars: "" };
    return { type: "toolCall", id, callId: id, tool: "write_stdin", arguments: args, status: "inProgress" };
  };
  const words = lines(
    started({ ...command, status: "inProgress", output: "" }),
    settled,
    started(poll("p1", 1000)),
    completed({ ...poll("p1", 1000), status: "completed", output: "hello\n" }),
    started(poll("p2", 1000)),
    completed({ ...command, status: "failed", output: "hello\n", exitCode: 3 }),
    completed({ ...poll("p2", 1000), status: "interrupted" }),
    started(poll("p3", 1000)),
    completed({ ...poll("p3", 1000), status: "failed", error: "its input is closed" }),
    started(poll("p4", 4711)),
    completed({ ...poll("p4", 4711), status: "failed", error: "no such session" }),
  ).map((line) => ("item" in line ? `${line.type} ${line.item.id} ${line.item.type}` : line.type));
  expect(words).toEqual([
    "item.started item_0 command_execution",
    "item.completed item_0 command_execution",
    "item.started item_1 mcp_tool_call",
    "item.completed item_1 mcp_tool_call",
    "item.started item_2 mcp_tool_call",
    "item.completed item_2 mcp_tool_call",
  ]);
});

test("findings of a review are laid out as text, of any other turn they stay as they are", () => {
  const answer = JSON.stringify({
    findings: [],
    overall_correctness: "patch is correct",
    overall_explanation: "Nothing to report.",
    overall_confidence_score: 1,
  });
  const message: Item = { type: "agentMessage", id: "m", text: answer };
  const review: EventOf<"turn.admitted"> = { ...admitted, task: "review" };
  expect(lines(review, completed(message))[1]).toMatchObject({ item: { text: "Nothing to report." } });
  expect(lines(admitted, completed(message))[1]).toMatchObject({ item: { text: answer } });
  const shaped: EventBody = { ...review, settings: { ...review.settings, outputSchema: { type: "object" } } };
  expect(lines(shaped, completed(message))[1]).toMatchObject({ item: { text: answer } });
  const dialect = codexExecDialect({ hasDeltas: true });
  for (const [index, body] of [review, started({ ...message, text: "" })].entries()) dialect.event(stored(body, index));
  expect(dialect.progress("m", '{"findings":')).toBeUndefined();
  expect(dialect.progress("m", "Looks")).toMatchObject({ type: "item.updated", item: { text: "Looks" } });
});

test("a patch is a file change with absolute paths and kinds, without its diff", () => {
  const change = { path: "/home/dev/project/added.txt", kind: "add" as const, diff: "+x" };
  const patch = { type: "fileChange" as const, id: "item_p", callId: "c", changes: [change] };
  const item = { id: "item_0", type: "file_change", changes: [{ path: change.path, kind: "add" }] };
  expect(lines(started({ ...patch, status: "inProgress" }), completed({ ...patch, status: "completed" }))).toEqual([
    { type: "item.started", item: { ...item, status: "in_progress" } },
    { type: "item.completed", item: { ...item, status: "completed" } },
  ]);
});

test("refused work is seen: a declined command and a declined patch keep their reason", () => {
  expect(
    lines(
      completed({ ...command, status: "declined", output: "", error: "read-only" }),
      completed({ type: "fileChange", id: "p", callId: "c", status: "declined", changes: [], error: "outside" }),
    ),
  ).toEqual([
    {
      type: "item.completed",
      item: {
        id: "item_0",
        type: "command_execution",
        command: "/bin/bash -c 'echo hello; exit 3'",
        aggregated_output: "read-only",
        exit_code: null,
        status: "declined",
        error: "read-only",
      },
    },
    {
      type: "item.completed",
      // Codex has no `declined` for these, and readers that know its words must not meet another.
      item: {
        id: "item_1",
        type: "file_change",
        changes: [],
        status: "failed",
        outcome: "declined",
        error: "outside",
      },
    },
  ]);
});

test("Heddle's own tools are calls of the server heddle, with result or error", () => {
  const call = { type: "toolCall", id: "t", callId: "c", tool: "grep", arguments: { pattern: "x" } } as const;
  const shape = { type: "mcp_tool_call", server: "heddle", tool: "grep", arguments: { pattern: "x" } };
  expect(
    lines(
      started({ ...call, status: "inProgress" }),
      completed({ ...call, status: "completed", output: "a.ts:1" }),
      completed({ ...call, id: "t2", status: "failed", error: "no such folder" }),
      completed({ ...call, id: "t3", status: "interrupted" }),
      completed({ type: "imageView", id: "t4", callId: "c", path: "/a.png", status: "completed" }),
    ),
  ).toEqual([
    { type: "item.started", item: { id: "item_0", ...shape, result: null, error: null, status: "in_progress" } },
    {
      type: "item.completed",
      item: {
        id: "item_0",
        ...shape,
        result: { content: [{ type: "text", text: "a.ts:1" }], structured_content: null },
        error: null,
        status: "completed",
      },
    },
    {
      type: "item.completed",
      item: { id: "item_1", ...shape, result: null, error: { message: "no such folder" }, status: "failed" },
    },
    {
      type: "item.completed",
      item: {
        id: "item_2",
        ...shape,
        result: null,
        error: { message: "interrupted" },
        status: "failed",
        outcome: "interrupted",
      },
    },
    {
      type: "item.completed",
      item: {
        id: "item_3",
        type: "mcp_tool_call",
        server: "heddle",
        tool: "view_image",
        arguments: { path: "/a.png" },
        result: null,
        error: null,
        status: "completed",
      },
    },
  ]);
});
