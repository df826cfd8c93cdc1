/** How far a reader of the journal has read (projection `sinks`). A new reader begins now. */
import type { Journal } from "@heddle/journal";
import { sinkStream } from "./sink.ts";

export type ReadMark = Awaited<ReturnType<typeof openReadMark>>;

/** The most events that are read again after a kill. */
const READ_AGAIN_EVENTS = 1_000;

export async function openReadMark(journal: Journal, name: string) {
  const known = await journal.notifications.cursor(name);
  let position = known ?? (await journal.position());
  let stored = known ?? -1;
  const store = async (): Promise<void> => {
    if (position <= stored) return;
    await journal.append({
      stream: sinkStream(name),
      author: "system",
      durability: "relaxed",
      events: [{ type: "notification.read", v: 1, sink: name, position }],
    });
    stored = position;
  };
  await store();
  return {
    /** Everything up to here is dealt with. */
    get position(): number {
      return position;
    },
    /** Stores it now and then, so that a restart reads little again. */
    async advance(to: number): Promise<void> {
      position = Math.max(position, to);
      if (position - stored >= READ_AGAIN_EVENTS) await store();
    },
    store,
  };
}
