/** One row a sink: how far in the journal it has read. Not only where it was told something: silence is read too. */
import type { StoredEvent } from "@heddle/protocol";
import type { Connection } from "../driver.ts";

export const table = "sinks";

export const schema = `
CREATE TABLE sinks (
  name TEXT PRIMARY KEY,
  read_position INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
`;

export function apply(connection: Connection, { body }: StoredEvent): void {
  if (body.type !== "notification.queued" && body.type !== "notification.read") return;
  connection.run(
    `INSERT INTO sinks (name, read_position) VALUES (?, ?)
     ON CONFLICT (name) DO UPDATE SET read_position = max(read_position, excluded.read_position)`,
    body.sink,
    body.position,
  );
}
