/** The first request of a client decides its dialect: `chat.*`, `agent.*`, `events.*` and `hello`, or Codex's. */
import { isChatName } from "@heddle/dialects/chat";
import type { Reply, RequestId } from "./peer.ts";

/** What a connection does with requests. */
export interface Dialect {
  request(method: string, params: unknown, id: RequestId): Promise<Reply>;
  /** Absent: nothing depends on notifications of clients. */
  notification?(method: string, params: unknown): void;
  /** See `PeerHandlers.left`. */
  left?(): void;
  /** Everything that waited has been handed to the transport. */
  drained?(): void;
  closed(): void;
}

export interface Dialects {
  readonly codex: () => Dialect;
  readonly chat: () => Dialect;
}

/** Nothing of either is made before it is known which; it stays that one. */
export function chooseDialect(dialects: Dialects): Dialect {
  let chosen: Dialect | undefined;
  return {
    request(method, params, id) {
      chosen ??= isChatName(method) ? dialects.chat() : dialects.codex();
      return chosen.request(method, params, id);
    },
    drained: () => chosen?.drained?.(),
    closed: () => chosen?.closed(),
  };
}
