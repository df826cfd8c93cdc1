/** What a caller may do with the envelope of an idle thread: hop, and run a gate. Loaded with the first call. */
import type { Author } from "@heddle/protocol";
import type { Acts } from "../heddle.ts";
import type { GateEngine } from "./gates.ts";

export type { HopEngine } from "./thread-hop.ts";

export function hopActs(engine: GateEngine, by: Author): Pick<Acts, "hopThread" | "runGate"> {
  return {
    hopThread: async (hop) => (await import("./thread-hop.ts")).hopThread(engine, { ...hop, by }),
    runGate: async (run) => (await import("./gates.ts")).runGate(engine, { ...run, by }),
  };
}
