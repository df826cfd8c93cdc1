/** S36: a secret that an agent comes across is told to no client, by whatever door it listens. */
import { randomBytes } from "node:crypto";
import { get } from "node:http";
import path from "node:path";
import { startModelServer } from "@heddle/models/testing";
import { expect, test } from "vitest";
import { at, command, connectTo, pointAt } from "../../test/app-server-client.ts";
import { openWorld } from "../../test/heddle-process.ts";
import { isTurnEnd, newThread, startServe, type Served } from "../../test/serve-client.ts";

const TOKEN = `ghp_${randomBytes(18).toString("hex")}`;
const [first, second] = [TOKEN.slice(0, 20), TOKEN.slice(20)];

/** Everything that comes, deltas included, as it comes. */
function listen({ url, token }: Served, threadId: string): { text: string } {
  const received = { text: "" };
  const where = `${url}/api/threads/${threadId}/events?deltas=true`;
  get(where, { agent: false, headers: { authorization: `Bearer ${token}` } }, (response) => {
    response.setEncoding("utf8").on("data", (part: string) => {
      received.text += part;
    });
    response.on("error", () => undefined);
  }).on("error", () => undefined);
  return received;
}

/** The deltas of a stream put together again: a secret in two pieces is a secret. */
function joined(pieces: readonly unknown[]): string {
  return pieces.map(String).join("");
}

test("S36: a token in the output of a command, in the words of the model and in the prompt reaches no stream of any door", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({
    script: [
      { calls: [command(`printf ${first}; sleep 0.2; printf '%s\\n' ${second}`)] },
      { text: `the token is ${TOKEN}, take care of it` },
    ],
    deltaChars: 7,
  });
  await pointAt(world, model.url);
  await using served = await startServe(world);
  const socket = path.join(world.home, "serve.sock");
  const threadId = await newThread(served);
  const received = listen(served, threadId);
  using codex = await connectTo(socket);
  await codex.client.initialize();
  await codex.client.call("thread/resume", { threadId });
  using chat = await connectTo(socket);
  await chat.client.call("events.subscribe", { topic: "*" });
  await served.call("POST", `/api/threads/${threadId}/turns`, { input: `what is ${TOKEN}?` });
  const events = await served.events(threadId, isTurnEnd);
  await codex.client.note("turn/completed");
  await chat.client.note("chat.turn.completed");
  await expect.poll(() => received.text).toContain('"turn.completed"');
  // The model was told, so there was something to give away.
  expect(JSON.stringify(model.requests.at(-1)?.body)).toContain(second);
  expect(JSON.stringify(events)).toContain("[redacted:github-token]");
  for (const e of events)
    if (JSON.stringify(e).includes(TOKEN)) console.log("LEAK", e.body.type, JSON.stringify(e.body).slice(0, 400));
  const deltasOf = (wires: readonly unknown[]): string => joined(wires.map((wire) => at(wire, "params.delta") ?? ""));
  const streams = {
    stored: JSON.stringify(events),
    sse: received.text,
    "sse deltas": joined([...received.text.matchAll(/"delta":"((?:[^"\\]|\\.)*)"/g)].map(([, delta]) => delta)),
    codex: JSON.stringify(codex.client.received),
    "codex deltas": deltasOf(codex.client.received),
    chat: JSON.stringify(chat.client.received),
    "chat deltas": deltasOf(chat.client.received),
  };
  for (const [name, text] of Object.entries(streams)) {
    expect([name, text.length > 0, text.includes(TOKEN)]).toEqual([name, true, false]);
  }
});
