/** An entry of the evidence by the beginning of its id, as threads and tasks are found. */
import { HeddleError, visibleLine } from "@heddle/protocol";
import type { Journal } from "@heddle/journal";

const PREFIX = "evt_";
/** The first eight digits of an id stand for about a minute; fewer are a mistake. */
const MIN_CHARS = PREFIX.length + 8;
const MAX_CANDIDATES = 10;

/** The whole id; `evt_` may be left out. */
export async function findEntry(journal: Journal, selector: string): Promise<string> {
  const wanted = selector.startsWith(PREFIX) ? selector : `${PREFIX}${selector}`;
  if ((await journal.evidence.get(wanted)) !== undefined) return wanted;
  const found =
    wanted.length < MIN_CHARS ? [] : await journal.evidence.beginningWith(wanted, { limit: MAX_CANDIDATES + 1 });
  const [first] = found;
  const shown = visibleLine(selector);
  if (first === undefined) {
    const message = `there is no entry ${shown}; heddle evidence query shows them`;
    throw new HeddleError("evidence.not-found", message, { details: { id: selector } });
  }
  if (found.length === 1) return first;
  const candidates = found.slice(0, MAX_CANDIDATES);
  const lines = candidates.map((id) => `\n  ${id}`).join("");
  const more = found.length > MAX_CANDIDATES ? "\n  …" : "";
  throw new HeddleError("usage.invalid", `${shown} fits more than one entry; write more of its id:${lines}${more}`, {
    details: { candidates: candidates.join(" ") },
  });
}
