/** The record over JSON-RPC: a bundle goes out as notifications and comes in as several calls. */
import { readdir } from "node:fs/promises";
import path from "node:path";
import { noteEvidence } from "@heddle/agent";
import { verifyExport } from "@heddle/journal";
import { verifyRecord } from "@heddle/tasks/verification";
import { expect, test } from "vitest";
import type { ChatClient } from "../../../test/chat-client.ts";
import { codexClient, openChatWorld, type ChatWorld } from "../../../test/chat-world.ts";

async function threadOf(world: ChatWorld): Promise<string> {
  const acts = world.heddle.as("user:owner");
  const threadId = await acts.createThread({ workspace: world.workspace, origin: "test" });
  const note = { claim: "conclusion", text: "the flaky test needs a free port" } as const;
  await noteEvidence(world.heddle.journal, { threadId, note, by: "user:owner" });
  return threadId;
}

interface Lines {
  readonly exportId: string;
  readonly lines: readonly string[];
  readonly isLast: boolean;
}

async function exported(client: ChatClient, threadId: string): Promise<readonly string[]> {
  const { exportId } = (await client.call("evidence/export", { threadId })) as { readonly exportId: string };
  const parts = (): Lines[] =>
    client.received
      .filter(({ method }) => method === "evidence/lines")
      .map(({ params }) => params as unknown as Lines)
      .filter((part) => part.exportId === exportId);
  await expect.poll(() => parts().at(-1)?.isLast, { timeout: 20_000 }).toBe(true);
  return parts().flatMap(({ lines }) => lines);
}

const refused = async (client: ChatClient, method: string, params: object): Promise<unknown> =>
  ((await client.ask(method, params)).error?.data as { readonly code?: string } | undefined)?.code;

test("evidence/verify answers what the command line says", async () => {
  await using world = await openChatWorld();
  const client = await codexClient(world);
  const threadId = await threadOf(world);
  const home = path.join(world.root, "home");
  const question = { home, selector: threadId, signal: new AbortController().signal };
  const said = await verifyRecord(world.heddle.journal, question);
  const upTo = await world.heddle.journal.position();
  const expected = { ...JSON.parse(JSON.stringify(said)), upTo, at: expect.any(Number) };
  expect(await client.call("evidence/verify", { subject: threadId })).toEqual(expected);
  expect(await refused(client, "evidence/verify", { subject: "01a1ddef-93e0-7cc1-b9f2-37a1a9a5b6b5" })).toBe(
    "thread.not-found",
  );
  expect(await refused(client, "evidence/verify", { level: 6 })).toBe("usage.invalid");
});

test("a bundle goes out and comes in over a connection, and is purged again", async () => {
  await using here = await openChatWorld();
  await using there = await openChatWorld();
  const bundle = await exported(await codexClient(here), await threadOf(here));
  const { keyId: trustKey = "", isSealed, damage } = await verifyExport(bundle);
  expect([isSealed, damage]).toEqual([true, []]);
  const client = await codexClient(there);
  expect(await refused(client, "evidence/import", { lines: bundle, isLast: true })).toBe("evidence.untrusted");
  const [first = "", ...rest] = bundle;
  const { importId } = (await client.call("evidence/import", { lines: [first] })) as { readonly importId: string };
  expect(await refused(client, "evidence/import", { lines: [] })).toBe("door.overloaded");
  expect(await refused(client, "evidence/import", { importId: "imp_other", lines: [] })).toBe("evidence.not-found");
  const done = await client.call("evidence/import", { importId, lines: rest, isLast: true, trustKey });
  expect(done).toMatchObject({ keyId: trustKey, known: 0, unread: 0 });
  expect(await refused(client, "evidence/import", { importId, lines: [] })).toBe("evidence.not-found");
  const { streams: [id = ""] = [] } = done as { readonly streams?: readonly string[] };
  expect(await client.call("evidence/purge", { id })).toEqual({ kind: "import", id });
});

test("an import whose client has gone leaves nothing, and another one can begin", async () => {
  await using world = await openChatWorld();
  const home = path.join(world.root, "home");
  const copies = async (): Promise<number> => (await readdir(home)).filter((name) => name.startsWith("import-")).length;
  const gone = await codexClient(world);
  await gone.call("evidence/import", { lines: ["{}"] });
  // What comes in has no name in the home, so that a server that is killed leaves none either.
  expect(await copies()).toBe(0);
  const next = await codexClient(world);
  const whole = { lines: ["{}"], isLast: true };
  expect(await refused(next, "evidence/import", whole)).toBe("door.overloaded");
  gone[Symbol.dispose]();
  const begins = () => refused(next, "evidence/import", whole);
  await expect.poll(begins, { timeout: 20_000 }).toBe("usage.invalid");
  expect(await copies()).toBe(0);
});
