/**
 * Items of an agent program, by its own names for them: begun once, ended once, in order, whatever the order in which it
 * tells of them. Its whole form of an item counts more than the pieces before it, and is not told a second time.
 */
import { newItemId, type Item, type ItemDelta } from "@heddle/protocol";
import type { TurnIo } from "../runner.ts";

/** Makes an item under Heddle's own id. */
export type MakeItem = (id: string) => Item;

export interface ItemLog {
  /** Heddle's id of the item, which is recorded unless it was before. */
  begin(name: string, make: MakeItem): Promise<string>;
  /** Of an item that has begun and not ended; anything else is dropped. */
  stream(name: string, channel: ItemDelta["channel"], text: string): void;
  /** What it has come to as a whole; what is more than before is streamed. */
  streamWhole(name: string, channel: ItemDelta["channel"], whole: string): void;
  /** Recorded unless it has ended before; begins it where that was not told. */
  end(name: string, make: MakeItem): Promise<void>;
  isOpen(name: string): boolean;
  /** What was streamed of it. */
  streamed(name: string): string;
  readonly open: readonly string[];
  /** Anything was said or done. */
  readonly hasAny: boolean;
  /** Of the agent; null: it has said nothing. */
  readonly lastMessage: string | null;
}

interface Known {
  readonly id: string;
  streamed: string;
  isOpen: boolean;
}

/** Of what was streamed; of a longer output nothing more is streamed from wholes. */
const MAX_KEPT_CHARS = 1024 * 1024;

export function createItemLog(turnId: string, io: Pick<TurnIo, "record" | "stream" | "signal">): ItemLog {
  const known = new Map<string, Known>();
  let lastMessage: string | null = null;

  async function begin(name: string, make: MakeItem): Promise<string> {
    const before = known.get(name);
    if (before !== undefined) return before.id;
    const id = newItemId();
    known.set(name, { id, streamed: "", isOpen: true });
    await io.record([{ type: "item.started", v: 1, turnId, item: make(id) }]);
    return id;
  }

  function stream(name: string, channel: ItemDelta["channel"], text: string): void {
    const item = known.get(name);
    if (item?.isOpen !== true || text === "") return;
    if (item.streamed.length < MAX_KEPT_CHARS) item.streamed += text;
    io.stream({ itemId: item.id, channel, delta: text });
  }

  return {
    begin,
    stream,
    streamWhole(name, channel, whole) {
      const before = known.get(name)?.streamed ?? "";
      if (before.length < MAX_KEPT_CHARS && whole.startsWith(before)) stream(name, channel, whole.slice(before.length));
    },
    async end(name, make) {
      await begin(name, make);
      const item = known.get(name);
      if (item?.isOpen !== true) return;
      item.isOpen = false;
      const whole = io.signal.aborted ? interrupted(make(item.id)) : make(item.id);
      if (whole.type === "agentMessage" && whole.text !== "") lastMessage = whole.text;
      await io.record([{ type: "item.completed", v: 1, turnId, item: whole }]);
    },
    isOpen: (name) => known.get(name)?.isOpen === true,
    streamed: (name) => known.get(name)?.streamed ?? "",
    get open() {
      return [...known].flatMap(([name, { isOpen }]) => (isOpen ? [name] : []));
    },
    get hasAny() {
      return known.size > 0;
    },
    get lastMessage() {
      return lastMessage;
    },
  };
}

/** What fails once the turn is stopped failed by that. */
function interrupted(item: Item): Item {
  return "status" in item && item.status === "failed" ? { ...item, status: "interrupted" } : item;
}
