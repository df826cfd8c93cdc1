/** Who everybody waits for, and what to say of it. */
import type { Culprit } from "@heddle/protocol";
import { sightOf, type ProcessSight } from "@heddle/tools";

const MAX_CULPRITS = 5;

/** `used`: what each had used at an earlier look, by pid. The one that holds up the others comes first. */
export function findCulprits(pids: readonly number[], used: ReadonlyMap<number, number>): readonly Culprit[] {
  const sights = pids.map(sightOf).filter((sight) => sight !== undefined);
  const parents = new Set(sights.map(({ parent }) => parent));
  // Whoever has children waits for them; those are what hangs.
  const last = sights.filter(({ pid, state }) => !parents.has(pid) && state !== "Z" && state !== "X");
  return last
    .toSorted((a, b) => Number(b.readsStdin) - Number(a.readsStdin) || b.runningMs - a.runningMs)
    .slice(0, MAX_CULPRITS)
    .map((sight) => toCulprit(sight, used));
}

function toCulprit({ parent: _, waitChannel, ...sight }: ProcessSight, used: ReadonlyMap<number, number>): Culprit {
  const recentCpuMs = Math.max(0, sight.cpuMs - (used.get(sight.pid) ?? 0));
  return {
    ...sight,
    runningMs: Math.round(sight.runningMs),
    recentCpuMs,
    ...(waitChannel === undefined ? {} : { waitChannel }),
  };
}

export interface Silence {
  readonly quietMs: number;
  readonly culprits: readonly Culprit[];
  /** The turn waits for its model. */
  readonly asksModel: boolean;
}

export function describeSilence({ quietMs, culprits, asksModel }: Silence): string {
  const [first, ...others] = culprits;
  const quiet = `nothing has moved for ${Math.round(quietMs / 1000)} s`;
  if (first === undefined) return `${quiet}; ${asksModel ? "the model has not answered" : "no command is running"}`;
  const more = others.length === 0 ? "" : ` (+${others.length} more)`;
  return `${quiet}: ${first.command} (pid ${first.pid}) ${stateWords(first)}${more}`;
}

const STATES: Readonly<Record<string, string>> = {
  R: "runs",
  S: "sleeps",
  D: "waits for a device",
  T: "is stopped",
  t: "is stopped by a debugger",
};

function stateWords({ state, waitChannel, readsStdin, openSockets, cpuMs, recentCpuMs }: Culprit): string {
  const what = readsStdin ? "waits for input on stdin" : (STATES[state] ?? `is in state ${state}`);
  const facts = [
    ...(readsStdin || waitChannel === undefined ? [] : [`in ${waitChannel}`]),
    `CPU ${(cpuMs / 1000).toFixed(2)} s, ${(recentCpuMs / 1000).toFixed(2)} s of it lately`,
    ...(openSockets === 0 ? [] : [`${openSockets} sockets open`]),
  ];
  return `${what}; ${facts.join(", ")}`;
}
