/**
 * New source that is no source: without it the checks, or the setup before them, make a file of that name themselves. It stands
 * in the place of what is built, and a builder that goes by times takes it for built.
 */
import type { CheckOptions } from "../checks/check.ts";
import type { Change } from "../tree/manifest.ts";
import { judgePicked, type ToJudge } from "./judge-picked.ts";

/** Of `found`, in what `toJudge` picks. */
export async function productsAmong(
  checkOptions: CheckOptions,
  { baseline, room }: ToJudge,
  found: readonly Change[],
): Promise<readonly Change[]> {
  const awaited = found.map(({ path }) => path);
  const own = new Set(awaited);
  const picked = room.picked.filter(({ path }) => !own.has(path));
  const { ran } = await judgePicked(checkOptions, { baseline, room: { ...room, picked, awaited } }, "work");
  return found.filter(({ path }) => ran.some(({ made }) => made.has(path)));
}
