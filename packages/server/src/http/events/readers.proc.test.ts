/** What clients cost that do not read, or do not stay: measured, so in a process of its own. */
import { once } from "node:events";
import { get, type IncomingMessage } from "node:http";
import { expect, test } from "vitest";
import { openHttpWorld, type HttpWorld } from "../../../test/http-world.ts";
import { follow } from "../../../test/sse-client.ts";

const eventsOf = ({ url }: HttpWorld, threadId: string): string => `${url}/api/threads/${threadId}/events`;

test("F14 G7: fifty readers that stop reading are closed, cost little and harm no other", async () => {
  await using world = await openHttpWorld({ stuckMs: 1_500, heartbeatMs: 100 });
  const threadId = await world.newThread();
  const stopped: Stopped[] = [];
  for (let count = 0; count < 50; count += 1) {
    const sent = get(eventsOf(world, threadId), {
      agent: false,
      headers: { authorization: `Bearer ${world.tokens.viewer}` },
    });
    const [response] = (await once(sent, "response")) as [IncomingMessage];
    const reader: Stopped = { response, isBroken: false };
    sent.on("error", () => (reader.isBroken = true));
    response.on("error", () => (reader.isBroken = true)).pause();
    stopped.push(reader);
  }
  using reading = await follow(eventsOf(world, threadId), world.tokens.viewer);
  await reading.waitFor(({ event }) => event === "caughtUp");
  const before = process.memoryUsage().rss;
  const events = 400;
  // Forty megabytes: far more than the kernel keeps for a connection.
  for (let count = 0; count < events; count += 1) await world.append(threadId, 1, 100_000);
  await reading.waitFor(({ id }) => id === events + 1);
  const told = reading.messages.flatMap(({ id }) => (id === undefined ? [] : [id]));
  expect(told).toEqual(Array.from({ length: events + 1 }, (_, at) => at + 1));
  const grown = process.memoryUsage().rss - before;
  expect(grown / 50).toBeLessThan(8 * 1024 * 1024);
  await expect.poll(() => world.door.followers, { timeout: 60_000 }).toBe(1);
  // Whoever begins to read again finds out where to go on, or a broken connection: never an end that looks like all.
  const ends = await Promise.all(stopped.map((reader) => readOut(reader)));
  for (const { text, isBroken } of ends) {
    expect(isBroken || text.includes("event: lagged")).toBe(true);
    expect(text.includes(`id: ${events + 1}\n`)).toBe(false);
  }
}, 40_000);

interface Stopped {
  readonly response: IncomingMessage;
  /** Node calls a response without a length complete when its connection is reset; only the error tells. */
  isBroken: boolean;
}

/** What had come when the server let go. */
async function readOut(reader: Stopped): Promise<{ readonly text: string; readonly isBroken: boolean }> {
  const { response } = reader;
  let text = "";
  response.setEncoding("utf8").on("data", (part: string) => {
    text += part;
  });
  response.resume();
  if (!response.closed) await once(response, "close");
  return { text, isBroken: reader.isBroken };
}

test("F15: a thousand clients that come and go leave nothing behind", async () => {
  await using world = await openHttpWorld();
  const threadId = await world.newThread();
  for (let round = 0; round < 20; round += 1) {
    const clients = await Promise.all(
      Array.from({ length: 50 }, () => follow(eventsOf(world, threadId), world.tokens.viewer)),
    );
    for (const client of clients) client[Symbol.dispose]();
  }
  const open = () => process.getActiveResourcesInfo().filter((name) => name === "TCPSocketWrap").length;
  await expect.poll(open, { timeout: 60_000 }).toBeLessThan(10);
});
