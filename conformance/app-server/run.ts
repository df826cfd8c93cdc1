/** Plays scenarios through programs, two at a time. */
import type { Program } from "../program.ts";
import { playScenario, type Played } from "./play.ts";
import type { Scenario } from "./scenario.ts";

export async function playAll(
  program: Program,
  scenarios: readonly Scenario[],
  onPlayed: (played: Played) => void = () => undefined,
): Promise<ReadonlyMap<string, Played>> {
  const waiting = [...scenarios];
  const all = new Map<string, Played>();
  const worker = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const played = await playScenario(program, next);
      all.set(next.id, played);
      onPlayed(played);
    }
  };
  await Promise.all([worker(), worker()]);
  return all;
}
