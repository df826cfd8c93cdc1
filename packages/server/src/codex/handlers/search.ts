/** Full text over stored threads. */
import { searchThreads as search } from "@heddle/agent";
import type { Handler } from "../../rpc/call.ts";
import { pageOf } from "../../rpc/paging.ts";
import { describeThread, refuse } from "../thread-facts.ts";
import { isWanted } from "./read.ts";

export const searchThreads: Handler<"thread/search"> = async (params, { server }) => {
  const term = params.searchTerm.trim();
  if (term === "") throw refuse("thread/search requires a non-empty searchTerm");
  const { journal } = server.heddle;
  const { searchTerm: _, ...wish } = params;
  const found = await search(journal, term);
  const rows = await Promise.all(found.map(async (hit) => ({ ...hit, row: await journal.threads.get(hit.threadId) })));
  const wanted = rows.flatMap(({ row, snippet }) =>
    row !== undefined && isWanted(row, wish) ? [{ row, snippet }] : [],
  );
  const key = params.sortKey === "updated_at" || params.sortKey === "recency_at" ? "updatedAt" : "createdAt";
  const sign = params.sortDirection === "asc" ? 1 : -1;
  const sorted = wanted.toSorted((a, b) => sign * (a.row[key] - b.row[key] || (a.row.id < b.row.id ? -1 : 1)));
  const { data, ...cursors } = pageOf(sorted, params, ({ row }) => row.id);
  const shown = await Promise.all(
    data.map(async ({ row, snippet }) => ({ thread: await describeThread(server, row), snippet })),
  );
  return { result: { data: shown, ...cursors } };
};
