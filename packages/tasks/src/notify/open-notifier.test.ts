import { createHmac } from "node:crypto";
import { describe, expect, test } from "vitest";
import { NO_USAGE, type TaskEventBody } from "@heddle/protocol";
import { openReceiver } from "../../test/receiver.ts";
import { allEvents, eventually, openTestStore, type TestStore } from "../../test/test-store.ts";
import { waitMs } from "./delivery.ts";
import { NOTIFICATION_NAMES, readNames } from "./names.ts";
import { openNotifier } from "./open-notifier.ts";
import { redeliver } from "./redeliver.ts";
import type { Outgoing, SendResult, Sink } from "./sink.ts";
import { judge } from "./signature.ts";
import { webhookSink, type WebhookOptions } from "./sinks/webhook.ts";

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

function hook(url: URL, options: Partial<WebhookOptions> = {}): Sink {
  return webhookSink({ name: "hook", kind: "webhook", url, events: readNames("*"), ...options });
}

function open(
  store: TestStore,
  sinks: readonly Sink[],
  options: { readonly firstWaitMs?: number } = {},
): AsyncDisposable {
  return openNotifier({ journal: store.journal, home: store.home, sinks, log: () => undefined, ...options });
}

/** A new sink begins now, so a test waits until it has begun. */
async function begin(
  store: TestStore,
  sinks: readonly Sink[],
  options: { readonly firstWaitMs?: number } = {},
): Promise<AsyncDisposable> {
  const notifier = open(store, sinks, options);
  for (const { name } of sinks) await eventually(`${name} begins`, () => store.journal.notifications.cursor(name));
  return notifier;
}

function memorySink(
  answer: (notification: Outgoing, tries: number) => SendResult,
): Sink & { readonly sent: Outgoing[] } {
  const sent: Outgoing[] = [];
  return {
    name: "memory",
    kind: "test",
    target: "here",
    events: readNames("TASK_CREATED"),
    secrets: [],
    sent,
    send(notification) {
      sent.push(notification);
      return Promise.resolve(answer(notification, sent.filter(({ id }) => id === notification.id).length));
    },
  };
}

const delivered: SendResult = { kind: "delivered", message: "ok" };
const names = (received: readonly { readonly body: string }[]): readonly string[] =>
  received.map(({ body }) => JSON.parse(body).event);

describe("what is told", () => {
  test("81, 88: every stored event has its names, with the payload OpenLoom's receivers know and more", async () => {
    await using store = await openTestStore();
    await using receiver = await openReceiver();
    await using _notifier = await begin(store, [hook(receiver.url)]);
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
      task_name: "mend the test",
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

  test("D12: a stall says how long it has lasted", async () => {
    await using store = await openTestStore();
    await using receiver = await openReceiver();
    await using _notifier = await begin(store, [hook(receiver.url, { events: readNames("SESSION_STALE_BUSY") })]);
    await store.happen([
      ...begun,
      { type: "task.stalled", v: 1, attempt: 1, episode: 1, message: "sleep hangs", quietMs: 95_000, culprits: [] },
    ]);
    const one = await eventually("the alert", () => receiver.received[0]);
    expect(JSON.parse(one.body).data).toMatchObject({
      session_id: "thread-1",
      title: "mend the test",
      directory: "/tmp/work",
      stuck_for_seconds: 95,
    });
  });

  test("what the agent said last goes with it, and no more than was asked for", async () => {
    await using store = await openTestStore();
    await using receiver = await openReceiver();
    await using _notifier = await begin(store, [hook(receiver.url, { events: readNames("TASK_CLAIMED") })]);
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
    expect(() => readNames("TASK_DONE")).toThrow(/"TASK_DONE" is no notification; write \*/);
  });

  test("a task names the sinks it is told to; others hear nothing of it", async () => {
    await using store = await openTestStore();
    await using one = await openReceiver();
    await using two = await openReceiver();
    const events = readNames("TASK_CREATED");
    await using _notifier = await begin(store, [
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

describe("how it gets there", () => {
  test("84: the event, the id and a signature with its time are in the headers", async () => {
    await using store = await openTestStore();
    await using receiver = await openReceiver();
    const secret = "a secret of some length";
    const sink = hook(receiver.url, {
      events: readNames("TASK_CREATED"),
      secret,
      signsLikeOpenLoom: true,
      headers: { "x-team": "tools and more" },
    });
    await using _notifier = await begin(store, [sink]);
    await store.happen([]);
    const { headers, body } = await eventually("the request", () => receiver.received[0]);
    const signature = String(headers["x-heddle-signature"]);
    expect(headers).toMatchObject({
      "content-type": "application/json",
      "x-heddle-event": "TASK_CREATED",
      "x-openloom-event": "TASK_CREATED",
      "x-heddle-delivery": expect.stringMatching(/^ntf_\d{12}-[0-9a-f]{8}$/),
      "x-openloom-signature-256": `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`,
      "x-team": "tools and more",
    });
    expect(judge(signature, body, secret, Date.now())).toBe("good");
    expect(judge(signature, `${body} `, secret, Date.now())).toBe("bad");
    expect(judge(signature, body, "another", Date.now())).toBe("bad");
    expect(judge(signature, body, secret, Date.now() + 301_000)).toBe("old");
    expect(JSON.stringify(await allEvents(store.journal))).not.toContain(secret);
  });

  test("85, F41: a receiver that answers 500 is asked again, later each time, in order", async () => {
    await using store = await openTestStore();
    await using receiver = await openReceiver((_, count) => ({ status: count <= 2 ? 500 : 200 }));
    await using _notifier = await begin(store, [hook(receiver.url, { events: readNames("TASK_CREATED") })], {
      firstWaitMs: 5,
    });
    const first = await store.happen([]);
    const second = await store.happen([]);
    await eventually("four requests", () => (receiver.received.length >= 4 ? true : undefined));
    expect(receiver.received.map(({ body }) => JSON.parse(body).task_id)).toEqual([first, first, first, second]);
    expect(new Set(receiver.received.slice(0, 3).map(({ headers }) => headers["x-heddle-delivery"])).size).toBe(1);
    const tried = await eventually("all is stored", async () => {
      const events = await allEvents(store.journal);
      const found = events.flatMap(({ body }) => (body.type === "notification.tried" ? [body] : []));
      return found.length === 4 ? found : undefined;
    });
    expect(tried.map(({ outcome, status }) => [outcome, status])).toEqual([
      ["retry", 500],
      ["retry", 500],
      ["delivered", 200],
      ["delivered", 200],
    ]);
  });

  test("85: waits are 1, 4, 16, 64 and 256 seconds, then ten minutes", () => {
    expect([1, 2, 3, 4, 5, 6, 7, 100].map((failures) => waitMs(failures))).toEqual([
      1_000, 4_000, 16_000, 64_000, 256_000, 600_000, 600_000, 600_000,
    ]);
  });

  test.for([
    { status: 400, outcome: "dead" },
    { status: 403, outcome: "dead" },
    { status: 404, outcome: "dead" },
    { status: 410, outcome: "dead" },
    { status: 302, outcome: "dead" },
    { status: 408, outcome: "retry" },
    { status: 429, outcome: "retry" },
    { status: 503, outcome: "retry" },
  ])("85: $status is $outcome", async ({ status, outcome }) => {
    await using receiver = await openReceiver(() => ({ status, headers: { location: "http://127.0.0.1:1/" } }));
    const result = await hook(receiver.url).send(
      { id: "ntf_1", event: "TASK_CREATED", payload: {} },
      { signal: AbortSignal.timeout(5_000) },
    );
    expect(result).toMatchObject({ kind: outcome, status });
    expect(receiver.received).toHaveLength(1);
  });

  test("429 is left alone for as long as it says", async () => {
    await using store = await openTestStore();
    await using receiver = await openReceiver((_, count) =>
      count === 1 ? { status: 429, headers: { "retry-after": "1" } } : { status: 200 },
    );
    const sink = hook(receiver.url, { events: readNames("TASK_CREATED") });
    await using _notifier = await begin(store, [sink], { firstWaitMs: 1 });
    const start = performance.now();
    await store.happen([]);
    await eventually("the second request", () => receiver.received[1]);
    expect(performance.now() - start).toBeGreaterThan(950);
  });

  test("what is gone (410) is dead at once, and the next one is delivered", async () => {
    await using store = await openTestStore();
    await using receiver = await openReceiver((_, count) => ({ status: count === 1 ? 410 : 200 }));
    await using _notifier = await begin(store, [hook(receiver.url, { events: readNames("TASK_CREATED") })]);
    await store.happen([]);
    await store.happen([]);
    const [dead] = await eventually("a dead letter", async () => {
      const found = await store.journal.notifications.page({ state: "dead", limit: 10 });
      return found.length > 0 && receiver.received.length === 2 ? found : undefined;
    });
    expect(dead).toMatchObject({ sink: "hook", event: "TASK_CREATED", tries: 1, message: "answered 410" });
  });

  test("86: a dead letter can be sent again", async () => {
    await using store = await openTestStore();
    await using receiver = await openReceiver((_, count) => ({ status: count === 1 ? 404 : 200 }));
    await using _notifier = await begin(store, [hook(receiver.url, { events: readNames("TASK_CREATED") })]);
    await store.happen([]);
    const [dead] = await eventually("a dead letter", async () => {
      const found = await store.journal.notifications.page({ state: "dead", limit: 10 });
      return found.length > 0 ? found : undefined;
    });
    await redeliver(store.journal, dead?.id ?? "");
    const row = await eventually("delivery", async () => {
      const found = await store.journal.notifications.get(dead?.id ?? "");
      return found?.state === "delivered" ? found : undefined;
    });
    expect(row.message).toBe("answered 200");
    expect(receiver.received.map(({ headers }) => headers["x-heddle-delivery"])).toEqual([dead?.id, dead?.id]);
    await expect(redeliver(store.journal, "ntf_nothing")).rejects.toMatchObject({ code: "usage.invalid" });
  });

  test("one that never arrives holds up the others for three tries, not for ever", async () => {
    await using store = await openTestStore();
    const sink = memorySink(({ payload }) =>
      payload["task_name"] === "bad" ? { kind: "retry", message: "not this one" } : delivered,
    );
    const order = (): readonly unknown[] => sink.sent.map(({ payload }) => payload["task_name"]);
    await using _notifier = await begin(store, [sink], { firstWaitMs: 5 });
    for (const name of ["bad", "second", "third"]) await store.happen([], { spec: { name } });
    await eventually("the others", () => order().includes("third") || undefined);
    expect(order().slice(0, 4)).toEqual(["bad", "bad", "bad", "second"]);
    // And it is still tried.
    await eventually("a later try", () => order().filter((name) => name === "bad").length > 3 || undefined);
  });

  test("D18: a receiver that never answers holds up nothing but itself", async () => {
    await using store = await openTestStore();
    await using slow = await openReceiver(() => ({ status: 200, hangs: true }));
    await using fast = await openReceiver();
    const events = readNames("TASK_CREATED");
    await using _notifier = await begin(store, [
      hook(slow.url, { name: "slow", events, timeoutMs: 60_000 }),
      hook(fast.url, { name: "fast", events }),
    ]);
    const start = performance.now();
    for (let n = 0; n < 50; n += 1) await store.happen([]);
    await eventually("the fast one", () => (fast.received.length === 50 ? true : undefined));
    expect(performance.now() - start).toBeLessThan(5_000);
    expect(slow.received).toHaveLength(1);
  });

  test("a receiver that is down is asked once in a while, and gets everything in order when it is back", async () => {
    await using store = await openTestStore();
    const closed = await openReceiver();
    await closed[Symbol.asyncDispose]();
    const sink = hook(closed.url, { events: readNames("TASK_CREATED") });
    await using _notifier = await begin(store, [sink], { firstWaitMs: 10 });
    const ids: string[] = [];
    for (let n = 0; n < 20; n += 1) ids.push(await store.happen([]));
    await eventually("some failures", async () => {
      const tried = (await allEvents(store.journal)).filter(({ body }) => body.type === "notification.tried");
      return tried.length >= 3 ? true : undefined;
    });
    const failed = (await allEvents(store.journal)).filter(({ body }) => body.type === "notification.tried").length;
    expect(failed).toBeLessThan(10);
    await using back = await openReceiver(undefined, closed.port);
    await eventually("everything", () => (back.received.length >= 20 ? true : undefined));
    const got = back.received.map(({ body }) => JSON.parse(body).task_id as string);
    expect(new Set(got)).toEqual(new Set(ids));
    // At most those that were passed by while nobody answered are out of their place.
    expect(got.filter((id) => ids.indexOf(id) > 2)).toEqual(ids.filter((_, index) => index > 2));
  });
});

describe("what a restart finds", () => {
  test("a new sink begins now, and one that was away is told what it missed, once", async () => {
    await using store = await openTestStore();
    await store.happen([]);
    await using receiver = await openReceiver();
    const sink = hook(receiver.url, { events: readNames("TASK_CREATED") });
    const first = await begin(store, [sink]);
    await first[Symbol.asyncDispose]();
    const missed = await store.happen([]);
    const second = open(store, [sink]);
    await eventually("what was missed", () => receiver.received[0]);
    await second[Symbol.asyncDispose]();
    const last = await store.happen([]);
    await using _third = open(store, [sink]);
    await eventually("the last", () => receiver.received[1]);
    expect(receiver.received.map(({ body }) => JSON.parse(body).task_id)).toEqual([missed, last]);
  });

  test("events that no sink wants are not read again after a restart", async () => {
    await using store = await openTestStore();
    const sink = memorySink(() => delivered);
    const first = await begin(store, [sink]);
    const noise = Array.from({ length: 500 }, (_, n) => ({
      type: "thread.named" as const,
      v: 1 as const,
      name: `name ${n}`,
    }));
    for (let n = 0; n < 5; n += 1) await store.journal.append({ stream: "noise", author: "user", events: noise });
    const head = await store.journal.position();
    // Stored on the way, so that even a kill reads no more than a thousand again.
    await eventually(
      "the mark",
      async () => ((await store.journal.notifications.cursor("memory")) ?? 0) > head - 1_000 || undefined,
    );
    await first[Symbol.asyncDispose]();
    expect(await store.journal.notifications.cursor("memory")).toBeGreaterThanOrEqual(head);
  });

  test("of two that notify for one home, one does; the other takes over when it is gone", async () => {
    await using store = await openTestStore();
    const one = memorySink(() => delivered);
    const two = memorySink(() => delivered);
    const first = await begin(store, [one]);
    await using _second = open(store, [two]);
    await store.happen([]);
    await eventually("the first", () => one.sent[0]);
    expect(two.sent).toEqual([]);
    await first[Symbol.asyncDispose]();
    await store.happen([]);
    await eventually("the second", () => two.sent[0]);
    expect(one.sent).toHaveLength(1);
  });
});
