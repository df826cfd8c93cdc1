/** The whole past in one answer is how older clients read a thread; they are told what takes its place. */
import type { Connection } from "../rpc/connection.ts";

const PAGES = "then page with `thread/turns/list` and `thread/items/list`.";

export function noticeOfHydration(connection: Connection, instead: "excludeTurns" | "includeTurns"): void {
  const advice = instead === "excludeTurns" ? "use `excludeTurns: true`," : "omit `includeTurns` or set it to `false`,";
  const summary = `Full-history hydration is deprecated for paginated threads; ${advice} ${PAGES}`;
  connection.notify({ method: "deprecationNotice", params: { summary, details: null } });
}
