/**
 * For a body whose hash does not match: damaged or altered. What still has its shape can be shown, together with the damage.
 * Apart from reading verified bodies, because it loads every schema.
 */
import { HeddleError } from "../errors.ts";
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
