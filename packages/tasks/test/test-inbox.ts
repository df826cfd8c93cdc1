/** An inbox on a test store, with a workspace for its orders. */
import { mkdir, readdir, writeFile } from "node:fs/promises";
import path from "node:path";
import type { TaskRecord } from "@heddle/protocol";
import { openInbox, type InboxOptions } from "../src/inbox/open-inbox.ts";
import { openTasks } from "../src/open-tasks.ts";
import { eventually, openTestStore, type TestStore } from "./test-store.ts";

export interface TestInbox extends AsyncDisposable {
  readonly store: TestStore;
  readonly folder: string;
  readonly workspace: string;
  readonly said: string[];
  open(options?: Partial<InboxOptions>): Promise<AsyncDisposable>;
  put(name: string, text: string | Buffer): Promise<void>;
  files(): Promise<readonly string[]>;
  tasks(): Promise<readonly TaskRecord[]>;
  /** The one name that begins so, once it is there. */
  appears(begin: string): Promise<string>;
}

export async function openTestInbox(): Promise<TestInbox> {
  const store = await openTestStore();
  const folder = path.join(store.folder, "inbox");
  const workspace = path.join(store.folder, "work");
  await mkdir(workspace);
  const said: string[] = [];
  // Entries with their kind: what is found by name alone is followed where it leads, and may be renamed meanwhile.
  const files = async (): Promise<readonly string[]> => {
    const entries = await readdir(folder, { recursive: true, withFileTypes: true });
    return entries.map(({ parentPath, name }) => path.relative(folder, path.join(parentPath, name))).toSorted();
  };
  return {
    store,
    folder,
    workspace,
    said,
    open: (options = {}) =>
      openInbox({
        journal: store.journal,
        tasks: openTasks({ journal: store.journal }).as("user:owner"),
        folder,
        settleMs: 60,
        log: (line) => void said.push(line),
        ...options,
      }),
    async put(name, text) {
      const file = path.join(folder, name);
      await mkdir(path.dirname(file), { recursive: true });
      await writeFile(file, text);
    },
    files,
    tasks: async () => (await store.journal.tasks.page({ limit: 100 })).toReversed(),
    appears: (begin) => eventually(begin, async () => (await files()).find((name) => name.startsWith(begin))),
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  };
}

export const order = (workspace: string, goal = "Do it."): string => `---\nworkspace: ${workspace}\n---\n${goal}\n`;
