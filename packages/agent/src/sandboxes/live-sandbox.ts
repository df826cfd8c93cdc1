/** The sandbox of a running turn. Whoever reads it gets that of the envelope the thread is in now. */
import type { ChangedSandbox, TurnSandbox } from "../runners/runner.ts";

export function liveSandbox(first: TurnSandbox): TurnSandbox {
  const { ceiling, bound } = first;
  let now: ChangedSandbox["sandboxContext"] = first;
  return {
    ceiling,
    bound,
    named: (id) => first.named(id),
    get envelope() {
      return now.envelope;
    },
    get sandbox() {
      return now.sandbox;
    },
    get state() {
      return now.state;
    },
    get mcp() {
      return now.mcp;
    },
    widen: (envelope, visible) => now.widen(envelope, visible),
    narrow: (envelope) => now.narrow(envelope),
    async change(envelope) {
      const changed = await now.change(envelope);
      now = changed.sandboxContext;
      return changed;
    },
  };
}
