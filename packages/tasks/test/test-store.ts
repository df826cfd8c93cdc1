/** A real journal on a temporary home, and tasks put into it event by event. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { openJournal, type Journal } from "@heddle/journal";
import { newTaskId, type StoredEvent, type TaskEventBody } from "@heddle/protocol";
import { TaskSpec, type TaskSpecInput } from "@heddle/protocol/tasks";

export interface TestStore extends AsyncDisposable {
  readonly folder: string;
  readonly home: string;
  readonly journal: Journal;
  /** Stores a new task and what happens to it; answers its id. */
  happen(
    bodies: readonly TaskEventBody[],
    options?: { readonly spec?: Partial<TaskSpecInput>; readonly id?: string },
  ): Promise<string>;
}

/** No test waits longer than this for what should come. */
const DEADLINE_MS = 60_000;

export async function openTestStore(options: { readonly folder?: string } = {}): Promise<TestStore> {
  const folder = options.folder ?? (await mkdtemp(path.join(tmpdir(), "heddle-tasks-")));
  const home = path.join(folder, "home");
  const journal = await openJournal({ home });
  return {
    folder,
    home,
    journal,
    async happen(bodies, { spec = {}, id } = {}) {
      const stream = id ?? newTaskId();
      const created: TaskEventBody = { type: "task.created", v: 1, spec: testSpec(spec), source: { kind: "cli" } };
      await journal.append({ stream, author: "user:owner", events: id === undefined ? [created, ...bodies] : bodies });
      return stream;
    },
    async [Symbol.asyncDispose]() {
      await journal[Symbol.asyncDispose]();
      if (options.folder === undefined) await rm(folder, { recursive: true, force: true });
    },
  };
}

function testSpec(spec: Partial<TaskSpecInput> = {}): TaskSpec {
  return TaskSpec.parse({ name: "fix the test", workspace: "/tmp/work", goal: "make it pass", ...spec });
}

/** Looks again and again until there is something. */
export async function eventually<T>(what: string, look: () => Promise<T | undefined> | T | undefined): Promise<T> {
  const deadline = Date.now() + DEADLINE_MS;
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    if (Date.now() > deadline) throw new Error(`${what}: not within ${DEADLINE_MS} ms`);
    await new Promise((resolve) => {
      setTimeout(resolve, 10);
    });
  }
}

export async function allEvents(journal: Journal): Promise<readonly StoredEvent[]> {
  const events: StoredEvent[] = [];
  for (let after = 0; ; after = events.at(-1)?.position ?? 0) {
    const page = await journal.read({ after });
    if (page.length === 0) return events;
    events.push(...page);
  }
}
