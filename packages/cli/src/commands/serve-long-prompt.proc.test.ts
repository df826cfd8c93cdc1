import { readFile } from "node:fs/promises";
import { get } from "node:http";
import path from "node:path";
import { startModelServer } from "@heddle/models/testing";
import { expect, test } from "vitest";
import { pointAt } from "../../test/app-server-client.ts";
import { openWorld } from "../../test/heddle-process.ts";
import { newThread, startServe, type Served } from "../../test/serve-client.ts";

const MAX_BODY_BYTES = 8 * 1024 * 1024;
/** Of processor time in one turn of the event loop: twice what the longest takes, a third of what it took in one piece. */
const MAX_TURN_MS = 200;

const CONTENTS: readonly (readonly [name: string, unit: string])[] = [
  ["plain words", "Plain words of a text, and a line of code: return found.length + 1;\n"],
  ["JSON in JSON", '{"a\\b":"c\\n\u0001\\"d"}\n'],
  ["other scripts", "Wörter, 漢字 und 😀 dazu. "],
  ["what looks like secrets", "authorization: bearer -eyJ sk-proj-a1b2c3d4e5f6g7h8 %41"],
];

test("12.11: a prompt of 8 MB, whatever is in it, lets a server serve others at every moment", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({ script: [{ text: "done" }] });
  await pointAt(world, model.url);
  const meter = path.join(world.root, "loop-meter");
  const preload = path.join(import.meta.dirname, "..", "..", "test", "loop-meter-in-child.ts");
  await using served = await startServe(world, { env: { NODE_OPTIONS: `--import=${preload}`, LOOP_METER: meter } });
  // What is loaded with the first turn is no part of it.
  await say(served, "go");
  for (const [name, unit] of CONTENTS) {
    const text = filled(unit);
    const begun = Date.now();
    expect([name, await say(served, text)]).toEqual([name, { status: 202, end: "completed" }]);
    expect(Math.max(0, ...(await turnsSince(meter, begun))), name).toBeLessThan(MAX_TURN_MS);
  }
}, 240_000);

/** Says it in a thread that somebody follows, while another client asks one thing after the other. */
async function say(served: Served, input: string) {
  const threadId = await newThread(served);
  using following = follow(served, threadId);
  let status: number | undefined;
  const said = served.call("POST", `/api/threads/${threadId}/turns`, { input }).then((called) => {
    status = called.status;
  });
  let end: unknown;
  while (end !== "completed" && end !== "failed") {
    expect((await served.call("GET", "/readyz")).status).toBe(200);
    end = (await served.call("GET", `/api/threads/${threadId}`)).json["lastTurnStatus"];
  }
  await said;
  expect(following.bytes()).toBeGreaterThan(input.length);
  return { status, end };
}

/** Events as bytes: whatever they say, reading them costs nothing here. */
function follow({ url, token }: Served, threadId: string): Disposable & { bytes(): number } {
  let bytes = 0;
  const headers = { authorization: `Bearer ${token}` };
  const sent = get(`${url}/api/threads/${threadId}/events`, { agent: false, headers }, (response) => {
    response.on("error", () => undefined).on("data", (part: Buffer) => (bytes += part.length));
  });
  sent.on("error", () => undefined);
  return { bytes: () => bytes, [Symbol.dispose]: () => void sent.destroy() };
}

async function turnsSince(file: string, begun: number): Promise<readonly number[]> {
  const lines = (await readFile(file, "utf8")).trim().split("\n");
  const turns = lines.map((line) => line.split(" ").map(Number));
  return turns.flatMap(([at = 0, ms = 0]) => (at >= begun ? [ms] : []));
}

/** As long as a body may be, with what is around it. */
function filled(unit: string): string {
  const bytes = Buffer.byteLength(JSON.stringify(unit)) - 2;
  return unit.repeat(Math.floor((MAX_BODY_BYTES - 1024) / bytes));
}
