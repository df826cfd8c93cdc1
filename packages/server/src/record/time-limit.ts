/** Work through a door that has no bound of its own: given up after a time, with a reason, and ended when nobody waits. */
import type { HeddleError } from "@heddle/protocol";

export async function withinLimit<T>(
  gone: AbortSignal,
  { ms, refuse }: { readonly ms: number; readonly refuse: () => HeddleError },
  run: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const limit = AbortSignal.timeout(ms);
  try {
    return await run(AbortSignal.any([gone, limit]));
  } catch (error) {
    if (!limit.aborted || gone.aborted) throw error;
    throw refuse();
  }
}
