import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openJournal, type Journal } from "@heddle/journal";
import { newThreadId, type EvidenceNote, type EvidenceQuery } from "@heddle/protocol";
import { expect, test } from "vitest";
import { noteEvidence, purgeNote } from "./notes.ts";

interface Store extends AsyncDisposable {
  readonly journal: Journal;
  readonly threadId: string;
}

async function openStore(): Promise<Store> {
  const home = await mkdtemp(join(tmpdir(), "heddle-notes-"));
  const journal = await openJournal({ home });
  const threadId = newThreadId();
  const events = [{ type: "thread.created", v: 1, workspace: "/w", origin: "test" }] as const;
  await journal.append({ stream: threadId, author: "user:owner", events });
  return {
    journal,
    threadId,
    async [Symbol.asyncDispose]() {
      await journal[Symbol.asyncDispose]();
      await rm(home, { recursive: true, force: true });
    },
  };
}

test("V1: the same note again is stored once; another note under its id is a conflict", async () => {
  await using store = await openStore();
  const { journal, threadId } = store;
  const note: EvidenceNote = {
    noteId: "note_1",
    claim: "conclusion",
    text: "the tests need node 24",
    tags: ["b", "a", "b"],
  };
  const first = await noteEvidence(journal, { threadId, note, by: "agent:embedded" });
  expect(first).toMatchObject({
    tags: ["a", "b"],
    subject: { type: "thread", id: threadId },
    author: "agent:embedded",
  });
  expect(await noteEvidence(journal, { threadId, note, by: "agent:embedded" })).toEqual(first);
  expect(await journal.evidence.count({ type: "evidence.noted" })).toBe(1);
  const other = noteEvidence(journal, { threadId, note: { ...note, text: "node 22" }, by: "agent:embedded" });
  await expect(other).rejects.toMatchObject({ code: "store.id-conflict" });
  const { noteId: _id, ...unnamed } = note;
  await noteEvidence(journal, { threadId, note: unnamed, by: "agent:embedded" });
  expect(await journal.evidence.count({ type: "evidence.noted" })).toBe(2);
});

test("V2: a reply needs an entry to reply to, and a note a thread", async () => {
  await using store = await openStore();
  const { journal, threadId } = store;
  const note: EvidenceNote = { claim: "correction", text: "no", replyTo: "evt_none" };
  await expect(noteEvidence(journal, { threadId, note, by: "system" })).rejects.toMatchObject({
    code: "evidence.not-found",
  });
  const created = (await journal.read({ stream: threadId, after: 0 }))[0];
  // Stored, but no entry.
  const toEvent = noteEvidence(journal, { threadId, note: { ...note, replyTo: created?.id ?? "" }, by: "system" });
  await expect(toEvent).rejects.toMatchObject({ code: "evidence.not-found" });
  const nowhere = noteEvidence(journal, { threadId: newThreadId(), note: { claim: "step", text: "x" }, by: "system" });
  await expect(nowhere).rejects.toMatchObject({ code: "thread.not-found" });
  expect(await journal.version(threadId)).toBe(1);
});

test("V18: whoever calls is the author; a note that names one is refused, and says which field", async () => {
  await using store = await openStore();
  const { journal, threadId } = store;
  const forged = { claim: "step", text: "x", author: "user:owner" } as EvidenceNote;
  const refused = noteEvidence(journal, { threadId, note: forged, by: "agent:embedded" });
  await expect(refused).rejects.toMatchObject({ code: "usage.invalid", message: expect.stringContaining("author") });
  const entry = await noteEvidence(journal, { threadId, note: { claim: "step", text: "x" }, by: "user:ann" });
  expect(entry.author).toBe("user:ann");
});

test("evidence spans time scales: a lesson beside any thread is found by subject, tag, task and words, corrected, and purged alone", async () => {
  await using store = await openStore();
  const { journal, threadId } = store;
  const lesson: EvidenceNote = {
    noteId: "ports",
    claim: "conclusion",
    text: "the flaky test needs a free port",
    subject: { type: "lesson", id: "ports" },
    tags: ["tests"],
  };
  const by = "user:ann";
  const kept = await noteEvidence(journal, { note: lesson, by });
  expect(kept).toMatchObject({ stream: expect.stringMatching(/^note_/), subject: lesson.subject, author: by });
  expect("thread" in kept).toBe(false);
  // Sent again it is the same one, and it cannot be told otherwise.
  expect(await noteEvidence(journal, { note: lesson, by })).toEqual(kept);
  const forged = noteEvidence(journal, { note: { ...lesson, text: "it needs two" }, by });
  await expect(forged).rejects.toMatchObject({ code: "store.id-conflict" });

  const taskId = "task_01a1ddef-93e0-7cc1-b9f2-37a1a9a5b6b5";
  const aboutTask: EvidenceNote = { claim: "step", text: "look here next time", subject: { type: "task", id: taskId } };
  const ofTask = await noteEvidence(journal, { note: aboutTask, by });
  const inThread = await noteEvidence(journal, {
    threadId,
    note: { claim: "correction", text: "it needs two", replyTo: kept.id },
    by: "agent:embedded",
  });
  const ids = async (query: EvidenceQuery) => (await journal.evidence.query(query)).entries.map(({ id }) => id);
  expect(await ids({ subject: { type: "lesson" } })).toEqual([kept.id]);
  expect(await ids({ tags: ["tests"] })).toEqual([kept.id]);
  expect(await ids({ text: "flaky port" })).toEqual([kept.id]);
  expect(await ids({ task: taskId })).toEqual([ofTask.id]);
  expect((await journal.evidence.get(kept.id))?.correctedBy).toBe(inThread.id);
  expect((await journal.evidence.ancestors(inThread.id)).entries.map(({ id }) => id)).toEqual([kept.id]);

  await purgeNote(journal, { id: kept.id, by: "user:owner" });
  expect(await ids({ text: "flaky" })).toEqual([]);
  expect(await ids({ type: "evidence.noted" })).toEqual([inThread.id, ofTask.id]);
  expect(await journal.verify()).toMatchObject({ damage: [] });
  const again = purgeNote(journal, { id: kept.id, by: "user:owner" });
  await expect(again).rejects.toMatchObject({ code: "evidence.not-found" });
  const ofThread = purgeNote(journal, { id: inThread.id, by: "user:owner" });
  await expect(ofThread).rejects.toMatchObject({ code: "usage.invalid" });
});

test("a note beside any thread says what it is about", async () => {
  await using store = await openStore();
  const note: EvidenceNote = { claim: "step", text: "x" };
  await expect(noteEvidence(store.journal, { note, by: "system" })).rejects.toMatchObject({ code: "usage.invalid" });
});
