/** The tasks of this home, for commands that look and for those that change something. */
import { openJournal, type Journal } from "@heddle/journal";
import { HeddleError, OWNER, visibleLine } from "@heddle/protocol";
import { finishPutting, openTasks, type Tasks } from "@heddle/tasks";
import { knownSecrets } from "./known-secrets.ts";
import { heddleHome, makeHome } from "../config/read-config.ts";
import { openRecord } from "./record.ts";
import { storeAddressOf } from "../config/store-address.ts";
import { ticketsWhenSent } from "./tickets.ts";

type Log = (line: string) => void;

export interface TaskStore extends AsyncDisposable {
  readonly journal: Journal;
  readonly tasks: Tasks;
}

/** Makes the home where there is none. */
export async function openTaskStore(env: NodeJS.ProcessEnv, log: Log): Promise<TaskStore> {
  const home = await makeHome(env);
  const store = await storeAddressOf(env);
  const tickets = ticketsWhenSent(store, log);
  const journal = await openJournal({ home, store, tickets, secrets: await knownSecrets(env) });
  return await storeOf(journal, { home, tickets, log });
}

/** undefined: this home has no record yet. */
export async function lookAtTasks(env: NodeJS.ProcessEnv, log: Log): Promise<TaskStore | undefined> {
  const tickets = ticketsWhenSent(await storeAddressOf(env), log);
  const journal = await openRecord(env, tickets);
  return journal === undefined ? undefined : await storeOf(journal, { home: heddleHome(env), tickets, log });
}

/** For one task that must be there. */
export async function requireTasks(env: NodeJS.ProcessEnv, selector: string, log: Log): Promise<TaskStore> {
  const store = await lookAtTasks(env, log);
  if (store !== undefined) {
    // The caller may change it.
    store.journal.redactor.learn(await knownSecrets(env));
    return store;
  }
  throw new HeddleError(
    "task.not-found",
    `there is no task ${visibleLine(selector)}: ${heddleHome(env)} has no record`,
  );
}

interface Opened {
  readonly home: string;
  readonly tickets: AsyncDisposable | undefined;
  readonly log: Log;
}

/** What a process that died was putting into a workspace is finished before anybody looks. */
async function storeOf(journal: Journal, { home, tickets, log }: Opened): Promise<TaskStore> {
  await finishPutting({ journal, home, log });
  const tasks = openTasks({ journal, home }).as(OWNER);
  return {
    journal,
    tasks,
    async [Symbol.asyncDispose]() {
      await journal[Symbol.asyncDispose]();
      await tickets?.[Symbol.asyncDispose]();
    },
  };
}
