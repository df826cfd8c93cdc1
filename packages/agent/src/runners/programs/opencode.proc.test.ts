import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { Agent, get, request, type IncomingMessage } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { examine } from "@heddle/journal/verification";
import type { EventOf, EventType, StoredEvent } from "@heddle/protocol";
import { inspectProcess, readProcStat } from "@heddle/tools";
import { expect, inject, test } from "vitest";
import { playedOptions, playedSubject } from "../../../test/played-subject.ts";
import type { OpenCodeStep } from "../../../test/opencode-play-in-child.ts";
import { openTestHeddle } from "../../../test/test-heddle.ts";
import { runnerSuite } from "../runner.suite.ts";
import { joinTurn } from "./live-door.ts";
import { openCodeDialect } from "./opencode.ts";
import { readTakeover } from "./takeover.ts";

const children = inject("children");

runnerSuite(playedSubject("opencode", openCodeDialect.capabilities, children));

test("a conversation that OpenCode does not find is begun anew, with the past as text", async () => {
  await using first = await openTestHeddle(playedOptions("opencode", [{ says: "the answer is 42" }], children));
  const { threadId, done } = await first.start("say something");
  expect((await done).body).toMatchObject({ status: "completed" });
  const steps = [{ forgets: true }, { says: "again" }] as const;
  await using second = await openTestHeddle({ ...playedOptions("opencode", steps, children), folder: first.folder });
  const turn = await second.start("and again", { thread: threadId });
  expect((await turn.done).body).toMatchObject({ status: "completed" });
  const connected = ofType(await second.events(threadId), "agent.connected");
  expect(connected.map(({ origin }) => origin)).toEqual(["new", "retold"]);
});

test("a fork of a thread continues a copy, of which nothing is told again", async () => {
  await using t = await openTestHeddle(playedOptions("opencode", [{ says: "done" }], children));
  const first = await t.start("say something");
  expect((await first.done).body).toMatchObject({ status: "completed" });
  const threadId = await t.heddle.as("user:owner").forkThread({ threadId: first.threadId, origin: "test" });
  const turn = await t.start("and again", { thread: threadId });
  expect((await turn.done).body).toMatchObject({ status: "completed" });
  const events = await t.events(threadId);
  expect(ofType(events, "agent.connected").map(({ origin }) => origin)).toEqual(["forked"]);
  const messages = ofType(events, "item.completed").filter(({ item }) => item.type === "agentMessage");
  expect(messages.map(({ item }) => item)).toMatchObject([{ text: "done" }]);
});

test("its server is reached in a sandbox with listed hosts too", async () => {
  const options = playedOptions("opencode", [{ says: "done" }], children);
  const runners = { opencode: { ...options.runners?.["opencode"], hosts: ["models.example.com", "127.0.0.1:9"] } };
  await using t = await openTestHeddle({ ...options, runners });
  const turn = await t.start("say something");
  expect((await turn.done).body).toMatchObject({ status: "completed" });
});

test("a failure of its provider, and the end of its server, are those of the turn", async () => {
  await using full = await openTestHeddle(playedOptions("opencode", [{ fails: "too busy" }], children));
  const refused = await full.start("say something");
  const overloaded = { code: "provider.overloaded", message: "opencode: too busy" };
  expect((await refused.done).body).toMatchObject({ status: "failed", failure: overloaded });
  await using gone = await openTestHeddle(playedOptions("opencode", [{ exits: 3 }], children));
  const lost = await gone.start("say something");
  const failure = { code: "runner.exited", message: expect.stringContaining("something broke inside") };
  expect((await lost.done).body).toMatchObject({ status: "failed", failure });
});

test("a question of the agent is answered from any door", async () => {
  const options = playedOptions("opencode", [{ wonders: "which one?" }, { says: "done" }], children);
  const settings = { ...options.settings, approvalPolicy: "on-request" } as const;
  await using t = await openTestHeddle({ ...options, settings, isUnattended: false });
  const turn = await t.start("ask me");
  const { approvalId } = await t.next(turn.threadId, "approval.requested");
  const answers = { q1: ["yes"] };
  await t.heddle.as("user:owner").answer({ threadId: turn.threadId, approvalId, decision: "accept", answers });
  expect((await turn.done).body).toMatchObject({ status: "completed", native: { reason: "stop" } });
  const messages = ofType(await t.events(turn.threadId), "item.completed").filter(
    ({ item }) => item.type === "agentMessage",
  );
  expect(messages.map(({ item }) => item)).toMatchObject([{ text: 'answered [["yes"]]' }, { text: "done" }]);
});

test("a person joins a turn in its sandbox: what they say is theirs, once, and the turn waits until they have left", async () => {
  const wait = "until test -e go; do sleep 0.05; done; echo gone";
  const options = playedOptions("opencode", [{ runs: wait }, { says: "done" }], children);
  const folder = await mkdtemp(join(tmpdir(), "heddle-joined-"));
  await mkdir(join(folder, "own"));
  const runners = { opencode: { ...options.runners?.["opencode"], folders: [join(folder, "own")] } };
  await using t = await openTestHeddle({ ...options, runners, folder });
  const { journal } = t.heddle;
  const joining = { journal, home: t.home, runners, env: { PATH: process.env["PATH"] } };
  const turn = await t.start("say something");
  await expect
    .poll(async () => ofType(await t.events(turn.threadId), "item.started").map(({ item }) => item.type))
    .toContain("commandExecution");
  expect(await readTakeover(journal, turn.threadId, t.home)).toMatchObject({
    join: `heddle attach ${turn.threadId} --live`,
  });
  const joined = await joinTurn(joining, turn.threadId);
  const client = await joinAs(joined);
  await client.says("and this too");
  await writeFile(join(t.workspace, "go"), "");
  await client.hears(/heard: and this too/);
  await client.hears(/session\.idle/);
  // It had nothing more to do, and is not over.
  await client.says("once more");
  await client.hears(/heard: once more/);
  await client[Symbol.asyncDispose]();
  expect((await turn.done).body).toMatchObject({ status: "completed" });
  const events = await t.events(turn.threadId);
  const spoken = events.flatMap(({ body, author }) =>
    body.type === "item.completed" && (body.item.type === "userMessage" || body.item.type === "agentMessage")
      ? [[author, body.item.type === "agentMessage" ? body.item.text : body.item.content[0]]]
      : [],
  );
  expect(spoken).toEqual([
    [expect.any(String), { type: "text", text: "say something" }],
    ["user:owner", { type: "text", text: "and this too" }],
    [expect.any(String), "done"],
    [expect.any(String), "heard: and this too"],
    ["user:owner", { type: "text", text: "once more" }],
    [expect.any(String), "heard: once more"],
  ]);
  expect(ofType(events, "agent.started")).not.toMatchObject([{ sandboxLevel: "none" }]);
  const examined = await examine(journal, { home: t.home, level: 5, streams: [turn.threadId] });
  expect(examined.findings).toEqual([]);
  expect([await readdir(join(t.home, "live")), await readdir(join(folder, "own"))]).toEqual([[], []]);
  expect(await readTakeover(journal, turn.threadId, t.home)).not.toHaveProperty("join");
  await expect(joinTurn(joining, turn.threadId)).rejects.toMatchObject({ code: "turn.not-found" });
});

interface JoinedClient extends AsyncDisposable {
  says(text: string): Promise<void>;
  hears(pattern: RegExp): Promise<void>;
}

/** As the program's own interface does: a stream of events, and requests beside it. */
async function joinAs(joined: Awaited<ReturnType<typeof joinTurn>>): Promise<JoinedClient> {
  const [, , url = "", , handle = ""] = joined.argv;
  const { OPENCODE_SERVER_USERNAME: user, OPENCODE_SERVER_PASSWORD: password } = joined.variables;
  const headers = { authorization: `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}` };
  const agent = new Agent();
  let heard = "";
  const stream = get(`${url}/event`, { headers, agent });
  const [answer]: IncomingMessage[] = await once(stream, "response");
  answer?.setEncoding("utf8").on("data", (text: string) => (heard += text));
  answer?.on("error", () => undefined);
  return {
    async says(text) {
      const path = `${url}/session/${handle}/prompt_async`;
      const asked = request(path, { method: "POST", headers, agent });
      asked.end(JSON.stringify({ parts: [{ type: "text", text }] }));
      const [{ statusCode } = {}]: Partial<IncomingMessage>[] = await once(asked, "response");
      expect(statusCode).toBe(204);
    },
    async hears(pattern) {
      await expect.poll(() => heard, { timeout: 20_000 }).toMatch(pattern);
    },
    async [Symbol.asyncDispose]() {
      stream.destroy();
      await joined[Symbol.asyncDispose]();
    },
  };
}

test("a server that runs already is reached without a sandbox, and refused where there is one", async () => {
  await using played = await playedServer([{ says: "from outside" }]);
  const runners = { opencode: { url: played.url, user: "me", env_key: "PLAYED_PASSWORD" } };
  const settings = { runner: "opencode", provider: "opencode", model: "default" } as const;
  const env = { PLAYED_PASSWORD: PASSWORD };
  await using held = await openTestHeddle({ runners, settings, env });
  await expect(held.start("say something")).rejects.toMatchObject({ code: "runner.unsupported" });

  const off = { ...settings, sandboxMode: "danger-full-access" } as const;
  await using t = await openTestHeddle({ runners, settings: off, env });
  const turn = await t.start("say something");
  expect((await turn.done).body).toMatchObject({ status: "completed" });
  const events = await t.events(turn.threadId);
  expect(ofType(events, "agent.started")).toMatchObject([{ command: [played.url], sandboxLevel: "none" }]);
  expect(JSON.stringify(events)).not.toContain(PASSWORD);

  await using stranger = await openTestHeddle({ runners, settings: off, env: { PLAYED_PASSWORD: "not the password" } });
  const refused = await stranger.start("say something");
  const failure = { code: "runner.exited", message: expect.stringContaining("401") };
  expect((await refused.done).body).toMatchObject({ status: "failed", failure });
});

test("without a sandbox its commands do not outlive the next start, although its server left with Heddle", async () => {
  const command = "echo $$ > pid; exec sleep 300";
  const folder = await mkdtemp(join(tmpdir(), "heddle-left-"));
  await using _folder = { [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }) };
  const played = playedOptions("opencode", [{ runs: command }, { says: "done" }], children);
  const options = { ...played, settings: { ...played.settings, sandboxMode: "danger-full-access" } } as const;
  const program = join(import.meta.dirname, "../../../test/killed-in-child.ts");
  const child = spawn(process.execPath, ["--conditions=heddle-source", program, folder, JSON.stringify(options)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const threadId = String(await once(child.stdout, "data")).trim();
  const file = join(folder, "workspace", "pid");
  await expect.poll(() => existsSync(file) && readFileSync(file, "utf8")).toMatch(/^\d+\n$/);
  const pid = Number(readFileSync(file, "utf8"));
  const server = readProcStat(pid)?.parent;
  child.kill("SIGKILL");
  await once(child, "close");
  await expect.poll(() => readProcStat(pid)?.parent).not.toBe(server);
  expect(inspectProcess(pid)?.state).toBe("S");

  await using t = await openTestHeddle({ ...options, folder });
  expect(t.heddle.recoveredTurns).toBe(1);
  expect(inspectProcess(pid)?.state ?? "Z").toBe("Z");
  expect(ofType(await t.events(threadId), "agent.ended").map(({ end }) => end)).toEqual(["left"]);
});

const PASSWORD = "a password of the test";

interface PlayedServer extends AsyncDisposable {
  readonly url: string;
}

async function playedServer(steps: readonly OpenCodeStep[]): Promise<PlayedServer> {
  const folder = await mkdtemp(join(tmpdir(), "heddle-played-"));
  const args = [join(children, "opencode-play-in-child.mjs"), "opencode", JSON.stringify(steps), "--port", "0"];
  const env = { PATH: process.env["PATH"], OPENCODE_SERVER_USERNAME: "me", OPENCODE_SERVER_PASSWORD: PASSWORD };
  const child = spawn(process.execPath, args, { cwd: folder, env, stdio: ["ignore", "pipe", "inherit"] });
  const closed = once(child, "close");
  const [said] = await once(child.stdout, "data");
  return {
    url: /http:\S+/.exec(String(said))?.[0] ?? "",
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await closed;
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function ofType<T extends EventType>(events: readonly StoredEvent[], type: T): EventOf<T>[] {
  return events.map(({ body }) => body).filter((body): body is EventOf<T> => body.type === type);
}
