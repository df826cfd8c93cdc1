/** Plays scenarios through programs, two at a time. */
import type { Program } from "../program.ts";
import { playScenario, type Played } from "./play.ts";
import type { Scenario } from "./scenario.ts";
import { startProcess, type Start } from "./start.ts";

export interface PlayOptions {
  readonly onPlayed?: (played: Played) => void;
  /** How the program is started for a scenario; those that are played at the same time differ in their lane. */
  readonly startOf?: (scenario: Scenario, lane: number) => Start;
}

export async function playAll(
  program: Program,
  scenarios: readonly Scenario[],
  { onPlayed, startOf = () => startProcess(program) }: PlayOptions = {},
): Promise<ReadonlyMap<string, Played>> {
  const waiting = [...scenarios];
  const all = new Map<string, Played>();
  const play = async (lane: number): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const played = await playScenario(program, next, startOf(next, lane));
      all.set(next.id, played);
      onPlayed?.(played);
    }
  };
  await Promise.all([play(0), play(1)]);
  return all;
}
