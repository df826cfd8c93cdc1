/**
 * What came while the last commit was under way is committed together: one lock and one sync for all of it. Each succeeds or
 * fails by itself, in the order of the calls. Other work takes its turn among them.
 */
import { APPENDS, GROUPS, measure } from "@heddle/protocol/measure";
import type { Appended } from "../journal.ts";
import type { Member } from "./append-group.ts";
import type { PreparedAppend } from "./prepare.ts";

/** Of one transaction: more would keep other processes waiting. */
const MAX_MEMBERS = 256;
const MAX_CHARS = 4 * 1024 * 1024;

export interface Batches {
  add(prepared: PreparedAppend): Promise<Appended>;
  inTurn<T>(work: () => Promise<T>): Promise<T>;
  /** Resolves when nothing waits. */
  idle(): Promise<void>;
}

/** `commit` never rejects: every member gets its own result. `of`: the journal, for whoever measures. */
export function createBatches(commit: (members: readonly Member[]) => Promise<void>, of: object): Batches {
  const waiting: (Member | { readonly run: () => Promise<void> })[] = [];
  let working: Promise<void> | undefined;

  function begin(): void {
    working ??= work().finally(() => {
      working = undefined;
      if (waiting.length > 0) begin();
    });
  }

  async function work(): Promise<void> {
    // Everything that is called in this turn of the event loop goes together.
    await Promise.resolve();
    for (let first = waiting[0]; first !== undefined; first = waiting[0]) {
      if ("run" in first) {
        waiting.shift();
        await first.run();
      } else await commit(takeGroup());
    }
  }

  function takeGroup(): readonly Member[] {
    const group: Member[] = [];
    let chars = 0;
    for (const next of waiting) {
      if ("run" in next || group.length >= MAX_MEMBERS || (group.length > 0 && chars >= MAX_CHARS)) break;
      group.push(next);
      chars += next.prepared.chars;
    }
    waiting.splice(0, group.length);
    if (GROUPS.isOn) GROUPS.publish({ of, appends: group.length });
    return group;
  }

  return {
    add(prepared) {
      const { promise, resolve, reject } = Promise.withResolvers<Appended>();
      waiting.push({ prepared, resolve, reject });
      begin();
      return APPENDS.isOn ? measure(APPENDS, { of, stream: prepared.append.stream }, () => promise) : promise;
    },
    inTurn(work) {
      return new Promise((resolve, reject) => {
        waiting.push({ run: () => work().then(resolve, reject) });
        begin();
      });
    },
    async idle() {
      while (working !== undefined) await working;
    },
  };
}
