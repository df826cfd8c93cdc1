import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const CHILD = fileURLToPath(new URL("../../../test/sse-server-in-child.ts", import.meta.url));
const CLIENTS = 200;
const EVENTS = 4_000;

interface Place {
  readonly url: string;
  readonly token: string;
  readonly threadId: string;
}

async function heard<T>(child: ChildProcess): Promise<T> {
  const [message] = (await once(child, "message")) as [T];
  return message;
}

/** As cheap a client as there is: it looks for the last id in what comes. */
function reader({ url, token, threadId }: Place): { readonly caughtUp: Promise<void>; readonly done: Promise<void> } {
  const [caughtUp, done] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const { host, hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname, () => {
    const where = `/api/threads/${threadId}/events`;
    socket.write(`GET ${where} HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer ${token}\r\n\r\n`);
  });
  let tail = "";
  socket.setEncoding("latin1").on("data", (text: string) => {
    tail = tail.slice(-200) + text;
    if (tail.includes("event: caughtUp")) caughtUp.resolve();
    if (!tail.includes(`id: ${EVENTS + 1}\n`)) return;
    done.resolve();
    socket.destroy();
  });
  socket.on("error", (error) => done.reject(error));
  return { caughtUp: caughtUp.promise, done: done.promise };
}

test.each([
  { name: "one at a time", batch: 1 },
  { name: "twenty in one go", batch: 20 },
])("a hundred thousand frames a CPU second reach 200 clients: events come $name", async ({ batch }) => {
  const child = fork(CHILD, { execArgv: ["--conditions=heddle-source"] });
  try {
    const place = await heard<Place>(child);
    const readers = Array.from({ length: CLIENTS }, () => reader(place));
    await Promise.all(readers.map(({ caughtUp }) => caughtUp));
    child.send({ events: EVENTS, batch });
    await Promise.all(readers.map(({ done }) => done));
    child.send("cpu");
    const { cpuMs } = await heard<{ readonly cpuMs: number }>(child);
    // Storing the events is in it, as it is for every server.
    expect((EVENTS * CLIENTS) / (cpuMs / 1_000)).toBeGreaterThan(100_000);
  } finally {
    child.disconnect();
    await once(child, "exit");
  }
});
