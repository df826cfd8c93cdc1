import type { RunnerHealth } from "./runner.ts";

/** Of runners that are part of Heddle. */
export const OWN_HEALTH: RunnerHealth = { isInstalled: true, login: "notNeeded", problems: [] };
