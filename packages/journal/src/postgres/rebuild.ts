/** Makes the tables of the projections anew, in one transaction: readers see the old ones until the new ones are complete. */
import { loadProjections, PROJECTIONS } from "../projections/projections.ts";
import { EVENT_COLUMNS, integer, toEvent } from "../record/rows.ts";
import { createKnownRows } from "../sql/known-rows.ts";
import { all } from "../sql/ask.ts";
import { pageSql } from "./read.ts";
import { PROJECTION_NAMES } from "./schema.ts";
import type { Transaction } from "./transaction.ts";
import { lookups, statementsOf } from "./writes.ts";

const PAGE = 256;
const PAGE_BYTES = 4 * 1024 * 1024;

export async function rebuildAll({ look, ask }: Transaction): Promise<void> {
  await loadProjections();
  // Dropping a table would keep its readers waiting.
  await look(PROJECTION_NAMES.map((table) => ({ sql: `DELETE FROM ${table}`, values: [] })));
  const sql = pageSql({
    columns: EVENT_COLUMNS,
    where: "position > ? AND body IS NOT NULL",
    order: "position",
    bytes: PAGE_BYTES,
  });
  for (let after = 0; ;) {
    const rows = await ask(all(sql, after, PAGE));
    const events = rows.map(toEvent);
    const last = rows.at(-1);
    if (last === undefined) return;
    after = integer(last, "position");
    const looks = lookups(events.flatMap((event) => PROJECTIONS.flatMap((one) => one.needs?.(event) ?? [])));
    const found = await look(looks.map(({ statement }) => statement));
    const known = createKnownRows();
    for (const [index, { table }] of looks.entries()) known.add(table, found[index] ?? []);
    const changes = events.flatMap((event) =>
      PROJECTIONS.flatMap((projection) => {
        const made = projection.changes(event, projection.needs?.(event).map((one) => known.find(one)) ?? []);
        for (const change of made) known.apply(change);
        return made;
      }),
    );
    await look(statementsOf(changes));
  }
}
