import { createHmac } from "node:crypto";
import { describe, expect, test } from "vitest";
import { hook, open } from "../../test/notifier.ts";
import { openReceiver } from "../../test/receiver.ts";
import { allEvents, eventually, openTestStore } from "../../test/test-store.ts";
import { waitMs } from "./delivery.ts";
import { readNames } from "./names.ts";
import { redeliver } from "./sink.ts";
import type { Outgoing, SendResult, Sink } from "./sink.ts";
import { judge } from "./signature.ts";

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
    await using _notifier = await open(store, [sink]);
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
    await using _notifier = await open(store, [hook(receiver.url, { events: readNames("TASK_CREATED") })], {
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
      { signal: AbortSignal.timeout(60_000) },
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
    await using _notifier = await open(store, [sink], { firstWaitMs: 1 });
    const start = performance.now();
    await store.happen([]);
    await eventually("the second request", () => receiver.received[1]);
    expect(performance.now() - start).toBeGreaterThan(950);
  });

  test("what is gone (410) is dead at once, and the next one is delivered", async () => {
    await using store = await openTestStore();
    await using receiver = await openReceiver((_, count) => ({ status: count === 1 ? 410 : 200 }));
    await using _notifier = await open(store, [hook(receiver.url, { events: readNames("TASK_CREATED") })]);
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
    await using _notifier = await open(store, [hook(receiver.url, { events: readNames("TASK_CREATED") })]);
    await store.happen([]);
    const [dead] = await eventually("a dead letter", async () => {
      const found = await store.journal.notifications.page({ state: "dead", limit: 10 });
      return found.length > 0 ? found : undefined;
    });
    await redeliver(store.journal, { id: dead?.id ?? "", by: "user:owner" });
    const row = await eventually("delivery", async () => {
      const found = await store.journal.notifications.get(dead?.id ?? "");
      return found?.state === "delivered" ? found : undefined;
    });
    expect(row.message).toBe("answered 200");
    expect(receiver.received.map(({ headers }) => headers["x-heddle-delivery"])).toEqual([dead?.id, dead?.id]);
    await expect(redeliver(store.journal, { id: "ntf_nothing", by: "user:owner" })).rejects.toMatchObject({
      code: "usage.invalid",
    });
  });

  test("one that never arrives holds up the others for three tries, not for ever", async () => {
    await using store = await openTestStore();
    const sink = memorySink(({ payload }) =>
      payload["task_name"] === "bad" ? { kind: "retry", message: "not this one" } : delivered,
    );
    const order = (): readonly unknown[] => sink.sent.map(({ payload }) => payload["task_name"]);
    await using _notifier = await open(store, [sink], { firstWaitMs: 5 });
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
    await using _notifier = await open(store, [
      hook(slow.url, { name: "slow", events, timeoutMs: 300_000 }),
      hook(fast.url, { name: "fast", events }),
    ]);
    for (let n = 0; n < 50; n += 1) await store.happen([]);
    await eventually("the fast one", () => (fast.received.length === 50 ? true : undefined));
    // Its first delivery has neither ended nor been given up meanwhile.
    expect(slow.received).toHaveLength(1);
  });

  test("a receiver that is down is asked once in a while, and gets everything in order when it is back", async () => {
    await using store = await openTestStore();
    const closed = await openReceiver();
    await closed[Symbol.asyncDispose]();
    const sink = hook(closed.url, { events: readNames("TASK_CREATED") });
    await using _notifier = await open(store, [sink], { firstWaitMs: 10 });
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
    // At most those that were passed by while nobody answered are out of order.
    expect(got.filter((id) => ids.indexOf(id) > 2)).toEqual(ids.filter((_, index) => index > 2));
  });
});

describe("what a restart finds", () => {
  test("a new sink begins now, and one that was away is notices what it missed, once", async () => {
    await using store = await openTestStore();
    await store.happen([]);
    await using receiver = await openReceiver();
    const sink = hook(receiver.url, { events: readNames("TASK_CREATED") });
    const first = await open(store, [sink]);
    await first[Symbol.asyncDispose]();
    const missed = await store.happen([]);
    const second = await open(store, [sink]);
    await eventually("what was missed", () => receiver.received[0]);
    await second[Symbol.asyncDispose]();
    const last = await store.happen([]);
    await using _third = await open(store, [sink]);
    await eventually("the last", () => receiver.received[1]);
    expect(receiver.received.map(({ body }) => JSON.parse(body).task_id)).toEqual([missed, last]);
  });

  test("what is stored when it is closed is still notices, a receiver that hangs is not waited for", async () => {
    await using store = await openTestStore();
    await using receiver = await openReceiver();
    await using hanging = await openReceiver(() => ({ status: 200, hangs: true }));
    const events = readNames("TASK_CREATED");
    const notifier = await open(store, [
      hook(receiver.url, { events }),
      hook(hanging.url, { events, name: "hangs", timeoutMs: 60_000 }),
    ]);
    for (let n = 0; n < 20; n += 1) await store.happen([]);
    const start = performance.now();
    await notifier[Symbol.asyncDispose]();
    expect(performance.now() - start).toBeLessThan(5_000);
    expect(receiver.received).toHaveLength(20);
    const waiting = await store.journal.notifications.page({ sink: "hangs", state: "queued", limit: 100 });
    expect(waiting).toHaveLength(20);
  });

  test("a clock that was a day ahead holds nothing up", async () => {
    await using store = await openTestStore();
    const sink = memorySink((_, tries) => (tries === 1 ? { kind: "retry", message: "later" } : delivered));
    let ahead = 86_400_000;
    const clock = { now: () => Date.now() + ahead, firstWaitMs: 300 };
    await using _notifier = await open(store, [sink], clock);
    ahead = 0;
    await store.happen([]);
    await eventually("the first try", () => sink.sent[0]);
    ahead = -86_400_000;
    await eventually("the second try", () => sink.sent[1]);
  });

  test("events that no sink wants are not read again after a restart", async () => {
    await using store = await openTestStore();
    const sink = memorySink(() => delivered);
    const first = await open(store, [sink]);
    const noise = Array.from({ length: 500 }, (_, n) => ({
      type: "thread.named" as const,
      v: 1 as const,
      name: `name ${n}`,
    }));
    for (let n = 0; n < 5; n += 1) await store.journal.append({ stream: "noise", author: "user:owner", events: noise });
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
    const first = await open(store, [one]);
    await store.happen([]);
    await eventually("the first", () => one.sent[0]);
    await using _second = await open(store, [two]);
    await store.happen([]);
    await eventually("the first again", () => one.sent[1]);
    expect(two.sent).toEqual([]);
    await first[Symbol.asyncDispose]();
    await store.happen([]);
    await eventually("the second", () => two.sent[0]);
    expect(one.sent).toHaveLength(2);
    // The other looks every five seconds.
  }, 60_000);
});
