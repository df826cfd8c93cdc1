import type { Journal } from "@heddle/journal";
import { reasonOf } from "@heddle/protocol";
import type { HeddleOptions } from "../heddle.ts";
import type { Background } from "./background.ts";

/** For servers alone. */
export async function openBeside(
  { background, providers, env, isUnattended, log }: HeddleOptions,
  journal: Journal,
): Promise<Background | undefined> {
  if (!isUnattended) journal.finishPurges().catch((error: unknown) => log?.(reasonOf(error)));
  if (background === undefined) return undefined;
  const { openBackground } = await import("./background.ts");
  return openBackground({ journal, providers, env, model: background.model });
}
