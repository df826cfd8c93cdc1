/** What goes over the wire, as the server's own schemas describe it. */
import type { StreamedDelta, StreamedEvent } from "@heddle/protocol/http";

export type { Decision } from "@heddle/protocol";
export type {
  Accepted,
  AccountsAnswer,
  AnswerInput as Answer,
  Approval,
  ApprovalList,
  CreateThreadInput as CreateThread,
  ForkThreadInput as ForkThread,
  ItemPage,
  ModelsAnswer,
  ServerAnswer,
  StartTurnInput as StartTurn,
  StreamedDelta,
  StreamedEvent,
  Thread,
  ThreadDetail,
  ThreadPage,
  ThreadsQueryInput as ThreadsQuery,
  Turn,
  TurnPage,
} from "@heddle/protocol/http";

/** What following events brings. Only `event` is stored; the rest is live. */
export type Followed =
  | { readonly kind: "event"; readonly event: StreamedEvent }
  | { readonly kind: "delta"; readonly delta: StreamedDelta }
  /** Everything that was stored when the stream was opened has been read. */
  | { readonly kind: "caughtUp" }
  /** This reader was too slow: deltas were left out; the items' ends have the whole text. */
  | { readonly kind: "lagged"; readonly after: number; readonly deltas?: number };
