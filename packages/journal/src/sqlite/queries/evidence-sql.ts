/**
 * The statements of questions to the evidence. Each walks one index, the driver, in the order of positions and checks all other
 * filters on the way; a filter that is not asked for is null. So there are few statements, whatever is asked.
 */

/** Values of the filters, in the order of their parameters behind `high`, `low` and `limit`. */
export const FILTERS = [
  "streams",
  "turn",
  "tasks",
  "authors",
  "types",
  "claims",
  "subjectType",
  "subjectId",
  "envelope",
  "replyTo",
  "since",
  "before",
  "tags",
  "anyTag",
  "refType",
  "refId",
  "forks",
  "origin",
] as const;
export type FilterName = (typeof FILTERS)[number];

const at = (name: FilterName): string => `?${4 + FILTERS.indexOf(name)}`;
const FIRST = `?${4 + FILTERS.length}`;
const SECOND = `?${5 + FILTERS.length}`;

const equal = (column: string, name: FilterName): string => `(${at(name)} IS NULL OR e.${column} = ${at(name)})`;
const oneOf = (column: string, name: FilterName): string =>
  `(${at(name)} IS NULL OR e.${column} IN (SELECT value FROM json_each(${at(name)})))`;

const CONDITIONS = [
  oneOf("stream", "streams"),
  oneOf("stream", "forks"),
  equal("turn", "turn"),
  oneOf("task", "tasks"),
  oneOf("author", "authors"),
  oneOf("type", "types"),
  oneOf("claim", "claims"),
  equal("subject_type", "subjectType"),
  equal("subject_id", "subjectId"),
  equal("envelope", "envelope"),
  equal("reply_to", "replyTo"),
  `(${at("since")} IS NULL OR e.at >= ${at("since")})`,
  `(${at("before")} IS NULL OR e.at < ${at("before")})`,
  `(${at("tags")} IS NULL OR NOT EXISTS (SELECT 1 FROM json_each(${at("tags")}) j WHERE NOT EXISTS
     (SELECT 1 FROM evidence_tag t WHERE t.tag = j.value AND t.position = e.position)))`,
  `(${at("anyTag")} IS NULL OR EXISTS (SELECT 1 FROM json_each(${at("anyTag")}) j CROSS JOIN evidence_tag t
     WHERE t.tag = j.value AND t.position = e.position))`,
  `(${at("refType")} IS NULL OR EXISTS (SELECT 1 FROM evidence_ref r
     WHERE r.type = ${at("refType")} AND r.id = ${at("refId")} AND r.position = e.position))`,
  // Its rows are removed slice by slice; it is gone from the first on.
  "NOT EXISTS (SELECT 1 FROM threads x WHERE x.id = e.stream AND x.deleted_at IS NOT NULL)",
  // One that lasts as long as its run is found by whoever names it.
  `(${at("streams")} IS NOT NULL OR NOT EXISTS (SELECT 1 FROM threads y WHERE y.id = e.stream AND y.is_ephemeral IS NOT NULL))`,
  // What another home or program said passes for nothing that was done here.
  `(${at("origin")} = 'any' OR (e.type IN ('evidence.imported', 'item.imported')) = (${at("origin")} = 'imported'))`,
  // Every statement has all parameters.
  `coalesce(${FIRST}, ${SECOND}, ?3, 0) IS NOT NULL`,
].join("\n  AND ");

interface Driver {
  readonly from: string;
  readonly position: string;
  readonly where: (first: string, second: string) => string;
}

const byColumn = (index: string, column: string): Driver => ({
  from: `evidence e INDEXED BY ${index}`,
  position: "e.position",
  where: (first) => `e.${column} = ${first}`,
});
const JOINED = "CROSS JOIN evidence e ON e.position = d.position";

const DRIVERS = {
  stream: byColumn("evidence_by_stream", "stream"),
  author: byColumn("evidence_by_author", "author"),
  type: byColumn("evidence_by_type", "type"),
  claim: byColumn("evidence_by_claim", "claim"),
  turn: byColumn("evidence_by_turn", "turn"),
  task: byColumn("evidence_by_task", "task"),
  subjectType: byColumn("evidence_by_subject_type", "subject_type"),
  subject: {
    from: "evidence e INDEXED BY evidence_by_subject",
    position: "e.position",
    where: (first, second) => `e.subject_type = ${first} AND e.subject_id = ${second}`,
  },
  envelope: byColumn("evidence_by_envelope", "envelope"),
  reply: byColumn("evidence_by_reply", "reply_to"),
  tag: { from: `evidence_tag d ${JOINED}`, position: "d.position", where: (first) => `d.tag = ${first}` },
  ref: {
    from: `evidence_ref d ${JOINED}`,
    position: "d.position",
    where: (first, second) => `d.type = ${first} AND d.id = ${second}`,
  },
  words: {
    from: "evidence_words d CROSS JOIN evidence e ON e.position = d.rowid",
    position: "d.rowid",
    where: (first) => `d.evidence_words MATCH ${first}`,
  },
  all: { from: "evidence e", position: "e.position", where: () => "TRUE" },
} as const satisfies Record<string, Driver>;
export type DriverName = keyof typeof DRIVERS;

/** Positions below `high` and from `low` on, the first `limit` of them. */
export function walk(name: DriverName, order: "ASC" | "DESC"): string {
  const { from, position, where } = DRIVERS[name];
  return `SELECT ${position} AS position FROM ${from} WHERE ${where(FIRST, SECOND)}
  AND ${position} < ?1 AND ${position} >= ?2 AND ${CONDITIONS} ORDER BY ${position} ${order} LIMIT ?3`;
}

export function counting(name: DriverName): string {
  const { from, position, where } = DRIVERS[name];
  return `SELECT count(*) AS found FROM ${from} WHERE ${where(FIRST, SECOND)}
  AND ${position} < ?1 AND ${position} >= ?2 AND ${CONDITIONS}`;
}

/** How many the driver alone has, up to a limit, and how far back they reach. */
export function probe(name: DriverName): string {
  const { from, position, where } = DRIVERS[name];
  return `SELECT count(*) AS found, min(position) AS lowest FROM (SELECT ${position} AS position FROM ${from}
  WHERE ${where("?4", "?5")} AND ${position} < ?1 AND ${position} >= ?2 AND coalesce(?4, ?5, 0) IS NOT NULL
  ORDER BY ${position} DESC LIMIT ?3)`;
}
