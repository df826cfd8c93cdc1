/** Before `e2e/world.ts` is loaded: the launcher that has the real page beside it. */
import { inject } from "vitest";

process.env["HEDDLE_E2E_LAUNCHER"] = inject("launcherWithPage");
