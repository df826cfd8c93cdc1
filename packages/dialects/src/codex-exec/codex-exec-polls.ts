/**
 * Calls that look after a command whose own item tells what it prints and how it ends: Codex shows that item alone. A call
 * that fails by itself is shown when it has.
 */
import type { EventOf, Item, ItemOf } from "@heddle/protocol";

export function createPolls(): {
  /** Of an answered call: from here on its command is known by a number. */
  learn(settled: EventOf<"tool.settled">): void;
  begins(item: Item): boolean;
  /** The item as it was started, if it is such a call. */
  ends(item: Item): Item | undefined;
} {
  const processes = new Set<string>();
  const open = new Map<string, Item>();
  return {
    learn({ processId }) {
      if (processId !== undefined) processes.add(processId);
    },
    begins(item) {
      if (item.type !== "toolCall" || item.tool !== "write_stdin" || !processes.has(sessionOf(item))) return false;
      open.set(item.id, item);
      return true;
    },
    ends(item) {
      const started = open.get(item.id);
      open.delete(item.id);
      return started;
    },
  };
}

function sessionOf({ arguments: args }: ItemOf<"toolCall">): string {
  return typeof args === "object" && args !== null && "session_id" in args ? String(args.session_id) : "";
}

export function hasOwnFailure(item: Item): boolean {
  return "status" in item && (item.status === "failed" || item.status === "declined");
}
