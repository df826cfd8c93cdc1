import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { join } from "node:path";
import { expect, inject, test } from "vitest";

const CHILD = join(inject("children"), "sse-server-in-child.mjs");
const CLIENTS = 200;
const EVENTS = 4_000;

interface ServedThread {
  readonly url: string;
  readonly token: string;
  readonly threadId: string;
}

async function nextMessage<T>(child: ChildProcess): Promise<T> {
  const [message] = (await once(child, "message")) as [T];
  return message;
}

interface Reading {
  readonly caughtUp: Promise<void>;
  readonly done: Promise<void>;
}

/** As cheap a client as there is: it looks for the last id in what comes. */
function reader({ url, token, threadId }: ServedThread, last: number, onText?: (text: string) => void): Reading {
  const [caughtUp, done] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const { host, hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname, () => {
    const where = `/api/threads/${threadId}/events`;
    socket.write(`GET ${where} HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer ${token}\r\n\r\n`);
  });
  let tail = "";
  socket.setEncoding("latin1").on("data", (text: string) => {
    onText?.(text);
    tail = tail.slice(-200) + text;
    if (tail.includes("event: caughtUp")) caughtUp.resolve();
    // The end of the frame too.
    if (!tail.includes(`id: ${last}\n`) || !tail.endsWith("\n\n")) return;
    done.resolve();
    socket.destroy();
  });
  socket.on("error", (error) => done.reject(error));
  return { caughtUp: caughtUp.promise, done: done.promise };
}

async function withServer(work: (child: ChildProcess, served: ServedThread) => Promise<void>): Promise<void> {
  const child = fork(CHILD);
  try {
    await work(child, await nextMessage<ServedThread>(child));
  } finally {
    child.disconnect();
    await once(child, "exit");
  }
}

test.each([
  { name: "one at a time", batch: 1 },
  { name: "twenty in one go", batch: 20 },
])("a hundred thousand frames a CPU second reach 200 clients: events come $name", async ({ batch }) => {
  await withServer(async (child, served) => {
    const readers = Array.from({ length: CLIENTS }, () => reader(served, EVENTS + 1));
    await Promise.all(readers.map(({ caughtUp }) => caughtUp));
    child.send({ events: EVENTS, batch, everyMs: 0 });
    await Promise.all(readers.map(({ done }) => done));
    child.send("cpu");
    const { cpuMs } = await nextMessage<{ readonly cpuMs: number }>(child);
    // Storing the events is in it, as it is for every server.
    expect((EVENTS * CLIENTS) / (cpuMs / 1_000)).toBeGreaterThan(100_000);
  });
});

test("F13: 250 clients get every one of 1,000 events a second, within a quarter of a second", async () => {
  await withServer(async (child, served) => {
    const events = 2_000;
    const late: number[] = [];
    const seen = Array.from({ length: 250 }, () => ({ text: "" }));
    const readers = seen.map((mine) =>
      reader(served, events + 1, (text) => {
        mine.text += text;
        const [, at] = /"at":(\d+)/.exec(text) ?? [];
        if (at !== undefined) late.push(Date.now() - Number(at));
      }),
    );
    await Promise.all(readers.map(({ caughtUp }) => caughtUp));
    late.length = 0;
    child.send({ events, batch: 10, everyMs: 10 });
    await Promise.all(readers.map(({ done }) => done));
    const dense = Array.from({ length: events + 1 }, (_, at) => `id: ${at + 1}`).join();
    for (const { text } of seen) expect(text.match(/^id: \d+$/gm)?.join() === dense).toBe(true);
    const sorted = late.toSorted((a, b) => a - b);
    expect(sorted[Math.floor(sorted.length * 0.95)]).toBeLessThan(250);
  });
});
