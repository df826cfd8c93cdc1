/**
 * Appends of one tick of the event loop are committed together: one transaction and one sync. Each succeeds or fails by
 * itself, in the order of the calls, and is acknowledged only when all are durable. While only one stream is written,
 * nothing is waited for.
 */
import { APPENDS, GROUPS, measure } from "@heddle/protocol/measure";
import type { Appended } from "../journal.ts";
import type { PreparedAppend } from "./prepare.ts";

export interface Member {
  readonly prepared: PreparedAppend;
  readonly resolve: (appended: Appended) => void;
  readonly reject: (error: unknown) => void;
}

export type AppendGroup = ReturnType<typeof createAppendGroup>;

/** After this many groups of a single stream, others are not waited for. */
const QUIET_GROUPS = 4;

/** `of`: the journal, for whoever measures. */
export function createAppendGroup(commit: (members: readonly Member[]) => void, of: object = {}) {
  let members: Member[] = [];
  const streams = new Set<string>();
  let tickEnd: NodeJS.Immediate | undefined;
  let quiet = QUIET_GROUPS;

  /** Commits what has come so far before anything else begins. */
  function flush(): void {
    if (members.length === 0) return;
    const group = members;
    members = [];
    if (GROUPS.isOn) GROUPS.publish({ of, appends: group.length });
    commit(group);
  }

  function endTick(): void {
    tickEnd = undefined;
    quiet = streams.size > 1 ? 0 : quiet + 1;
    streams.clear();
    flush();
  }

  return {
    add(prepared: PreparedAppend): Promise<Appended> {
      const { promise, resolve, reject } = Promise.withResolvers<Appended>();
      members.push({ prepared, resolve, reject });
      streams.add(prepared.append.stream);
      tickEnd ??= setImmediate(endTick);
      if (quiet >= QUIET_GROUPS) queueMicrotask(flush);
      return APPENDS.isOn ? measure(APPENDS, { of, stream: prepared.append.stream }, () => promise) : promise;
    },
    flush,
  };
}

export type Outcome = { readonly appended: Appended } | { readonly error: unknown };
