/**
 * Appends that come together are committed together: one transaction and one sync for all that arrive in the same turn of
 * the event loop. Each stands or falls by itself, in the order of the calls, and is acknowledged only when all are durable.
 */
import { isHeddleError } from "@heddle/protocol";
import { store, type PreparedAppend } from "./append.ts";
import type { Connection } from "./driver.ts";
import type { Appended } from "./journal.ts";

export interface Member {
  readonly prepared: PreparedAppend;
  readonly resolve: (appended: Appended) => void;
  readonly reject: (error: unknown) => void;
}

export interface AppendGroup {
  add(prepared: PreparedAppend): Promise<Appended>;
  /** Commits what has come so far before anything else is begun. */
  close(): void;
}

export function createAppendGroup(commit: (members: readonly Member[]) => void): AppendGroup {
  let members: Member[] = [];
  let due: NodeJS.Immediate | undefined;

  function close(): void {
    if (due === undefined) return;
    clearImmediate(due);
    due = undefined;
    commit(members);
    members = [];
  }

  return {
    add(prepared) {
      const { promise, resolve, reject } = Promise.withResolvers<Appended>();
      members.push({ prepared, resolve, reject });
      due ??= setImmediate(close);
      return promise;
    },
    close,
  };
}

export type Outcome = { readonly appended: Appended } | { readonly error: unknown };

/** Inside the write transaction: what one append is refused for undoes that one alone. */
export function storeAll(connection: Connection, members: readonly Member[], now: () => number): Outcome[] {
  return members.map(({ prepared }): Outcome => {
    connection.run("SAVEPOINT member");
    try {
      const appended = store(connection, prepared, now());
      connection.run("RELEASE member");
      return { appended };
    } catch (error) {
      // Anything else is the disk's or the database's, and everybody's.
      if (!isHeddleError(error)) throw error;
      connection.run("ROLLBACK TO member");
      connection.run("RELEASE member");
      return { error };
    }
  });
}
