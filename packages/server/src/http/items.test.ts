import { newTurnId, type EventBody, type Item } from "@heddle/protocol";
import type { Approval, ItemEntry, ItemPage, TaskPage, ThreadDiff } from "@heddle/protocol/http";
import { expect, test } from "vitest";
import type { z } from "zod";
import { openHttpWorld, SETTINGS, type HttpWorld } from "../../test/http-world.ts";
import { threadDiff } from "./thread-diff.ts";

type Page = z.output<typeof ItemPage>;

const HOLDER = { pid: 1, startTicks: "1", bootId: "b", pidNamespace: "n" };

function admitted(turnId: string): EventBody {
  return {
    type: "turn.admitted",
    v: 1,
    turnId,
    input: [{ type: "text", text: "go" }],
    settings: SETTINGS,
    holder: HOLDER,
  };
}

function command(id: string, more: Partial<Item & { type: "commandExecution" }> = {}): Item {
  const known = { type: "commandExecution", id, callId: `call_${id}`, command: `make ${id}`, cwd: "/w" } as const;
  return { ...known, status: "inProgress", output: "", ...more };
}

const started = (turnId: string, item: Item): EventBody => ({ type: "item.started", v: 1, turnId, item });
const ended = (turnId: string, item: Item): EventBody => ({ type: "item.completed", v: 1, turnId, item });

async function store(world: HttpWorld, threadId: string, events: readonly EventBody[]): Promise<void> {
  await world.heddle.journal.append({ stream: threadId, author: "agent:embedded", events });
}

async function items(world: HttpWorld, threadId: string, query: string): Promise<Page> {
  const { json, status } = await world.ask(`/api/threads/${threadId}/items?${query}`);
  expect(status).toBe(200);
  return json as Page;
}

const idsOf = ({ data }: Page): string[] => data.map(({ item }) => item.id);

test("a thread is read from its end, page by page, as from its beginning", async () => {
  await using world = await openHttpWorld();
  const threadId = await world.newThread();
  const turnId = newTurnId();
  const all = Array.from({ length: 30 }, (_, at) => `i${at}`);
  await store(world, threadId, [
    admitted(turnId),
    ...all.flatMap((id) => [
      started(turnId, command(id)),
      ended(turnId, command(id, { status: "completed", output: `out ${id}`, exitCode: 0 })),
    ]),
  ]);
  const seen: string[] = [];
  let before: number | null = 1_000_000;
  for (let pages = 0; before !== null && pages < 9; pages += 1) {
    const page: Page = await items(world, threadId, `before=${before}&limit=12`);
    seen.unshift(...idsOf(page));
    before = page.nextBefore ?? null;
  }
  expect(seen).toEqual(all);
  const last = await items(world, threadId, "before=1000000&limit=3");
  expect(last.nextAfter).toBe(last.data.at(-1)?.seq);
  expect(await items(world, threadId, "before=2")).toEqual({ data: [], nextAfter: null, nextBefore: null });
  expect((await items(world, threadId, "limit=500")).data).toHaveLength(30);
  expect((await world.ask(`/api/threads/${threadId}/items?before=5&after=1`)).status).toBe(400);
});

test("a running item has what is stored of its output, and a brief page has none, and says how much it left out", async () => {
  await using world = await openHttpWorld();
  const threadId = await world.newThread();
  const turnId = newTurnId();
  const appended = (text: string): EventBody => {
    return { type: "item.checkpointed", v: 1, turnId, itemId: "open", channel: "output", appended: text };
  };
  const diff = "--- a\n+++ b\n@@ -1 +1,2 @@\n-old\n+new\n+more\n";
  const edit: Item = {
    type: "fileChange",
    id: "edit",
    callId: "k",
    status: "completed",
    changes: [{ path: "/w/a.ts", kind: "update", diff }],
  };
  await store(world, threadId, [
    admitted(turnId),
    started(turnId, { ...edit, status: "inProgress" }),
    ended(turnId, edit),
    started(turnId, command("open")),
    appended("one\n"),
    appended("two\n"),
  ]);
  const whole = await items(world, threadId, "before=1000");
  expect(whole.data.at(-1)).toMatchObject({ item: { id: "open", status: "inProgress", output: "one\ntwo\n" } });
  const brief = await items(world, threadId, "before=1000&brief=true");
  const [edited, open] = brief.data as [z.output<typeof ItemEntry>, z.output<typeof ItemEntry>];
  expect(edited.item).toMatchObject({ changes: [{ path: "/w/a.ts", kind: "update", diff: "" }] });
  expect(edited.leftOutChars).toBe(JSON.stringify(diff).length - 2);
  expect(open).toMatchObject({ item: { output: "" }, leftOutChars: JSON.stringify("one\ntwo\n").length - 2 });
  const changed = (await world.ask(`/api/threads/${threadId}/diff`)).json as ThreadDiff;
  expect(changed).toEqual({
    of: "recorded",
    files: [
      {
        path: "/w/a.ts",
        kind: "update",
        added: 2,
        removed: 1,
        edits: [{ itemId: "edit", turnId, seq: expect.any(Number) as number, diff }],
      },
    ],
    count: 1,
    isCut: false,
  });
});

test("a question says what it holds up, until when, and what the caller may answer; the reason goes with the answer", async () => {
  await using world = await openHttpWorld();
  const taskId = await world.newTask({ name: "retry webhooks" });
  const threadId = await world.heddle
    .as("user:owner")
    .createThread({ workspace: world.home, origin: `task:${taskId}` });
  const turnId = newTurnId();
  const asked = (approvalId: string, more: object): EventBody => ({
    type: "approval.requested",
    v: 1,
    turnId,
    approvalId,
    question: { kind: "command", callId: "k", itemId: "i", command: "npm ci", cwd: world.home, ...more },
    answerBy: 5,
  });
  await store(world, threadId, [
    admitted(turnId),
    asked("apr_in", {}),
    asked("apr_out", { wish: { kind: "outside" } }),
  ]);
  const open = async (token: string) => {
    const { json } = await world.ask("/api/approvals", { token });
    return (json as { data: z.output<typeof Approval>[] }).data;
  };
  const [first] = await open(world.tokens.owner);
  expect(first).toMatchObject({ id: "apr_in", taskId, taskName: "retry webhooks", answerBy: 5 });
  const allowed = async (token: string) => (await open(token)).map(({ mayAnswer }) => mayAnswer);
  const every = ["accept", "acceptForThread", "decline", "cancel"];
  expect(await allowed(world.tokens.owner)).toEqual([every, every]);
  expect(await allowed(world.tokens.user)).toEqual([every, ["decline", "cancel"]]);
  expect(await allowed(world.tokens.viewer)).toEqual([[], []]);
  const state = await world.ask("/api/state");
  expect(state.json).toMatchObject({ approvals: 2 });
  const said = { decision: "decline", reason: "use npm ci --offline" };
  const path = `/api/threads/${threadId}/approvals/apr_in`;
  expect((await world.ask(path, { method: "POST", body: said })).status).toBe(200);
  const events = await world.heddle.journal.read({ stream: threadId, after: 0 });
  expect(events.at(-1)?.body).toMatchObject({ type: "approval.resolved", approvalId: "apr_in", ...said });
  expect((await open(world.tokens.owner)).map(({ id }) => id)).toEqual(["apr_out"]);
});

test("a row of a list says what the agent does now, how the checks stand, and how its dependencies do", async () => {
  await using world = await openHttpWorld();
  const first = await world.newTask({ name: "schema" });
  const taskId = await world.newTask({ name: "api", dependsOn: ["schema", "nothing"], budget: { turns: 7 } });
  const row = async (id: string) => {
    const page = (await world.ask("/api/tasks")).json as z.output<typeof TaskPage>;
    return page.data.find((task) => task.id === id);
  };
  expect(await row(taskId)).toMatchObject({
    dependsOn: [{ name: "schema", id: first, state: "pending" }, { name: "nothing" }],
    budget: { turns: 7 },
    checks: { all: 0, passed: 0, failed: 0, errors: 0, vacuous: 0, violations: 0 },
  });
  const threadId = await world.heddle.as("user:owner").createThread({ workspace: world.home, origin: `task:${first}` });
  const { journal } = world.heddle;
  const append = (events: EventBody[]) => journal.append({ stream: first, author: "system", events });
  await append([
    { type: "task.taken", v: 1, attempt: 1, holder: HOLDER },
    { type: "task.prepared", v: 1, attempt: 1, threadId, folder: world.home },
    { type: "task.prompted", v: 1, attempt: 1, round: 1, clientId: "c", why: "first", text: "go" },
  ]);
  const turnId = newTurnId();
  await store(world, threadId, [
    admitted(turnId),
    started(turnId, command("x", { command: "npm test\n\u202E --watch" })),
    { type: "item.checkpointed", v: 1, turnId, itemId: "x", channel: "output", appended: "." },
  ]);
  const running = await row(first);
  expect(running?.activity).toMatchObject({ itemId: "x", kind: "commandExecution" });
  expect(running?.activity?.text).toMatch(/^npm test \S*202e\S* --watch$/i);
  expect(running?.activity?.lastOutputAt).toBeGreaterThanOrEqual(running?.activity?.since ?? Infinity);
  await append([
    { type: "task.stalled", v: 1, attempt: 1, episode: 1, message: "hangs", quietMs: 9, itemId: "x", culprits: [] },
  ]);
  expect(await row(first)).toMatchObject({ stall: { message: "hangs" } });
  expect((await world.ask(`/api/tasks/${first}`)).json).toMatchObject({ stall: { quietMs: 9, itemId: "x" } });
  await store(world, threadId, [ended(turnId, command("x", { status: "completed" }))]);
  expect((await row(first))?.activity).toBeUndefined();
  await append([{ type: "task.paused", v: 1, cause: "question", message: "which port?" }]);
  const paused = await row(first);
  expect(paused).toMatchObject({ state: "paused", reason: "which port?", pause: { cause: "question" } });
  expect(paused).not.toHaveProperty("stall");
  const path = `/api/tasks/${first}/resume`;
  const answered = await world.ask(path, { method: "POST", body: { input: "8080" } });
  expect(answered).toMatchObject({ status: 200, json: { state: "pending" } });
  expect(answered.json).not.toHaveProperty("pause");
  expect((await journal.tasks.get(first))?.userInput).toBe("8080");
});

test("a diff of a thread has at most so many edits, and says that more were made", async () => {
  await using world = await openHttpWorld();
  const threadId = await world.newThread();
  const turnId = newTurnId();
  const edits = Array.from({ length: 5 }, (_, at): EventBody => {
    const change = { path: `/w/${at % 2}.txt`, kind: "update", diff: "@@ -1 +1 @@\n-a\n+b\n" } as const;
    return ended(turnId, {
      type: "fileChange",
      id: `f${at}`,
      callId: `c${at}`,
      status: "completed",
      changes: [change],
    });
  });
  await store(world, threadId, [admitted(turnId), ...edits]);
  const { journal } = world.heddle;
  const count = ({ files }: z.output<typeof ThreadDiff>): number =>
    files.reduce((sum, file) => sum + file.edits.length, 0);
  const whole = await threadDiff(journal, threadId, { turnId: undefined });
  expect([count(whole), whole.isCut]).toEqual([5, false]);
  const cut = await threadDiff(journal, threadId, { turnId: undefined, maxEdits: 3 });
  expect([count(cut), cut.count, cut.isCut]).toEqual([3, 2, true]);
});
