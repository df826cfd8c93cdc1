/** Text without spaces as clients see it while it comes: soon, in pieces, and without a letter of a secret. */
import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { startModelServer } from "@heddle/models/testing";
import { expect, test } from "vitest";
import {
  at,
  KEY,
  pointAt,
  runTurn,
  serve,
  startThread,
  startTurn,
  text,
  type Wire,
} from "../../test/app-server-client.ts";
import { openWorld, run } from "../../test/heddle-process.ts";

const STREAMED: ReadonlySet<string> = new Set([
  "item/agentMessage/delta",
  "item/reasoning/summaryTextDelta",
  "item/commandExecution/outputDelta",
]);

function deltasOf(received: readonly Wire[], method = "item/agentMessage/delta"): readonly string[] {
  return received.flatMap((wire) => (wire.method === method ? [text(wire, "params.delta")] : []));
}

test.each([
  { name: "Chinese", unit: "這是一個沒有空格的回答。", held: 0 },
  { name: "Thai", unit: "ข้อความที่ไม่มีช่องว่าง", held: 0 },
  { name: "minified JSON", unit: '{"name":"value","list":[1,2,3],"deep":{"is":true}},', held: 16 },
  { name: "base64", unit: "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNk", held: 32 },
])("15.6: $name is streamed as it comes, all but $held characters before its end is known", async ({ unit, held }) => {
  await using world = await openWorld();
  const whole = unit.repeat(40);
  // The answer stops before its end: what is shown then waits for nothing that is still to come.
  await using model = await startModelServer({
    respond: () => ({ text: whole }),
    deltaChars: 6,
    faults: [{ kind: "stall", at: "after-last-delta" }],
  });
  await pointAt(world, model.url);
  await using served = serve([], { world, env: KEY });
  const { client } = served;
  await client.initialize();
  const threadId = await startThread(client);
  const turnId = await startTurn(client, threadId, "go");
  await client.waitFor(() => deltasOf(client.received).join("").length >= whole.length - held);
  const shown = deltasOf(client.received);
  expect(whole.startsWith(shown.join(""))).toBe(true);
  expect(shown.length).toBeGreaterThan((whole.length / 6) * 0.8);
  await client.call("turn/interrupt", { threadId, turnId });
  await client.note("turn/completed");
  expect(deltasOf(client.received).join("")).toBe(whole);
});

const TOKEN = `ghp_${"Q7x".repeat(12)}`;
const SECRETS = [KEY.MOCK_KEY, TOKEN, `sk-proj-${"a1B2c3D4".repeat(6)}`];
/** Nobody guesses the rest from so little. */
const MAX_SHOWN = 4;

/** What is found of a secret, but for a beginning or end that is as short as a word. */
function partsIn(seen: string): readonly string[] {
  return SECRETS.flatMap((secret) => {
    const length = Math.ceil(secret.length / 2);
    const starts = Array.from({ length: secret.length - length + 1 }, (_, start) =>
      secret.slice(start, start + length),
    );
    const parts = [...starts, secret.slice(0, MAX_SHOWN + 4), secret.slice(-MAX_SHOWN - 4)];
    return parts.filter((part) => seen.includes(part));
  });
}

test.each([1, 2, 3, 5, 7, 11, 64])(
  "15.6: a secret that comes in pieces of %i characters reaches no client, line or file",
  async (deltaChars) => {
    await using world = await openWorld();
    const said = SECRETS.map((secret) => `{"鍵":"${secret}","値":[1,2]},這是${secret}。`).join("");
    const told = `${said}${"沒有空格".repeat(30)}`;
    await world.file("workspace/said.txt", SECRETS.join(" "));
    const slowly = `i=0; while [ $i -lt ${SECRETS.join(" ").length} ]; do tail -c +$((i + 1)) said.txt | head -c 11; sleep 0.03; i=$((i + 11)); done`;
    const calls = [{ tool: "exec_command", args: { cmd: `${slowly}; echo; echo over` } }];
    const respond = ({ answers }: { readonly answers: number }) =>
      answers === 0 ? { reasoning: told, text: told, calls } : { text: told };
    await using model = await startModelServer({ respond, deltaChars });
    await pointAt(world, model.url);
    const turn = { approvalPolicy: "never", sandbox: "workspace-write" };
    let received: readonly Wire[];
    {
      await using served = serve([], { world, env: KEY });
      const { client } = served;
      await client.initialize();
      const threadId = await startThread(client, turn);
      ({ received } = await runTurn(client, threadId, "go"));
      const read = await client.call("thread/read", { threadId, includeTurns: true });
      expect(partsIn(JSON.stringify(read))).toEqual([]);
    }
    // Joined as a client joins them, and each message by itself.
    for (const method of STREAMED) {
      const streamed = deltasOf(received, method);
      expect(streamed.length).toBeGreaterThan(0);
      expect(partsIn(streamed.join(""))).toEqual([]);
    }
    expect(partsIn(JSON.stringify(received))).toEqual([]);
    const item = received.findLast(
      (wire) => wire.method === "item/completed" && at(wire, "params.item.type") === "agentMessage",
    );
    expect(deltasOf(received).join("")).toBe(`${text(item, "params.item.text")}`.repeat(2));
    expect(text(item, "params.item.text")).toContain("[redacted:");
    expect(text(item, "params.item.text")).toContain("沒有空格".repeat(30));
    const lines = await run(["exec", "--json", "--sandbox", "workspace-write", "go"], { world, env: KEY });
    expect(lines.code).toBe(0);
    expect(partsIn(`${lines.stdout}${lines.stderr}`)).toEqual([]);
    for (const file of await readdir(world.home, { recursive: true, withFileTypes: true })) {
      if (!file.isFile()) continue;
      const stored = await readFile(path.join(file.parentPath, file.name), "latin1");
      expect(partsIn(stored), file.name).toEqual([]);
    }
  },
);
