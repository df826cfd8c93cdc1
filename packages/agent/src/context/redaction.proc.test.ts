import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { startModelServer } from "@heddle/models/testing";
import type { EventBody, StoredEvent } from "@heddle/protocol";
import { expect, test } from "vitest";
import { openTestHeddle } from "../../test/test-heddle.ts";

const TOKEN = `ghp_${"Q7x".repeat(12)}`;
const MARK = "[redacted:github-token]";
const KEY = "known-key-0123456789";

const sh = (cmd: string): { tool: string; args: { cmd: string } } => ({ tool: "exec_command", args: { cmd } });
const bodies = (events: readonly StoredEvent[]): EventBody[] => events.map(({ body }) => body);

const holdsSecret = (text: string): boolean =>
  [TOKEN, KEY, Buffer.from(KEY).toString("base64").slice(0, 20)].some((secret) => text.includes(secret));

/** What a request carries besides its settings, as text. */
function inputOf(body: unknown): readonly string[] {
  if (typeof body !== "object" || body === null || !("input" in body) || !Array.isArray(body.input)) return [];
  return body.input.map((part) => JSON.stringify(part));
}

test("12.12: request, record, live text and file of a running turn say the same, and so does a resumed thread", async () => {
  await using server = await startModelServer({
    script: [
      // The model itself repeats a token, in words and in a call.
      { text: `I use ${TOKEN} now`, calls: [sh(`printf '%s\\n' ${TOKEN}; cat out.txt`)] },
      { calls: [sh("cat .env")] },
      { text: `it was ${TOKEN}` },
      { text: "again" },
    ],
  });
  const provider = server.provider("openai-responses", { id: "scripted", key: KEY });
  const options = { providers: [provider] };
  await using t = await openTestHeddle(options);
  const line = `export KEY=${Buffer.from(KEY).toString("base64")} \u001B[31m${TOKEN}\u001B[0m`;
  await writeFile(join(t.workspace, "out.txt"), `${line}\n`.repeat(1200));
  await writeFile(join(t.workspace, ".env"), `TOKEN=${TOKEN}\nKEY=${KEY}\n`);
  const threadId = await t.heddle.as("user:owner").createThread({ workspace: t.workspace, origin: "test" });
  const live = new Map<string, string>();
  using _listener = t.heddle.onDelta(threadId, ({ itemId, delta }) => {
    live.set(itemId, (live.get(itemId) ?? "") + delta);
  });
  expect((await (await t.start("go", { thread: threadId })).done).body.status).toBe("completed");

  const stored = bodies(await t.events(threadId));
  const told = stored.flatMap((body) => (body.type === "tool.settled" ? body.output : []));
  const [, second, third] = server.requests.map(({ body }) => inputOf(body));
  for (const part of told) {
    const text = part.type === "text" ? part.text : "";
    expect(text).toMatch(/\[redacted:/);
    expect(third?.join("\n")).toContain(JSON.stringify(text).slice(1, -1));
  }
  expect(second?.join("\n")).toContain(`I use ${MARK} now`);
  expect(server.requests.map(({ body }) => holdsSecret(JSON.stringify(body)))).not.toContain(true);
  for (const item of stored.flatMap((body) => (body.type === "item.completed" ? [body.item] : []))) {
    if (item.type === "agentMessage") expect(live.get(item.id)).toBe(item.text);
    if (item.type !== "commandExecution") continue;
    expect(holdsSecret(live.get(item.id) ?? "")).toBe(false);
    if (item.truncatedBytes === undefined) expect(live.get(item.id)).toBe(item.output);
    if (item.outputBlob === undefined) continue;
    const whole = await readFile(join(t.home, "blobs", item.outputBlob), "utf8");
    expect(whole.startsWith(item.output.slice(0, 10_000))).toBe(true);
    expect(whole.endsWith(item.output.slice(-10_000))).toBe(true);
    expect(holdsSecret(whole)).toBe(false);
  }
  await t.heddle[Symbol.asyncDispose]();

  await using resumed = await openTestHeddle({ ...options, folder: t.folder });
  await (
    await resumed.start("more", { thread: threadId })
  ).done;
  const [before, after] = [server.requests.at(-2), server.requests.at(-1)].map((request) => inputOf(request?.body));
  expect(after?.slice(0, before?.length)).toEqual(before);
});

test("12.12: a program that waits for an answer is shown what it asks, without a line end", async () => {
  await using t = await openTestHeddle({
    script: [
      {
        calls: [
          { tool: "exec_command", args: { cmd: "printf 'Continue?[y/n]'; read x; echo got-$x", yield_time_ms: 500 } },
        ],
      },
      { text: "done" },
    ],
  });
  const turn = await t.start("go");
  await turn.done;
  const told = bodies(await t.events(turn.threadId)).flatMap((body) =>
    body.type === "tool.settled" ? body.output : [],
  );
  expect(JSON.stringify(told)).toContain("Continue?[y/n]");
});

test("12.12: a secret that a running command has written half of when somebody looks is in no file, record or request", async () => {
  const halves = (secret: string, cut: number): string =>
    `printf '%s' '${secret.slice(0, cut)}'; read x; printf '%s\\n' '${secret.slice(cut)}'; `;
  const look = { tool: "write_stdin", args: { session_id: 1000, chars: "\n", yield_time_ms: 500 } };
  const cmd = `${halves(KEY, 7)}${halves(TOKEN, 1)}seq 1 20000`;
  await using server = await startModelServer({
    script: [
      { calls: [{ tool: "exec_command", args: { cmd, tty: true, yield_time_ms: 500 } }] },
      { calls: [look] },
      { calls: [{ ...look, args: { ...look.args, yield_time_ms: 20_000 } }] },
      { text: "done" },
    ],
  });
  await using t = await openTestHeddle({
    providers: [server.provider("openai-responses", { id: "scripted", key: KEY })],
  });
  const live: string[] = [];
  const threadId = await t.heddle.as("user:owner").createThread({ workspace: t.workspace, origin: "test" });
  using _listener = t.heddle.onDelta(threadId, ({ delta }) => void live.push(delta));
  await (
    await t.start("go", { thread: threadId })
  ).done;
  const items = bodies(await t.events(threadId)).flatMap((body) =>
    body.type === "item.completed" && body.item.type === "commandExecution" ? [body.item] : [],
  );
  const files = items.flatMap(({ outputBlob: name }) => (name === undefined ? [] : join(t.home, "blobs", name)));
  expect(files).not.toHaveLength(0);
  const said = [
    ...(await Promise.all(files.map((file) => readFile(file, "utf8")))),
    ...items.map(({ output }) => output),
  ];
  expect(said[0]).toMatch(/^\[redacted:known-secret\]\n\[redacted:github-token\]\n1\n/);
  for (const text of [...said, live.join(""), JSON.stringify(server.requests.at(-1)?.body)]) {
    const printed = text.replaceAll(/printf[^;]*;/g, "");
    expect(printed).toContain("[redacted:known-secret]");
    for (const part of [KEY.slice(7), KEY.slice(0, 7), TOKEN.slice(1, 21)]) expect(printed).not.toContain(part);
  }
});

test.each(["這是一個沒有空格的回答", '{"name":"value","list":[1,2,3]},'])(
  "text without spaces is streamed as it comes, and a key in it is not: %s",
  async (unit) => {
    const text = `${unit.repeat(20)}「${KEY}」${unit.repeat(5)}`;
    const deltaChars = 6;
    await using server = await startModelServer({ script: [{ text }], deltaChars });
    await using t = await openTestHeddle({
      providers: [server.provider("openai-responses", { id: "scripted", key: KEY })],
    });
    const live: string[] = [];
    const threadId = await t.heddle.as("user:owner").createThread({ workspace: t.workspace, origin: "test" });
    using _listener = t.heddle.onDelta(threadId, ({ delta }) => void live.push(delta));
    const turn = await t.start("go", { thread: threadId });
    await turn.done;
    expect(live.join("")).toBe(text.replace(KEY, "[redacted:known-secret]"));
    expect(live.length).toBeGreaterThan((text.length / deltaChars) * 0.8);
  },
);
