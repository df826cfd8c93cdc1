import { readFile } from "node:fs/promises";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { startModelServer, type ModelServer, type ModelServerOptions } from "@heddle/models/testing";
import { expect, test } from "vitest";
import { openWorld, start, type World } from "../../test/heddle-process.ts";
import { openHeddle, type Heddle, type OpenOptions, type StreamedEvent } from "./index.ts";

interface Opened extends AsyncDisposable {
  readonly world: World;
  readonly model: ModelServer;
  readonly heddle: Heddle;
  /** What it was opened with. */
  readonly options: OpenOptions;
}

async function open(answers: ModelServerOptions, more: OpenOptions = {}): Promise<Opened> {
  const world = await openWorld();
  const model = await startModelServer(answers);
  const config = {
    model: "gpt-5.5",
    model_provider: "mock",
    model_providers: { mock: { base_url: `${model.url}/v1`, env_key: "MOCK_KEY" } },
    ...more.config,
  };
  const env = { ...world.env, MOCK_KEY: "test-key-of-the-mock" };
  const options = { workspace: world.workspace, env, ...more, config };
  const heddle = await openHeddle(options);
  return {
    options,
    world,
    model,
    heddle,
    async [Symbol.asyncDispose]() {
      await heddle.close();
      await model[Symbol.asyncDispose]();
      await world[Symbol.asyncDispose]();
    },
  };
}

const shell = (cmd: string) => ({ calls: [{ tool: "exec_command", args: { cmd } }] });

async function typesOf(events: AsyncIterable<StreamedEvent>): Promise<readonly string[]> {
  const types: string[] = [];
  for await (const { body } of events) types.push(body.type);
  return types;
}

test("14.12: one object starts a turn with safe defaults, and its events can be read late and twice", async () => {
  await using opened = await open({ script: [{ text: "hello there" }, { text: "again" }] });
  const { heddle, world } = opened;
  let text = "";
  const turn = await heddle.startTurn({ input: "say hello", onDelta: ({ delta }) => void (text += delta) });
  expect(await turn.result()).toMatchObject({
    threadId: turn.threadId,
    turnId: turn.id,
    status: "completed",
    message: "hello there",
    failure: undefined,
  });
  expect(text).toBe("hello there");
  const types = await typesOf(turn);
  expect([types[0], types.at(-1)]).toEqual(["turn.admitted", "turn.completed"]);
  expect(await typesOf(turn)).toEqual(types);
  const events: StreamedEvent[] = [];
  for await (const event of heddle.events(turn.threadId)) events.push(event);
  expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1));
  expect(events.find(({ body }) => body.type === "turn.admitted")?.author).toBe("user:owner");
  expect(events[0]?.body).toMatchObject({ type: "thread.created", workspace: world.workspace, origin: "engine" });
  expect(events.find(({ body }) => body.type === "turn.admitted")?.body).toMatchObject({
    settings: { model: "gpt-5.5", sandboxMode: "read-only", networkAccess: false, approvalPolicy: "never" },
  });
  const second = await heddle.startTurn({ thread: turn.threadId, input: "again" });
  expect(second.threadId).toBe(turn.threadId);
  expect((await second.result()).message).toBe("again");
  expect(heddle.home).toBe(world.home);
});

test("14.12: a question is an event of the turn, and the program's answer decides", async () => {
  const write = shell("echo asked > file.txt");
  await using opened = await open({ script: [write, { text: "done" }, write, { text: "declined" }] });
  const { heddle, world } = opened;
  const asking = { sandboxMode: "workspace-write", approvalPolicy: "untrusted" } as const;
  for (const decision of ["accept", "decline"] as const) {
    const turn = await heddle.startTurn({ input: "write", ...asking });
    const questions: string[] = [];
    for await (const { body } of turn) {
      if (body.type !== "approval.requested") continue;
      questions.push(body.question.kind);
      await turn.answer(body.approvalId, decision);
      await expect(turn.answer(body.approvalId, "accept")).rejects.toMatchObject({
        code: "approval.already-resolved",
      });
    }
    expect(questions).toEqual(["command"]);
    expect((await turn.result()).status).toBe("completed");
  }
  expect(await readFile(path.join(world.workspace, "file.txt"), "utf8")).toBe("asked\n");
});

test("14.12: interrupt, an aborted signal and close each end a running turn", async () => {
  await using opened = await open({ respond: async () => shell("sleep 60") });
  const { heddle } = opened;
  const started = async (signal?: AbortSignal) => {
    const turn = await heddle.startTurn({ input: "wait", ...(signal === undefined ? {} : { signal }) });
    for await (const { body } of turn) if (body.type === "item.started" && body.item.type === "commandExecution") break;
    return turn;
  };
  const first = await started();
  await first.interrupt("enough");
  expect(await first.result()).toMatchObject({ status: "interrupted", failure: { message: "enough" } });
  const control = new AbortController();
  const second = await started(control.signal);
  control.abort();
  expect(await second.result()).toMatchObject({ status: "interrupted", failure: { code: "turn.interrupted" } });
  const third = await started();
  const ended = third.result();
  await heddle.close();
  await heddle.close();
  expect(await ended).toMatchObject({ status: "interrupted" });
  await expect(heddle.startTurn({ input: "more" })).rejects.toMatchObject({ code: "usage.invalid" });
});

/** Asks, and is still waiting when it is killed. */
const ASKING = `
const [entry, options] = process.argv.slice(2);
const { openHeddle } = await import(entry);
const heddle = await openHeddle(JSON.parse(options));
const turn = await heddle.startTurn({ input: "write", sandboxMode: "workspace-write", approvalPolicy: "untrusted" });
for await (const { body } of turn)
  if (body.type === "approval.requested") console.log(JSON.stringify({ threadId: turn.threadId, approvalId: body.approvalId }));
`;

test("14.12: a question of a process that was killed is answered in the next one, where its turn continues", async () => {
  const step = shell("echo asked > file.txt");
  await using opened = await open({ respond: async ({ answers }) => (answers === 0 ? step : { text: "done" }) });
  const { heddle, world, options } = opened;
  await heddle.close();
  const launcher = await world.file("asking.mjs", ASKING);
  const args = [pathToFileURL(path.join(import.meta.dirname, "index.ts")).href, JSON.stringify(options)];
  const child = start(args, { world, launcher, env: { NODE_OPTIONS: "--conditions=heddle-source" } });
  await child.sees("approvalId");
  await child[Symbol.asyncDispose]();
  const { threadId, approvalId } = JSON.parse((await child.ended).stdout) as { threadId: string; approvalId: string };
  await using next = await openHeddle(options);
  await next.answerApproval(threadId, approvalId, "accept");
  for await (const { body } of next.events(threadId, { live: true })) {
    if (body.type !== "turn.completed") continue;
    expect(body.status).toBe("completed");
    break;
  }
  expect(await readFile(path.join(world.workspace, "file.txt"), "utf8")).toBe("asked\n");
});

test("14.12: closing ends a turn that waits for an answer, and the thread is free for the next engine", async () => {
  await using opened = await open({
    respond: async ({ answers }) => (answers === 0 ? shell("echo hi > x") : { text: "done" }),
  });
  const { heddle, options } = opened;
  const turn = await heddle.startTurn({ input: "write", sandboxMode: "workspace-write", approvalPolicy: "untrusted" });
  for await (const { body } of turn) if (body.type === "approval.requested") break;
  await heddle.close();
  await expect(heddle.events(turn.threadId).next()).rejects.toMatchObject({ code: "usage.invalid" });
  await using next = await openHeddle(options);
  const types: string[] = [];
  for await (const { body } of next.events(turn.threadId)) types.push(body.type);
  expect(types.at(-1)).toBe("turn.completed");
  const again = await next.startTurn({ thread: turn.threadId, input: "go on", approvalPolicy: "never" });
  expect((await again.result()).status).toBe("completed");
});

test("14.12: refusals have codes and name the field; nothing is stored", async () => {
  await using opened = await open({ script: [] });
  const { heddle, model, world } = opened;
  const misspelt: object = { input: "go", sandboxmode: "read-only" };
  await expect(heddle.startTurn({ input: "go", ...misspelt })).rejects.toMatchObject({
    code: "usage.invalid",
    message: expect.stringContaining("sandboxmode"),
  });
  await expect(heddle.startTurn({ input: "go", workspace: "/no/such/folder" })).rejects.toMatchObject({
    code: "workspace.missing",
  });
  await expect(heddle.startTurn({ input: "go", thread: "0190a5a0-0000-7000-8000-000000000000" })).rejects.toMatchObject(
    {
      code: "thread.not-found",
    },
  );
  await expect(heddle.startTurn({ input: "go", provider: "nobody" })).rejects.toMatchObject({
    code: "provider.unknown",
  });
  expect(model.requests).toEqual([]);
  const wrong = openHeddle({ env: world.env, config: { modell: "gpt-5.5" } });
  await expect(wrong).rejects.toMatchObject({
    code: "config.invalid",
    message: expect.stringContaining("config.modell"),
  });
});

test("14.12: what the program gives counts before the file and its profile, and the file's approval policy is kept", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({ respond: async () => ({ text: "ok" }) });
  await world.file(
    "home/config.toml",
    `model = "from-file"\nprofile = "mine"\napproval_policy = "untrusted"\n[profiles.mine]\nmodel = "from-profile"\nmodel_provider = "mock"\n` +
      `[model_providers.mock]\nbase_url = "${model.url}/v1"\nenv_key = "MOCK_KEY"\n`,
  );
  const env = { ...world.env, MOCK_KEY: "k" };
  for (const [config, expected] of [
    [{}, "from-profile"],
    [{ model: "given" }, "given"],
  ] as const) {
    await using heddle = await openHeddle({ env, config, workspace: world.workspace });
    const turn = await heddle.startTurn({ input: "go" });
    for await (const { body } of turn)
      if (body.type === "turn.admitted")
        expect(body.settings).toMatchObject({ model: expected, approvalPolicy: "untrusted" });
  }
});
