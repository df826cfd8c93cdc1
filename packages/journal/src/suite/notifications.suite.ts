/** The queues of sinks: who comes next, how far each has read; rebuilt they are the same. */
import type { EventOf, NotificationEventBody } from "@heddle/protocol";
import { expect, test } from "vitest";
import type { Journal } from "../journal.ts";
import type { NewStore } from "./journal.suite.ts";

const TRIES = 2;

export function queued(n: number, sink = "a"): EventOf<"notification.queued"> {
  const payload = { task_id: `task_${n}` };
  return {
    type: "notification.queued",
    v: 1,
    notificationId: `ntf_${n}-${sink}`,
    sink,
    event: "TASK_CREATED",
    position: n,
    payload,
  };
}

export function tried(
  n: number,
  outcome: "delivered" | "retry" | "dead",
  nextAt?: number,
): EventOf<"notification.tried"> {
  const at = nextAt === undefined ? {} : { nextAt };
  return { type: "notification.tried", v: 1, notificationId: `ntf_${n}-a`, outcome, message: outcome, ...at };
}

async function answers(journal: Journal): Promise<unknown> {
  const { notifications } = journal;
  return {
    page: await notifications.page({ limit: 100 }),
    next: [await notifications.next("a", TRIES), await notifications.next("b", TRIES)],
    counts: await notifications.counts(),
    cursors: [await notifications.cursor("a"), await notifications.cursor("b"), await notifications.cursor("new")],
  };
}

export function notificationSuite(newStore: NewStore): void {
  test("the oldest that waits is next, those that failed often enough are apart, and every answer rebuilds equal", async () => {
    await using store = await newStore();
    let now = 1_000;
    await using journal = await store.open({ now: () => now });
    const say = (sink: string, ...events: NotificationEventBody[]) =>
      journal.append({ stream: `sink_${sink}`, author: "system", events });
    expect(await journal.notifications.cursor("a")).toBeUndefined();
    await say("a", { type: "notification.read", v: 1, sink: "a", position: 10 });
    await say("a", queued(11), queued(12), queued(13), queued(14));
    await say("b", queued(11, "b"));
    const next = async (): Promise<readonly (string | undefined)[]> => {
      const { head, late } = await journal.notifications.next("a", TRIES);
      return [head?.id, late?.id];
    };
    expect(await next()).toEqual(["ntf_11-a", undefined]);
    await say("a", tried(11, "retry", 5_000));
    expect(await next()).toEqual(["ntf_11-a", undefined]);
    await say("a", tried(11, "retry", 9_000));
    expect(await next()).toEqual(["ntf_12-a", "ntf_11-a"]);
    await say("a", tried(12, "delivered"), tried(13, "dead"), tried(14, "retry", 6_000), tried(14, "retry", 7_000));
    expect(await next()).toEqual([undefined, "ntf_14-a"]);
    expect(await journal.notifications.counts()).toEqual([
      { sink: "a", state: "dead", count: 1 },
      { sink: "a", state: "delivered", count: 1 },
      { sink: "a", state: "queued", count: 2 },
      { sink: "b", state: "queued", count: 1 },
    ]);
    // What was read never goes back, and silence is read too.
    await say("a", { type: "notification.read", v: 1, sink: "a", position: 500 });
    await say("a", { type: "notification.read", v: 1, sink: "a", position: 20 });
    expect(await journal.notifications.cursor("a")).toBe(500);
    now = 2_000;
    await say("a", { type: "notification.redelivered", v: 1, notificationId: "ntf_13-a" });
    expect(await journal.notifications.get("ntf_13-a")).toMatchObject({
      state: "queued",
      tries: 0,
      nextAt: 2_000,
      queuedAt: 2_000,
    });
    expect(await next()).toEqual(["ntf_13-a", "ntf_14-a"]);

    const before = await answers(journal);
    await journal.rebuildProjections();
    expect(await answers(journal)).toEqual(before);
  });

  test("a page goes on behind the last one, of one sink and one state", async () => {
    await using store = await newStore();
    await using journal = await store.open();
    const events = Array.from({ length: 5 }, (_, n) => queued(n + 1));
    await journal.append({
      stream: "sink_a",
      author: "system",
      events: [...events, tried(2, "dead"), tried(4, "dead")],
    });
    const ids = async (query: Parameters<typeof journal.notifications.page>[0]) =>
      (await journal.notifications.page(query)).map(({ id }) => id);
    expect(await ids({ sink: "a", limit: 2 })).toEqual(["ntf_5-a", "ntf_4-a"]);
    expect(await ids({ sink: "a", after: "ntf_4-a", limit: 2 })).toEqual(["ntf_3-a", "ntf_2-a"]);
    expect(await ids({ state: "dead", limit: 9 })).toEqual(["ntf_4-a", "ntf_2-a"]);
    expect(await ids({ taskId: "task_3", limit: 9 })).toEqual(["ntf_3-a"]);
    expect(await ids({ sink: "b", limit: 9 })).toEqual([]);
  });
}
