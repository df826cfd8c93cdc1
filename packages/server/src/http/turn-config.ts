/** What a turn runs with that begins now, and where each value is from. */
import { toHeddleError, type TurnSettings } from "@heddle/protocol";
import type { ConfigAnswer } from "@heddle/protocol/http";
import type { z } from "zod";
import { isOwner } from "../access/full-access.ts";
import type { HttpCall } from "./route.ts";

type Config = Pick<z.output<typeof ConfigAnswer>, "file" | "turn" | "problem">;

/** Only these: other settings may hold what only the owner knows. */
const SHOWN = [
  "runner",
  "provider",
  "model",
  "effort",
  "sandboxMode",
  "networkAccess",
  "approvalPolicy",
  "envelope",
  "ceiling",
  "contextTokens",
] as const satisfies readonly (keyof TurnSettings)[];

export async function turnConfig({ context, principal }: HttpCall): Promise<Config> {
  const { settings: source, configFile, cwd } = context;
  const file = isOwner(principal) && configFile !== undefined ? { file: configFile } : {};
  try {
    const request = { workspace: cwd };
    const explained = await source.explain?.(request);
    const settings = explained?.settings ?? (await source.resolve(request));
    const shown = SHOWN.flatMap((key) => (settings[key] === undefined ? [] : [[key, settings[key]] as const]));
    const { provider, model } = settings;
    return {
      ...file,
      turn: {
        settings: { ...Object.fromEntries(shown), provider, model },
        sources: Object.fromEntries(Object.entries(explained?.sources ?? {}).filter(([key]) => isShown(key))),
      },
    };
  } catch (error) {
    const { code, message } = toHeddleError(error);
    if (code === "internal") throw error;
    return { ...file, problem: { code, message } };
  }
}

function isShown(key: string): boolean {
  return (SHOWN as readonly string[]).includes(key);
}
