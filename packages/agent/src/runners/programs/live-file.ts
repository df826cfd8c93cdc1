/** Where it says how a person joins a turn that runs (`live-door.ts`). */
import { join } from "node:path";

export function liveFile(home: string, turnId: string): string {
  return join(home, "live", `${turnId}.json`);
}
