/** One resolver of settings: what is said at one door counts at every other. */
import path from "node:path";
import { startModelServer } from "@heddle/models/testing";
import { expect, test } from "vitest";
import { at, connectTo, KEY, pointAt, runTurn, startThread, text } from "../../test/app-server-client.ts";
import { openWorld, run } from "../../test/heddle-process.ts";
import { isTurnEnd, startServe } from "../../test/serve-client.ts";

interface Door {
  /** Chooses a model for the next turns of the thread, in the way of this door. */
  readonly choose: (threadId: string, model: string) => Promise<unknown>;
  /** A turn that says nothing about settings, to its end. */
  readonly turn: (threadId: string) => Promise<unknown>;
}

async function openDoors() {
  await using ends = new AsyncDisposableStack();
  const world = ends.use(await openWorld());
  const model = ends.use(await startModelServer({ respond: () => ({ text: "done" }) }));
  await pointAt(world, model.url);
  await world.file("workspace/.git/HEAD", "ref: refs/heads/main\n");
  const served = ends.use(await startServe(world));
  const socket = path.join(world.home, "serve.sock");
  const { client: codex } = ends.use(await connectTo(socket));
  await codex.initialize({ experimentalApi: true });
  const { client: chat } = ends.use(await connectTo(socket));
  await chat.call("events.subscribe", { topic: "chat.*" });

  const overHttp = async (threadId: string, body: object): Promise<string> => {
    const { seq } = await last(threadId);
    const begun = await served.call("POST", `/api/threads/${threadId}/turns`, { input: "go on", ...body });
    expect(begun.status).toBe(202);
    await served.events(threadId, isTurnEnd, seq);
    return String(begun.json["id"]);
  };
  const send = async (threadId: string, more: object = {}): Promise<void> => {
    const from = chat.received.length;
    const turnId = text(
      await chat.call("chat.message.send", { chat_id: threadId, message: "go on", ...more }),
      "turn_id",
    );
    await chat.waitFor((wire) => wire.method === "chat.turn.completed" && at(wire, "params.turnId") === turnId, from);
  };
  const exec = async (...args: readonly string[]): Promise<void> => {
    const ran = await run(["exec", "resume", ...args], { world, env: KEY });
    expect(ran).toMatchObject({ code: 0 });
  };
  const last = async (threadId: string) => {
    const { json } = await served.call("GET", `/api/threads/${threadId}/turns`);
    return {
      model: at(json, "data.0.settings.model"),
      effort: at(json, "data.0.settings.effort"),
      sandbox: at(json, "data.0.settings.sandboxMode"),
      seq: Number(at(json, "data.0.seq") ?? 0),
    };
  };
  const doors: Readonly<Record<string, Door>> = {
    "app-server": {
      choose: (threadId, chosen) => codex.call("thread/settings/update", { threadId, model: chosen }),
      turn: (threadId) => runTurn(codex, threadId, "go on"),
    },
    chat: {
      choose: (chat_id, chosen) => chat.call("chat.settings.update", { chat_id, settings: { model: chosen } }),
      turn: send,
    },
    HTTP: {
      choose: (threadId, chosen) => overHttp(threadId, { model: chosen }),
      turn: (threadId) => overHttp(threadId, {}),
    },
    exec: {
      choose: (threadId, chosen) => exec(threadId, "-m", chosen, "go on"),
      turn: (threadId) => exec(threadId, "go on"),
    },
  };
  const moved = ends.move();
  return { codex, doors, last, overHttp, send, [Symbol.asyncDispose]: () => moved.disposeAsync() };
}

test("14.1: a model that is chosen at one door is the model of a turn begun at any other", async () => {
  await using opened = await openDoors();
  const { codex, doors, last } = opened;
  const threadId = await startThread(codex);
  await runTurn(codex, threadId, "begin");
  let count = 0;
  for (const [where, { choose }] of Object.entries(doors)) {
    for (const [there, { turn }] of Object.entries(doors)) {
      if (where === there && where === "exec") continue;
      const model = `gpt-${(count += 1)}`;
      await choose(threadId, model);
      await turn(threadId);
      expect((await last(threadId)).model, `chosen at ${where}, begun at ${there}`).toBe(model);
    }
  }
}, 120_000);

test("14.1: what was said when a thread began counts at every door; what was said for one message, at none", async () => {
  await using opened = await openDoors();
  const { codex, doors, last, send } = opened;
  const began = { model: "gpt-begun", config: { model_reasoning_effort: "low" } };
  for (const { turn } of Object.values(doors)) {
    const threadId = await startThread(codex, began);
    await turn(threadId);
    expect(await last(threadId)).toMatchObject({ model: "gpt-begun", effort: "low" });
  }
  for (const { turn } of Object.values(doors)) {
    const threadId = await startThread(codex, { ...began, sandbox: "workspace-write" });
    await send(threadId, { model: "gpt-once", effort: "high", collaboration_mode: "plan" });
    expect(await last(threadId)).toMatchObject({ model: "gpt-once", effort: "high", sandbox: "read-only" });
    await turn(threadId);
    expect(await last(threadId)).toMatchObject({ model: "gpt-begun", effort: "low" });
    // A sandbox is chosen anew for each run of exec.
    if (turn !== doors["exec"]?.turn) expect((await last(threadId)).sandbox).toBe("workspace-write");
  }
}, 120_000);

test("14.1: a turn that was taken back counts at no door", async () => {
  await using opened = await openDoors();
  const { codex, doors, last, overHttp } = opened;
  for (const { turn } of Object.values(doors)) {
    const threadId = await startThread(codex);
    await overHttp(threadId, { model: "gpt-kept" });
    const beforeTurnId = await overHttp(threadId, { model: "gpt-reverted" });
    await codex.call("thread/revert", { threadId, beforeTurnId });
    await turn(threadId);
    expect((await last(threadId)).model).toBe("gpt-kept");
  }
}, 120_000);
