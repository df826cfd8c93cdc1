import type { BlobQueries, BlobUse } from "../../queries/blobs.ts";
import { integer, text, type Row } from "../../record/rows.ts";
import { rowsAs, type Ask, type Asking } from "../ask.ts";
import type { Dialect } from "../dialect.ts";

const USED = "e.type <> 'evidence.collected'";
const ALIVE = "NOT EXISTS (SELECT 1 FROM threads x WHERE x.id = e.stream AND x.deleted_at IS NOT NULL)";

const uses = ({ each, join }: Dialect): string => `SELECT r.id AS sha256, e.stream AS stream, max(e.at) AS at
  FROM ${each("?", "j")} ${join} evidence_ref r ON r.type = 'blob' AND r.id = j.value
  ${join} evidence e ON e.position = r.position
  WHERE ${USED} AND ${ALIVE} GROUP BY r.id, e.stream`;
const ofStream = ({ join }: Dialect): string => `SELECT r.id AS sha256, e.stream AS stream, max(e.at) AS at
  FROM evidence_ref r ${join} evidence e ON e.position = r.position
  WHERE r.type = 'blob' AND e.stream = ? AND ${USED} GROUP BY r.id, e.stream`;

export function blobQueries(ask: Ask, dialect: Dialect): BlobQueries {
  return {
    uses: (names) => ask(() => rowsAs(uses(dialect), toUse, JSON.stringify(names))),
  };
}

/** What only this stream names, while it is being deleted. */
export function* blobsOfAlone(stream: string, dialect: Dialect): Asking<readonly BlobUse[]> {
  const own = yield* rowsAs(ofStream(dialect), toUse, stream);
  const names = JSON.stringify(own.map(({ sha256 }) => sha256));
  const others = new Set(
    (yield* rowsAs(uses(dialect), toUse, names)).flatMap((use) => (use.stream === stream ? [] : [use.sha256])),
  );
  return own.filter(({ sha256 }) => !others.has(sha256));
}

function toUse(row: Row): BlobUse {
  return { sha256: text(row, "sha256"), stream: text(row, "stream"), at: integer(row, "at") };
}
