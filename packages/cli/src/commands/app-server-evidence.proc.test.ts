import { expect, test } from "vitest";
import { at, kindOf, serve, startThread } from "../../test/app-server-client.ts";
import { openWorld } from "../../test/heddle-process.ts";

test("a client of app-server notes, finds, counts and follows evidence; V3 V18: unknown fields and authors are refused", async () => {
  await using world = await openWorld();
  await using served = serve([], { world });
  const { client } = served;
  await client.initialize();
  const threadId = await startThread(client);
  const { subscriptionId } = (await client.call("evidence/subscribe", { claim: "correction" })) as {
    subscriptionId: string;
  };
  const { entry: first } = (await client.call("evidence/note", {
    threadId,
    claim: "conclusion",
    text: "it is red",
  })) as {
    entry: { id: string; author: string };
  };
  expect(first.author).toBe("user:owner");
  const reply = { threadId, claim: "correction", text: "it is green", replyTo: first.id };
  const { entry: second } = (await client.call("evidence/note", reply)) as { entry: { id: string } };
  const told = await client.waitFor((wire) => kindOf(wire).startsWith("evidence/entry"));
  expect([at(told, "params.subscriptionId"), at(told, "params.entry.id")]).toEqual([subscriptionId, second.id]);
  expect(await client.call("evidence/query", { text: "red", thread: threadId })).toMatchObject({
    data: [{ id: first.id, correctedBy: second.id }],
    nextCursor: null,
  });
  expect(await client.call("evidence/count", { type: "evidence.*" })).toEqual({ count: 2 });
  expect(await client.call("evidence/chain", { id: second.id })).toMatchObject({ ancestors: [{ id: first.id }] });
  expect(await client.call("evidence/get", { id: first.id })).toMatchObject({ entry: { body: { text: "it is red" } } });
  expect(await client.call("evidence/unsubscribe", { subscriptionId })).toEqual({ ended: true });
  await expect(client.call("evidence/query", { autor: "x" })).rejects.toThrow("autor");
  await expect(client.call("evidence/note", { ...reply, author: "system" })).rejects.toThrow("author");
  await expect(client.call("evidence/note", { ...reply, replyTo: "evt_none" })).rejects.toThrow("evt_none");
});
