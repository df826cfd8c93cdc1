/** Projections are data: carried out in memory, by a store that knows nothing of SQL, they come to the same rows. */
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { EventBody, StoredEvent } from "@heddle/protocol";
import { expect, test } from "vitest";
import type { Cells, Projection, RowChange } from "../projections/changes.ts";
import { loadProjections, PROJECTIONS } from "../projections/projections.ts";
import { admitted, completed, created, entered, testHome } from "../suite/journal.samples.ts";
import { queued, tried } from "../suite/notifications.suite.ts";
import { fillThreads } from "../suite/threads.suite.ts";
import { fillUsage } from "../suite/usage.suite.ts";
import { openJournal } from "./sqlite.ts";

type MutableRow = Record<string, string | number | null>;

class Tables {
  readonly rows = new Map(PROJECTIONS.map(({ table }) => [table, [] as MutableRow[]]));

  apply(projection: Projection, event: StoredEvent): void {
    const found = (projection.needs?.(event) ?? []).map(({ table, columns, where }) =>
      // What no change has named is null.
      this.#find(table, where).map((row) => Object.fromEntries(columns.map((name) => [name, row[name] ?? null]))),
    );
    for (const change of projection.changes(event, found)) this.#carryOut(change);
  }

  #find(table: string, where: Cells): MutableRow[] {
    const isIt = (row: MutableRow): boolean => Object.entries(where).every(([name, value]) => row[name] === value);
    return (this.rows.get(table) ?? []).filter(isIt);
  }

  #carryOut(change: RowChange): void {
    const { table } = change;
    // Not rows: a store keeps words as it likes.
    if (change.kind === "words") return;
    if (change.kind === "delete") {
      const gone = new Set(this.#find(table, change.where));
      this.rows.set(
        table,
        (this.rows.get(table) ?? []).filter((row) => !gone.has(row)),
      );
    } else if (change.kind === "update") {
      for (const row of this.#find(table, change.where)) {
        Object.assign(row, change.set);
        for (const [name, more] of Object.entries(change.add ?? {})) row[name] = Number(row[name] ?? 0) + Number(more);
        for (const [name, value] of Object.entries(change.fill ?? {})) row[name] ??= value;
      }
    } else {
      const [row] = this.#find(table, change.key);
      if (row === undefined) this.rows.get(table)?.push({ ...change.key, ...change.values });
      else if (change.kind === "put") Object.assign(row, change.values);
      else if (change.kind === "add")
        for (const [name, more] of Object.entries(change.values)) row[name] = Number(row[name]) + Number(more);
    }
  }
}

test("14.8: projections carried out in memory come to the rows that SQLite has", async () => {
  await using home = await testHome();
  const tables = new Tables();
  {
    await using journal = await openJournal({ home: home.path });
    await fillThreads(journal);
    await fillUsage(journal, () => undefined);
    const say = (stream: string, ...events: EventBody[]) => journal.append({ stream, author: "user:owner", events });
    await say("sink_a", queued(1), tried(1, "retry", 9), { type: "notification.read", v: 1, sink: "a", position: 5 });
    const { input, settings } = admitted("q");
    const waits: EventBody = { type: "turn.queued", v: 1, turnId: "q", input, settings };
    await say("c", waits, { type: "thread.settings-changed", v: 1, changes: { model: "m" } });
    await say("c", {
      type: "model.requested",
      v: 1,
      turnId: "c1",
      requestId: "r",
      provider: "p",
      model: "m",
      requestBytes: 1,
    });
    const command = { type: "commandExecution", id: "i", callId: "k", status: "inProgress", cwd: "/w" } as const;
    await say("c", { type: "item.started", v: 1, turnId: "c1", item: { ...command, command: "make", output: "" } });
    await say("c", { type: "item.checkpointed", v: 1, turnId: "c1", itemId: "i", channel: "output", appended: "x" });
    const question = { kind: "command", callId: "k", itemId: "i", command: "make", cwd: "/w" } as const;
    await say("c", { type: "approval.requested", v: 1, turnId: "c1", approvalId: "apr_1", question });
    await say("c", entered("explore", { duringTurn: "c1" }), entered("edit", { cause: "hop", depth: 1 }));
    await say("c", { type: "message.sent", v: 1, ...message("m1"), inputs: [], to: "b", from: { threadId: "c" } });
    await say("b", {
      type: "message.received",
      v: 1,
      ...message("m1"),
      inputs: [],
      from: { threadId: "c" },
      wakes: true,
    });
    await say("b", { type: "message.settled", v: 1, messageId: "m1", outcome: "answered", text: "yes" });
    await say("c", { type: "message.received", v: 1, ...message("m2"), inputs: [], wakes: false });
    await say("gone", created, admitted("g"), completed("g"));
    await journal.purge({ stream: "gone", author: "user:owner", reason: "tidy" });
    await loadProjections();
    for (const event of await journal.read({ after: 0 })) {
      for (const projection of PROJECTIONS) tables.apply(projection, event);
    }
  }
  using db = new DatabaseSync(join(home.path, "heddle.db"), { readOnly: true });
  for (const [table, rows] of tables.rows) {
    const stored = db.prepare(`SELECT * FROM ${table}`).all();
    // What a projection does not name is null, or what the table begins with.
    const whole = rows.map((row) => ({ ...stored.find((one) => isSame(one, row)) }));
    expect([table, sorted(whole)]).toEqual([table, sorted(stored)]);
    expect(stored.length > 0, table).toBe(true);
  }
});

const message = (messageId: string) => {
  return { messageId, kind: "ask", role: "context", text: "ready?", hops: 0, answerBy: 5 } as const;
};

function isSame(stored: Readonly<Record<string, unknown>>, row: MutableRow): boolean {
  return Object.entries(row).every(([name, value]) => stored[name] === value);
}

function sorted(rows: readonly object[]): string[] {
  return rows.map((row) => JSON.stringify(Object.entries(row).toSorted(([a], [b]) => (a < b ? -1 : 1)))).toSorted();
}
