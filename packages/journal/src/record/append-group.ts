/**
 * Appends that come together are committed together: one transaction and one sync for all that arrive in the same tick of
 * the event loop. Each stands or falls by itself, in the order of the calls, and is acknowledged only when all are durable.
 * Where only one stream is written, waiting for others would be for nothing, so they are waited for only while several are.
 */
import type { Appended } from "../journal.ts";
import type { PreparedAppend } from "./prepare.ts";

export interface Member {
  readonly prepared: PreparedAppend;
  readonly resolve: (appended: Appended) => void;
  readonly reject: (error: unknown) => void;
}

export interface AppendGroup {
  add(prepared: PreparedAppend): Promise<Appended>;
  /** Commits what has come so far before anything else is begun. */
  flush(): void;
}

/** So many groups of a single stream, and nobody else is waited for any more. */
const QUIET_GROUPS = 4;

export function createAppendGroup(commit: (members: readonly Member[]) => void): AppendGroup {
  let members: Member[] = [];
  /** Streams that were written in this tick of the event loop. */
  const streams = new Set<string>();
  let tickEnd: NodeJS.Immediate | undefined;
  let quiet = QUIET_GROUPS;

  function flush(): void {
    if (members.length === 0) return;
    const group = members;
    members = [];
    commit(group);
  }

  function endTick(): void {
    tickEnd = undefined;
    quiet = streams.size > 1 ? 0 : quiet + 1;
    streams.clear();
    flush();
  }

  return {
    add(prepared) {
      const { promise, resolve, reject } = Promise.withResolvers<Appended>();
      members.push({ prepared, resolve, reject });
      streams.add(prepared.append.stream);
      tickEnd ??= setImmediate(endTick);
      if (quiet >= QUIET_GROUPS) queueMicrotask(flush);
      return promise;
    },
    flush,
  };
}

export type Outcome = { readonly appended: Appended } | { readonly error: unknown };
