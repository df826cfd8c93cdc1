/** Appends that depend on a read: made on the version before the read, and tried again when others wrote. */
import type { Journal } from "@heddle/journal";
import { HeddleError, isHeddleError } from "@heddle/protocol";

/** Other writers of a stream are users and a process or two. */
const MAX_TRIES = 50;

/** `attempt` appends with the version it is given as `expectedVersion`. */
export async function appendAt<T>(
  journal: Pick<Journal, "version">,
  stream: string,
  attempt: (version: number) => Promise<T>,
): Promise<T> {
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    const version = await journal.version(stream);
    try {
      return await attempt(version);
    } catch (error) {
      if (!isHeddleError(error) || error.code !== "store.version-conflict") throw error;
    }
  }
  throw new HeddleError("store.busy", `thread ${stream} is being changed by another process; try again`);
}
