import { startModelServer } from "@heddle/models/testing";
import { expect, test } from "vitest";
import { serve } from "./served-world.ts";
import { openWorld } from "./world.ts";

test("a client notes, finds, counts, follows and reads the chain of entries; the author is its token", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({ respond: async () => ({ text: "done" }) });
  await using server = await serve(world, model);
  const { client } = server;
  const { id: threadId } = await client.createThread({ workspace: world.workspace });
  const first = await client.evidence.note(threadId, {
    claim: "conclusion",
    text: "the port is taken",
    tags: ["ports"],
  });
  const { position } = first;
  const refs = [{ type: "file", id: "/a,b:c" }];
  const second = await client.evidence.note(threadId, {
    claim: "correction",
    text: "it is free",
    refs,
    replyTo: first.id,
  });
  expect(first.author).toMatch(/^user:/);
  const found = await client.evidence.query({
    tags: ["ports"],
    type: ["evidence.*", "tool.*"],
    subject: { type: "thread" },
  });
  expect(found).toEqual({ data: [{ ...first, correctedBy: second.id }], nextCursor: null });
  expect((await client.evidence.query({ ref: { type: "file", id: "/a,b:c" } })).data).toEqual([second]);
  expect(await client.evidence.count({ text: "port taken" })).toEqual({ count: 1 });
  expect(await client.evidence.get(second.id)).toMatchObject({ body: { type: "evidence.noted" } });
  expect(await client.evidence.chain(second.id)).toMatchObject({
    ancestors: [{ id: first.id }],
    descendants: [],
    isCut: false,
  });
  const stored: string[] = [];
  for await (const entry of client.evidence.follow({ type: "evidence.noted", after: 0, live: false }))
    stored.push(entry.id);
  expect(stored).toEqual([first.id, second.id]);
  for await (const entry of client.evidence.follow({ after: position, claim: "correction" })) {
    expect(entry.id).toBe(second.id);
    break;
  }
  await expect(client.evidence.get("evt_none")).rejects.toMatchObject({ code: "evidence.not-found" });
});

test("a client takes a thread to another home and back out of it, and both verify", async () => {
  await using world = await openWorld();
  await using elsewhere = await openWorld();
  await using model = await startModelServer({ respond: async () => ({ text: "done" }) });
  await using server = await serve(world, model);
  await using other = await serve(elsewhere, model);
  const { client } = server;
  const { evidence } = client;
  const { id: threadId } = await client.createThread({ workspace: world.workspace });
  const { id: entryId } = await evidence.note(threadId, { claim: "conclusion", text: "the port is taken" });
  expect(await evidence.verify({ subject: threadId })).toMatchObject({ result: "clean", findings: [] });
  const bundle = await new Response(await evidence.export(threadId, { outputs: true })).text();
  const there = other.client.evidence;
  const untrusted = await there.import(bundle).then(
    () => undefined,
    (error: unknown) => error,
  );
  expect(untrusted).toMatchObject({
    code: "evidence.untrusted",
    details: { keyId: expect.stringMatching(/^[0-9a-f]+$/) },
  });
  const { keyId: trustKey } = (untrusted as { readonly details: { readonly keyId: string } }).details;
  const done = await there.import(await evidence.export(threadId), { trustKey });
  expect(done).toMatchObject({ keyId: trustKey, imported: 1, known: 0 });
  expect((await there.query({ origin: "imported" })).data).toMatchObject([{ imported: { id: entryId } }]);
  const [id = ""] = done.streams;
  expect(await there.purge(id)).toEqual({ kind: "import", id });
  expect(await there.count({ origin: "any" })).toEqual({ count: 0 });
  expect((await there.verify()).result).toBe("clean");
});
