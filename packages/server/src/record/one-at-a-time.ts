/** Work that reads or writes much of the record: one of its kind at a time in a server, whoever asks for it, at whichever door. */
import { HeddleError } from "@heddle/protocol";

const busy = new WeakMap<object, Set<string>>();

/** Throws `door.overloaded` while the same is under way. `store`: the journal of the server. */
export function takeTurn(store: object, work: string): Disposable {
  const under = busy.get(store) ?? new Set<string>();
  busy.set(store, under);
  if (under.has(work))
    throw new HeddleError("door.overloaded", `${work} is under way already; try again when it is over`);
  under.add(work);
  return { [Symbol.dispose]: () => void under.delete(work) };
}
