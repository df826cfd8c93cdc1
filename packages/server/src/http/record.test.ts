/** The record over HTTP: what it answers is what the command line says of the same home. */
import { readdir } from "node:fs/promises";
import { verifyExport } from "@heddle/journal";
import { ImportAnswer, LastVerdict, VerdictAnswer } from "@heddle/protocol/http";
import { verifyRecord } from "@heddle/tasks/verification";
import { expect, test } from "vitest";
import { ask, openHttpWorld, type HttpWorld, type Role } from "../../test/http-world.ts";

/** The calls of a client, each answered or thrown with the code of its refusal. */
function clientOf(world: HttpWorld, role: Role = "owner") {
  const send = async (path: string, init: RequestInit & { readonly type?: string } = {}): Promise<Response> => {
    const headers = { authorization: `Bearer ${world.tokens[role]}`, "content-type": init.type ?? "application/json" };
    const response = await fetch(`${world.url}/api/${path}`, { ...init, headers });
    if (response.ok) return response;
    throw ((await response.json()) as { readonly error: unknown }).error;
  };
  const post = async (path: string, body: unknown) =>
    (await send(path, { method: "POST", body: JSON.stringify(body) })).json() as Promise<Record<string, unknown>>;
  return {
    verify: (question: object = {}) => post("verify", question),
    lastVerdict: async (subject?: string) =>
      LastVerdict.parse(await (await send(subject === undefined ? "verify" : `verify?subject=${subject}`)).json()),
    export: (threadId: string) => send(`threads/${threadId}/bundle`),
    async import(lines: string | ReadableStream, trustKey?: string) {
      const query = trustKey === undefined ? "" : `?trustKey=${trustKey}`;
      const init = { method: "POST", type: "application/x-ndjson", body: lines, duplex: "half" as const };
      return ImportAnswer.parse(await (await send(`evidence/import${query}`, init)).json());
    },
    purge: (id: string) => post("evidence/purge", { id }),
    note: async (path: string, note: object) => String((await post(path, note))["id"]),
    get: (id: string) => send(`evidence/${id}`),
    count: async (origin: string) => (await (await send(`evidence/count?origin=${origin}`)).json()) as object,
  };
}

async function bundleOf(world: HttpWorld, threadId: string): Promise<string> {
  return (await clientOf(world).export(threadId)).text();
}

async function keyOf(bundle: string): Promise<string> {
  return (await verifyExport(bundle.split("\n"))).keyId ?? "";
}

const refusal = (asked: Promise<unknown>): Promise<unknown> =>
  asked.then(
    () => "answered",
    ({ code }: { readonly code?: string }) => code,
  );

test("a verification answers what the command line says, of a thread and of the whole record, and names what is not there", async () => {
  await using world = await openHttpWorld();
  const threadId = await world.newThread();
  await world.append(threadId, 20);
  const evidence = clientOf(world, "user");
  const { journal } = world.heddle;
  for (const subject of [threadId, undefined]) {
    const question = { home: world.home, selector: subject, signal: new AbortController().signal };
    const said = await verifyRecord(journal, question);
    expect(await evidence.lastVerdict(subject)).toMatchObject({ verdict: null });
    const answer = VerdictAnswer.parse(await evidence.verify(subject === undefined ? {} : { subject }));
    const { at, upTo, ...found } = answer;
    expect(found).toEqual(JSON.parse(JSON.stringify(said)));
    expect([upTo, at <= Date.now()]).toEqual([await journal.position(), true]);
    await world.append(threadId, 1);
    // What came later is not covered, and the last verdict says so.
    const position = await journal.position();
    expect(position).toBeGreaterThan(upTo);
    expect(await clientOf(world, "viewer").lastVerdict(subject)).toEqual({ verdict: answer, position });
  }
  expect(
    VerdictAnswer.parse(await evidence.verify({ subject: threadId, level: 2 })).levels.map(({ level }) => level),
  ).toEqual([1, 2]);
  expect(await refusal(evidence.verify({ subject: "01a1ddef-93e0-7cc1-b9f2-37a1a9a5b6b5" }))).toBe("thread.not-found");
  expect(await refusal(clientOf(world, "viewer").verify())).toBe("door.forbidden");
  const level = { method: "POST", token: world.tokens.user, body: { level: 6 } };
  expect((await ask(world.port, "/api/verify", level)).status).toBe(400);
});

test("a thread is exported as a bundle that verifies, imported elsewhere once its key is trusted, and purged again", async () => {
  await using here = await openHttpWorld();
  await using there = await openHttpWorld();
  const threadId = await here.newThread();
  await here.append(threadId, 30, 20_000);
  const bundle = await bundleOf(here, threadId);
  expect(await verifyExport(bundle.split("\n"))).toMatchObject({ isSealed: true, unsigned: [], damage: [] });
  const evidence = clientOf(there);
  expect(await refusal(evidence.import(bundle))).toBe("evidence.untrusted");
  const trustKey = await keyOf(bundle);
  const done = await evidence.import(bundle, trustKey);
  expect(done).toMatchObject({ keyId: trustKey, known: 0 });
  expect(done.imported).toBeGreaterThan(0);
  // As a stream, and known by now.
  const again = await evidence.import(new Blob([bundle]).stream());
  expect(again).toMatchObject({ imported: 0, known: done.imported });
  expect(await evidence.count("imported")).toEqual({ count: done.imported });
  const [stream = ""] = done.streams;
  expect(await evidence.purge(stream)).toEqual({ kind: "import", id: stream });
  expect(await evidence.count("imported")).toEqual({ count: 0 });
  expect(await refusal(evidence.purge(stream))).toBe("evidence.not-found");
  expect((await readdir(there.home)).filter((name) => name.startsWith("import-"))).toEqual([]);
});

test("a bundle that was changed, is cut or is none is refused, and nothing of it stays", async () => {
  await using here = await openHttpWorld();
  await using there = await openHttpWorld();
  const threadId = await here.newThread();
  await here.append(threadId, 5);
  const bundle = await bundleOf(here, threadId);
  const trustKey = await keyOf(bundle);
  const evidence = clientOf(there);
  const changed = bundle.replace("xxxxxxxxxx", "xxxxxyxxxx");
  expect(await refusal(evidence.import(changed, trustKey))).toBe("evidence.tampered");
  const cut = bundle.slice(0, bundle.lastIndexOf("\n", bundle.length - 2) + 1);
  expect(await refusal(evidence.import(cut, trustKey))).toBe("evidence.tampered");
  expect(await refusal(evidence.import("hello\n", trustKey))).toBe("usage.invalid");
  expect(await evidence.count("imported")).toEqual({ count: 0 });
  expect((await readdir(there.home)).filter((name) => name.startsWith("import-"))).toEqual([]);
});

test("a note, a thread and an import are purged by their id alone, by nobody but an owner", async () => {
  await using world = await openHttpWorld();
  const threadId = await world.newThread();
  const evidence = clientOf(world);
  const note = { claim: "conclusion", text: "found", subject: { type: "lesson", id: "ports" } } as const;
  const id = await evidence.note("evidence", note);
  const inThread = await evidence.note(`threads/${threadId}/evidence`, { claim: "step", text: "here" });
  const user = clientOf(world, "user");
  for (const one of [id, threadId]) expect(await refusal(user.purge(one))).toBe("door.forbidden");
  expect(await refusal(user.export(threadId))).toBe("door.forbidden");
  expect(await refusal(user.import(""))).toBe("door.forbidden");
  expect(await refusal(evidence.purge(inThread))).toBe("usage.invalid");
  expect(await evidence.purge(id)).toEqual({ kind: "note", id });
  expect(await evidence.purge(threadId)).toEqual({ kind: "thread", id: threadId });
  expect(await refusal(evidence.get(inThread))).toBe("evidence.not-found");
  expect(await evidence.verify()).toMatchObject({ result: "clean" });
});
