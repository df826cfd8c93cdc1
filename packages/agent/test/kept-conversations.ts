/** A home with records of other programs, written by hand, and a journal to import them into. */
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { createRedactor, openJournal, type Journal } from "@heddle/journal";
import type { EventOf, StoredEvent } from "@heddle/protocol";
import type { Programs } from "../src/runners/programs/conversations.ts";
import { importConversation, type ImportedThread } from "../src/runners/programs/import-conversation.ts";

export interface Fixture extends AsyncDisposable {
  readonly home: string;
  readonly work: string;
  readonly journal: Journal;
  readonly programs: Programs;
  file(name: string, lines: readonly (object | string)[]): Promise<string>;
  take(handle: string, from?: string): Promise<ImportedThread>;
  events(threadId: string): Promise<readonly StoredEvent[]>;
}

export async function openFixture(): Promise<Fixture> {
  const root = await mkdtemp(path.join(tmpdir(), "heddle-adopt-"));
  const [home, work] = [path.join(root, "user"), path.join(root, "work")];
  await mkdir(home);
  await mkdir(work);
  const redactor = createRedactor(["a-known-secret-value"]);
  const journal = await openJournal({ home: path.join(root, "heddle"), redactor });
  const programs = { runners: {}, env: { HOME: home } };
  return {
    home,
    work,
    journal,
    programs,
    async file(name, lines) {
      const file = path.join(home, name);
      await mkdir(path.dirname(file), { recursive: true });
      await writeFile(
        file,
        lines.map((line) => `${typeof line === "string" ? line : JSON.stringify(line)}\n`).join(""),
      );
      return file;
    },
    take: (handle, from) => importConversation({ ...programs, journal, by: "user:owner", from, handle, folder: root }),
    events: (threadId) => journal.read({ stream: threadId, after: 0 }),
    async [Symbol.asyncDispose]() {
      await journal[Symbol.asyncDispose]();
      await rm(root, { recursive: true, force: true });
    },
  };
}

export const itemsOf = (events: readonly StoredEvent[]): readonly EventOf<"item.imported">[] =>
  events.flatMap(({ body }) => (body.type === "item.imported" ? [body] : []));
export const importsOf = (events: readonly StoredEvent[]): readonly EventOf<"thread.imported">[] =>
  events.flatMap(({ body }) => (body.type === "thread.imported" ? [body] : []));
