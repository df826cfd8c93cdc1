/** What clients do to a turn that runs, and to a compaction, through a real server. */
import { openJournal } from "@heddle/journal";
import { startModelServer } from "@heddle/models/testing";
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { expect, test } from "vitest";
import {
  command,
  isEndOf,
  KEY,
  kindOf,
  pointAt,
  runTurn,
  serve,
  startThread,
  startTurn,
  text,
  type Wire,
} from "../../test/app-server-client.ts";
import { openWorld } from "../../test/heddle-process.ts";

const GATED = "-32600 turn settings updates require the step_model_switching feature; use thread/settings/update";

test("15: a client that turns the feature on with its thread changes the model of its running turn, and of no other thread", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({
    respond: ({ answers }) =>
      answers === 0 ? { calls: [command("until test -e go; do sleep 0.05; done")] } : { text: "done" },
  });
  await pointAt(world, model.url);
  await using served = serve([], { world, env: KEY });
  const { client } = served;
  await client.initialize({ experimentalApi: true });
  const params = { approvalPolicy: "never", sandbox: "workspace-write" };
  const change = async (threadId: string, turnId: string) => {
    const { result, error } = await client.ask("turn/settings/update", { threadId, turnId, model: "gpt-5.6-sol" });
    return error === undefined ? result : `${error.code} ${error.message}`;
  };
  const config = { features: { step_model_switching: true } };
  const threadId = await startThread(client, { ...params, config });
  const turnId = await startTurn(client, threadId, "go");
  await client.waitFor((wire) => kindOf(wire) === "item/started commandExecution");
  expect(await change(threadId, turnId)).toEqual({ status: "applied" });
  // Loaded already: what came with its start stays.
  await client.call("thread/resume", { threadId, excludeTurns: true });
  expect(await change(threadId, turnId)).toEqual({ status: "applied" });
  const other = await startThread(client, params);
  expect(await change(other, turnId)).toBe(GATED);
  await client.call("thread/resume", {
    threadId,
    excludeTurns: true,
    config: { "features.step_model_switching": false },
  });
  expect(await change(threadId, turnId)).toBe(GATED);
  await writeFile(path.join(world.workspace, "go"), "");
  await client.waitFor((wire) => wire.method === "turn/completed");
  expect(model.requests.map(({ body }) => text(body, "model"))).toEqual(["gpt-5.5", "gpt-5.6-sol"]);
});

test("15: a server that is killed while it compacts leaves no open item, keeps what was steered, and the thread goes on", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({
    respond: () => ({ text: "Noted." }),
    faults: [undefined, { kind: "stall", at: "after-headers" }],
  });
  await pointAt(world, model.url);
  let threadId: string;
  {
    await using served = serve([], { world, env: KEY });
    const { client } = served;
    await client.initialize({ experimentalApi: true });
    threadId = await startThread(client);
    await runTurn(client, threadId, "one");
    const from = client.received.length;
    await client.call("thread/compact/start", { threadId });
    const begun = await client.note("item/started", from);
    await model.arrived(1);
    const expectedTurnId = text(begun, "params.turnId");
    const input = [{ type: "text", text: "also this" }];
    await client.call("turn/steer", { threadId, expectedTurnId, input, clientUserMessageId: "c1" });
    served.running.child.kill("SIGKILL");
  }
  await using served = serve([], { world, env: KEY });
  const { client } = served;
  await client.initialize({ experimentalApi: true });
  await client.call("thread/resume", { threadId, excludeTurns: true });
  const { ended } = await runTurn(client, threadId, "two");
  expect(text(ended, "params.turn.status")).toBe("completed");
  const asked = JSON.stringify(model.requests.at(-1)?.body);
  for (const said of ["one", "Noted.", "also this", "two"]) expect(asked).toContain(said);
  await served.running[Symbol.asyncDispose]();
  await using journal = await openJournal({ home: world.home });
  expect((await journal.verify(threadId)).damage).toEqual([]);
  const bodies = (await journal.read({ stream: threadId, after: 0 })).map(({ body }) => body);
  const ends = bodies.flatMap((body) =>
    body.type === "item.completed" && body.item.type === "contextCompaction" ? [body.item.status] : [],
  );
  // Whatever was open when its process died ends so: nobody saw its end.
  expect(ends).toEqual(["unknown"]);
  const turns = bodies.flatMap((body) => (body.type === "turn.completed" ? [body.status] : []));
  expect(turns).toEqual(["completed", "interrupted", "completed"]);
});

const TOO_LONG = { error: { code: "context_length_exceeded", message: "too long" } };
const STALLED = { kind: "stall", at: "after-headers" } as const;

test.each([
  { why: "that a client asked for", isAsked: true, faults: [undefined, STALLED], config: {} },
  {
    why: "that a turn begins with",
    isAsked: false,
    faults: [undefined, STALLED],
    config: { model_context_window: 40_000, model_auto_compact_token_limit: 4_000 },
  },
  {
    why: "after a refusal of the model",
    isAsked: false,
    faults: [undefined, { kind: "status", status: 400, body: TOO_LONG }, STALLED] as const,
    config: {},
  },
])(
  "15.10: an interrupt of a compaction $why: one end of turn and item, nothing is lost, and the thread goes on",
  async ({ isAsked, faults, config }) => {
    await using world = await openWorld();
    await using model = await startModelServer({
      respond: () => ({ text: `Noted. ${"word ".repeat(8_000)}` }),
      faults,
    });
    await pointAt(world, model.url);
    const stalled = faults.indexOf(STALLED);
    let threadId: string;
    {
      await using served = serve([], { world, env: KEY });
      const { client } = served;
      await client.initialize({ experimentalApi: true });
      threadId = await startThread(client, { config });
      await runTurn(client, threadId, "first-words");
      const from = client.received.length;
      if (isAsked) await client.call("thread/compact/start", { threadId });
      else await startTurn(client, threadId, "second-words");
      const isBegun = (wire: Wire): boolean => kindOf(wire) === "item/started contextCompaction";
      const begun = await client.waitFor(isBegun, from);
      await model.arrived(stalled);
      const turnId = text(begun, "params.turnId");
      await client.call("turn/interrupt", { threadId, turnId });
      await client.waitFor((wire) => isEndOf(wire, turnId), from);
      // A second one finds nothing to stop, and is answered.
      await client.ask("turn/interrupt", { threadId, turnId });
      const { kinds, ended } = await runTurn(client, threadId, "third-words");
      expect(text(ended, "params.turn.status")).toBe("completed");
      expect(kinds.filter((kind) => /Compaction|turn\/completed/.test(kind)).at(-1)).toBe("turn/completed completed");
      const all = client.kinds(from).filter((kind) => /turn\/completed/.test(kind));
      expect(all).toEqual(["turn/completed interrupted", "turn/completed completed"]);
      const compactions = client.received
        .slice(from)
        .flatMap((wire) => (isBegun(wire) ? [text(wire, "params.item.id")] : []));
      const ends = client.received
        .slice(from)
        .flatMap((wire) => (kindOf(wire) === "item/completed contextCompaction" ? [text(wire, "params.item.id")] : []));
      expect(ends.toSorted()).toEqual(compactions.toSorted());
    }
    await using journal = await openJournal({ home: world.home });
    expect((await journal.verify(threadId)).damage).toEqual([]);
    const bodies = (await journal.read({ stream: threadId, after: 0 })).map(({ body }) => body);
    const statuses = bodies.flatMap((body) => (body.type === "turn.completed" ? [body.status] : []));
    expect(statuses).toEqual(["completed", "interrupted", "completed"]);
    const ids = (type: "item.started" | "item.completed"): string[] =>
      bodies.flatMap((body) => (body.type === type ? [body.item.id] : []));
    expect(ids("item.completed").toSorted()).toEqual(ids("item.started").toSorted());
    // Nothing came of the one that was stopped.
    const first = bodies.findIndex((body) => body.type === "item.completed" && body.item.type === "contextCompaction");
    expect(bodies.slice(0, first).filter(({ type }) => type === "context.compacted")).toEqual([]);
    const asked = JSON.stringify(model.requests.at(-1)?.body);
    for (const said of isAsked ? ["first-words", "third-words"] : ["first-words", "second-words", "third-words"])
      expect(asked).toContain(said);
  },
);
