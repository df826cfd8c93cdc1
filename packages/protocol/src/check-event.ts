/**
 * For a body whose hash is not its own any more: damaged, or altered by somebody. What still has its shape can be shown, with
 * the damage named beside it; anything else cannot. Apart from reading proven bodies, because it brings every schema along.
 */
import { HeddleError } from "./errors.ts";
import { EventBody } from "./events.ts";
import { upcast } from "./upcast.ts";

export function checkEvent(stored: unknown): EventBody {
  const body = upcast(stored);
  const parsed = EventBody.safeParse(body);
  if (parsed.success) return parsed.data;
  throw new HeddleError("store.damaged", `a stored ${body.type} v${body.v} does not have its shape`, {
    cause: parsed.error,
  });
}
