/** What an agent proposes while it plans: an item of its own, whatever the pieces it comes in, through every door. */
import { startModelServer } from "@heddle/models/testing";
import { expect, test } from "vitest";
import {
  at,
  isEndOf,
  KEY,
  kindOf,
  list,
  pointAt,
  serve,
  startThread,
  text,
  type Client,
  type Wire,
} from "../../test/app-server-client.ts";
import { openWorld } from "../../test/heddle-process.ts";
import { startServe } from "../../test/serve-client.ts";

const PLAN = { mode: "plan", settings: { model: "gpt-5.5", reasoning_effort: null, developer_instructions: null } };
const PROPOSAL = "Before.\n<proposed_plan>\n# Plan\n\n- one\n</proposed_plan>\nAfter.";
const SHOWN = [
  { type: "userMessage" },
  { type: "plan", text: "# Plan\n\n- one\n" },
  { type: "agentMessage", text: "Before.\nAfter." },
];

async function planned(client: Client, threadId: string, more: object = { collaborationMode: PLAN }): Promise<string> {
  const params = { threadId, input: [{ type: "text", text: "plan it" }], ...more };
  return text(await client.call("turn/start", params), "turn.id");
}

async function open(client: Client): Promise<string> {
  await client.initialize({ experimentalApi: true });
  return startThread(client, { sandbox: "read-only" });
}

function said(client: Client, method: string): string {
  const deltas = client.received.filter((wire) => wire.method === method);
  return deltas.map((wire) => text(wire, "params.delta")).join("");
}

/** Kinds of items and their deltas, each run of deltas once. */
function course(client: Client, turnId: string): readonly string[] {
  const isOfTurn = (wire: Wire): boolean => at(wire, "params.turnId") === turnId;
  const kinds = client.received.filter((wire) => isOfTurn(wire) && wire.method?.startsWith("item/")).map(kindOf);
  return kinds.filter((kind, index) => kind !== kinds[index - 1] && !kind.endsWith("userMessage"));
}

const COURSE = [
  "item/started agentMessage",
  "item/agentMessage/delta",
  "item/started plan",
  "item/plan/delta",
  "item/agentMessage/delta",
  "item/completed plan",
  "item/completed agentMessage",
];

test.each([1, 2, 3, 5, 7, 11, 13, 17, 100])(
  "a proposed plan is an item of its own, in pieces of %i characters: live, read again, and in the next server",
  async (deltaChars) => {
    await using world = await openWorld();
    await using model = await startModelServer({ script: [{ text: PROPOSAL }, { text: "ok" }], deltaChars });
    await pointAt(world, model.url);
    let threadId: string;
    {
      await using served = serve([], { world, env: KEY });
      const { client } = served;
      threadId = await open(client);
      const turnId = await planned(client, threadId);
      const end = await client.waitFor((wire) => isEndOf(wire, turnId));
      expect(course(client, turnId)).toEqual(COURSE);
      expect(said(client, "item/plan/delta")).toBe("# Plan\n\n- one\n");
      expect(said(client, "item/agentMessage/delta")).toBe("Before.\nAfter.");
      expect(at(end, "params.turn.items")).toMatchObject([{ type: "agentMessage", text: "Before.\nAfter." }]);
      const started = await client.waitFor((wire) => kindOf(wire) === "item/started plan");
      expect(at(started, "params.item")).toMatchObject({ text: "", completedAtMs: null });
      const read = await client.call("thread/read", { threadId, includeTurns: true });
      expect(at(read, "thread.turns.0.items")).toMatchObject(SHOWN);
      // The model finds its own words again, as it wrote them.
      const next = await planned(client, threadId);
      await client.waitFor((wire) => isEndOf(wire, next));
      expect(JSON.stringify(model.requests[1]?.body)).toContain(JSON.stringify(PROPOSAL).slice(1, -1));
      expect(JSON.stringify(model.requests[0]?.body)).toContain("a line </proposed_plan>");
    }
    await using served = serve([], { world, env: KEY });
    await served.client.initialize();
    const resumed = await served.client.call("thread/resume", { threadId });
    expect(at(resumed, "thread.turns.0.items")).toMatchObject(SHOWN);
  },
);

test("a plan and nothing else is no message; outside planning the same words are one", async () => {
  await using world = await openWorld();
  const alone = "\n<proposed_plan>\n- one\n</proposed_plan>\n\n";
  await using model = await startModelServer({ respond: () => ({ text: alone }), deltaChars: 4 });
  await pointAt(world, model.url);
  await using served = serve([], { world, env: KEY });
  const { client } = served;
  const threadId = await open(client);
  const first = await planned(client, threadId);
  const end = await client.waitFor((wire) => isEndOf(wire, first));
  expect(course(client, first)).toEqual(["item/started plan", "item/plan/delta", "item/completed plan"]);
  expect(at(end, "params.turn.items")).toEqual([]);
  const collaborationMode = { ...PLAN, mode: "default" };
  const second = await planned(client, threadId, { collaborationMode });
  await client.waitFor((wire) => isEndOf(wire, second));
  const items = list(await client.call("thread/turns/list", { threadId, itemsView: "full" }), "data.0.items");
  expect(items).toMatchObject([{ type: "userMessage" }, { type: "agentMessage", text: alone }]);
});

test("each of several plans is an item, the newest last; one that is cut off says so", async () => {
  await using world = await openWorld();
  const several = "<proposed_plan>\none\n</proposed_plan>\n<proposed_plan>\ntwo\n</proposed_plan>";
  await using model = await startModelServer({
    script: [{ text: several }, { text: `<proposed_plan>\n- ${"one, and more ".repeat(99)}` }],
    faults: ({ number }) => (number === 1 ? { kind: "drip", everyMs: 1 } : undefined),
  });
  await pointAt(world, model.url);
  await using served = serve([], { world, env: KEY });
  const { client } = served;
  const threadId = await open(client);
  const first = await planned(client, threadId);
  await client.waitFor((wire) => isEndOf(wire, first));
  const second = await planned(client, threadId);
  await client.waitFor((wire) => wire.method === "item/plan/delta" && at(wire, "params.turnId") === second);
  await client.call("turn/interrupt", { threadId, turnId: second });
  await client.waitFor((wire) => isEndOf(wire, second));
  const turns = list(await client.call("thread/turns/list", { threadId, itemsView: "full" }), "data");
  const plans = turns.map((turn) => list(turn, "items").filter((item) => at(item, "type") === "plan"));
  expect(plans).toMatchObject([[{ isPartial: true }], [{ text: "one\n" }, { text: "two\n" }]]);
  expect(text(plans, "0.0.text")).toBe(deltasOf(client, text(plans, "0.0.id")));
});

function deltasOf(client: Client, itemId: string): string {
  const mine = client.received.filter((wire) => at(wire, "params.itemId") === itemId);
  return mine.map((wire) => text(wire, "params.delta")).join("");
}

test("HTTP shows a proposed plan as the item that is stored", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({ script: [{ text: PROPOSAL }] });
  await pointAt(world, model.url);
  let threadId: string;
  {
    await using served = serve([], { world, env: KEY });
    threadId = await open(served.client);
    const turnId = await planned(served.client, threadId);
    await served.client.waitFor((wire) => isEndOf(wire, turnId));
  }
  await using served = await startServe(world);
  const { json } = await served.call("GET", `/api/threads/${threadId}/items`);
  expect(list(json, "data").map((entry) => at(entry, "item"))).toContainEqual(
    expect.objectContaining({ type: "proposedPlan", status: "completed", text: "# Plan\n\n- one\n" }),
  );
});
