import type { BlobQueries, BlobUse } from "../../queries/blobs.ts";
import { integer, text, type Row } from "../../record/rows.ts";
import type { Connection, Read } from "../driver.ts";

const USED = "e.type <> 'evidence.collected'";
const ALIVE = "NOT EXISTS (SELECT 1 FROM threads x WHERE x.id = e.stream AND x.deleted_at IS NOT NULL)";
const USES = `SELECT r.id AS sha256, e.stream AS stream, max(e.at) AS at
  FROM json_each(?) j CROSS JOIN evidence_ref r ON r.type = 'blob' AND r.id = j.value
  CROSS JOIN evidence e ON e.position = r.position
  WHERE ${USED} AND ${ALIVE} GROUP BY r.id, e.stream`;
const OF_STREAM = `SELECT r.id AS sha256, e.stream AS stream, max(e.at) AS at
  FROM evidence_ref r CROSS JOIN evidence e ON e.position = r.position
  WHERE r.type = 'blob' AND e.stream = ? AND ${USED} GROUP BY r.id`;

export function blobQueries(read: Read): BlobQueries {
  return {
    uses: (names) => read((connection) => connection.all(USES, JSON.stringify(names)).map(toUse)),
  };
}

/** What only this stream names, while it is being deleted. */
export function blobsOfAlone(connection: Connection, stream: string): readonly BlobUse[] {
  const own = connection.all(OF_STREAM, stream).map(toUse);
  const names = JSON.stringify(own.map(({ sha256 }) => sha256));
  const others = new Set(
    connection
      .all(USES, names)
      .map(toUse)
      .flatMap((use) => (use.stream === stream ? [] : [use.sha256])),
  );
  return own.filter(({ sha256 }) => !others.has(sha256));
}

function toUse(row: Row): BlobUse {
  return { sha256: text(row, "sha256"), stream: text(row, "stream"), at: integer(row, "at") };
}
