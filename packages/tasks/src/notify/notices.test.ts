import { describe, expect, test } from "vitest";
import { NO_USAGE, type TaskEventBody } from "@heddle/protocol";
import { hook, open } from "../../test/notifier.ts";
import { openReceiver } from "../../test/receiver.ts";
import { eventually, openTestStore } from "../../test/test-store.ts";
import { NOTIFICATION_NAMES, readNames } from "./names.ts";

const holder = { pid: 1, startTicks: "1", bootId: "b", pidNamespace: "n" };
const baseline = { takenAt: 1, folder: "/tmp/work", files: {}, missing: [], tests: {}, passed: [] } as never;

const begun: readonly TaskEventBody[] = [
  { type: "task.taken", v: 1, attempt: 1, holder },
  { type: "task.prepared", v: 1, attempt: 1, threadId: "thread-1", folder: "/tmp/work", baseline },
  { type: "task.prompted", v: 1, attempt: 1, round: 1, clientId: "c1", why: "first", text: "go" },
];
const turnEnded: TaskEventBody = {
  type: "task.turn-ended",
  v: 1,
  attempt: 1,
  round: 1,
  turnId: "t",
  status: "failed",
  failure: { code: "provider.cut", message: "cut off" },
  usage: NO_USAGE,
  durationMs: 5,
};
const claimed: TaskEventBody = { type: "task.claimed", v: 1, attempt: 1, by: "report", summary: "all done" };

const names = (received: readonly { readonly body: string }[]): readonly string[] =>
  received.map(({ body }) => JSON.parse(body).event);

describe("what is notices", () => {
  test("81, 88: every stored event has its names, with the payload OpenLoom's receivers know and more", async () => {
    await using store = await openTestStore();
    await using receiver = await openReceiver();
    await using _notifier = await open(store, [hook(receiver.url)]);
    const check = { kind: "file-exists" as const, path: "x" };
    const id = await store.happen(
      [
        ...begun,
        { type: "task.waited", v: 1, cause: "approval", message: "wants to run make (+1 more)" },
        turnEnded,
        { type: "task.budget-warned", v: 1, what: "tokens", spent: 80, limit: 100 },
        claimed,
        {
          type: "task.checked",
          v: 1,
          attempt: 1,
          round: 1,
          results: [
            {
              name: "x is there",
              kind: "file-exists",
              outcome: "failed",
              message: "x is not there",
              startedAt: 1,
              durationMs: 2,
            },
          ],
          violations: [],
          passed: false,
        },
        { type: "task.rejected", v: 1, attempt: 1, failing: ["x is there"] },
        { type: "task.paused", v: 1, cause: "budget", message: "100 of 100 tokens" },
      ],
      { spec: { checks: [check] } },
    );
    const second = await store.happen([...begun, turnEnded, claimed]);
    const third = await store.happen([
      ...begun,
      { type: "task.stalled", v: 1, attempt: 1, episode: 1, message: "sleep hangs", quietMs: 95_000, culprits: [] },
      { type: "task.failed", v: 1, attempt: 1, class: "turn", failure: { code: "turn.timeout", message: "too long" } },
    ]);
    const seen = await eventually("all names", () => {
      const found = names(receiver.received);
      return found.includes("TASK_FAILED") ? found : undefined;
    });
    const withoutVerified = NOTIFICATION_NAMES.filter((name) => name !== "TASK_VERIFIED");
    expect([...new Set(seen)].toSorted()).toEqual([...withoutVerified].toSorted());

    const all = receiver.received.map(({ body }) => JSON.parse(body));
    const find = (event: string, taskId: string) => all.find((one) => one.event === event && one.task_id === taskId);
    expect(find("TASK_STARTED", id)).toEqual({
      schema_version: "1.0",
      event: "TASK_STARTED",
      task_id: id,
      task_name: "fix the test",
      timestamp: expect.any(Number),
      timestamp_iso: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
      store_version: expect.any(Number),
      data: {
        status: "running",
        session_id: "thread-1",
        thread_id: "thread-1",
        attempt: 1,
        folder: "/tmp/work",
        summary: "attempt 1 begins",
        active_session_id: "thread-1",
        recent_activity: [],
      },
    });
    expect(find("TASK_CREATED", id).data).toMatchObject({ workspace: "/tmp/work", spec: { goal: "make it pass" } });
    expect(find("PERMISSION_WAITING", id).data).toMatchObject({
      status: "waiting",
      summary: "wants to run make (+1 more)",
    });
    expect(find("VERIFY_FAILED", id).data).toMatchObject({
      failing: [{ name: "x is there", message: "x is not there" }],
    });
    expect(find("BUDGET_PAUSED", id).data).toMatchObject({ status: "paused", summary: "100 of 100 tokens" });
    expect(find("BUDGET_WARNING", id).data).toMatchObject({ what: "tokens", spent: 80, limit: 100 });
    expect(find("LOG_LINE", id).data).toMatchObject({ error: "cut off" });
    // Only said: the end of a task without checks, and it says so.
    expect(find("TASK_COMPLETED", second).data).toMatchObject({ status: "claimed", verified: false, progress: 0 });
    expect(find("TASK_FAILED", third).data).toMatchObject({
      status: "failed",
      error: "too long",
      code: "turn.timeout",
    });
  });

  test("only what the checks say is notices as verified, and as done", async () => {
    await using store = await openTestStore();
    await using receiver = await openReceiver();
    await using _notifier = await open(store, [
      hook(receiver.url, { events: readNames("TASK_VERIFIED TASK_COMPLETED") }),
    ]);
    const result = {
      name: "x",
      kind: "file-exists",
      outcome: "passed",
      message: "",
      startedAt: 1,
      durationMs: 2,
    } as const;
    const proven: readonly TaskEventBody[] = [
      { type: "task.checked", v: 1, attempt: 1, round: 1, results: [result], violations: [], passed: true },
      { type: "task.verified", v: 1, attempt: 1 },
    ];
    const spec = { checks: [{ kind: "file-exists" as const, path: "x" }] };
    await store.happen([...begun, turnEnded, claimed, ...proven], { spec });
    await eventually("both", () => receiver.received[1]);
    const notices = receiver.received
      .map(({ body }) => JSON.parse(body))
      .map(({ event, data }) => ({ event, ...data }));
    const ending = { status: "verified", verified: true, summary: "all done" };
    expect(notices).toMatchObject([
      { event: "TASK_COMPLETED", ...ending, progress: 1 },
      { event: "TASK_VERIFIED", ...ending },
    ]);
  });

  test("D12: a stall says how long it has lasted", async () => {
    await using store = await openTestStore();
    await using receiver = await openReceiver();
    await using _notifier = await open(store, [hook(receiver.url, { events: readNames("SESSION_STALE_BUSY") })]);
    await store.happen([
      ...begun,
      { type: "task.stalled", v: 1, attempt: 1, episode: 1, message: "sleep hangs", quietMs: 95_000, culprits: [] },
    ]);
    const one = await eventually("the alert", () => receiver.received[0]);
    expect(JSON.parse(one.body).data).toMatchObject({
      session_id: "thread-1",
      title: "fix the test",
      directory: "/tmp/work",
      stuck_for_seconds: 95,
    });
  });

  test("what the agent said last goes with it, and no more than was asked for", async () => {
    await using store = await openTestStore();
    await using receiver = await openReceiver();
    await using _notifier = await open(store, [hook(receiver.url, { events: readNames("TASK_CLAIMED") })]);
    const item = (text: string) => ({
      type: "item.completed" as const,
      v: 1 as const,
      turnId: "t",
      item: { type: "agentMessage" as const, id: text, text: text.padEnd(1_500, ".") },
    });
    const command = {
      type: "item.completed" as const,
      v: 1 as const,
      turnId: "t",
      item: {
        type: "commandExecution" as const,
        id: "i",
        callId: "c",
        command: `make ${"x".repeat(200)}`,
        cwd: "/",
        status: "completed" as const,
        output: "",
      },
    };
    const events = [item("one"), item("two"), command, item("three"), item("four")];
    await store.journal.append({ stream: "thread-1", author: "agent:x", events });
    await store.happen([...begun, turnEnded, claimed]);
    const one = await eventually("the claim", () => receiver.received[0]);
    const activity = JSON.parse(one.body).data.recent_activity;
    expect(activity.map(({ text }: { text: string }) => [text.slice(0, 5).replaceAll(".", ""), text.length])).toEqual([
      ["two", 1_000],
      ["three", 1_000],
      ["four", 1_000],
    ]);
    expect(activity[1].tools).toEqual([
      { tool: "shell", status: "completed", input_excerpt: `make ${"x".repeat(75)}` },
    ]);
  });

  test("82, 83, D13: filters take names and *, with commas, spaces and line ends between them", () => {
    expect([...readNames("TASK_FAILED, TASK_CREATED\ntask_claimed  LOG_LINE")]).toEqual([
      "TASK_FAILED",
      "TASK_CREATED",
      "TASK_CLAIMED",
      "LOG_LINE",
    ]);
    expect([...readNames("TASK_FAILED *")]).toEqual([...NOTIFICATION_NAMES]);
    expect(() => readNames("TASK_DONE")).toThrow(/"TASK_DONE" is not a notification; write \*/);
  });

  test("a task names the sinks it is notices to; others hear nothing of it", async () => {
    await using store = await openTestStore();
    await using one = await openReceiver();
    await using two = await openReceiver();
    const events = readNames("TASK_CREATED");
    await using _notifier = await open(store, [
      hook(one.url, { name: "one", events }),
      hook(two.url, { name: "two", events }),
    ]);
    const only = await store.happen([], { spec: { notify: ["two"] } });
    const all = await store.happen([]);
    await eventually("both", () => (two.received.length === 2 && one.received.length === 1 ? true : undefined));
    expect(one.received.map(({ body }) => JSON.parse(body).task_id)).toEqual([all]);
    expect(two.received.map(({ body }) => JSON.parse(body).task_id)).toEqual([only, all]);
  });
});
