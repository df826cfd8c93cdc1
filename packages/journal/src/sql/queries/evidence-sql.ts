/**
 * The statements of questions to the evidence. Each walks one index, the driver, in the order of positions and checks all other
 * filters on the way; a filter that is not asked for is null. So there are few statements, whatever is asked.
 */

import type { Dialect } from "../dialect.ts";

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

const NUMBERS: ReadonlySet<FilterName> = new Set<FilterName>(["since", "before"]);

const numberOf = (name: FilterName): number => 4 + FILTERS.indexOf(name);
/** What the driver is walked by, behind the filters. */
const keysOf = ({ param }: Dialect): readonly [string, string] => [
  param(4 + FILTERS.length, "text"),
  param(5 + FILTERS.length, "text"),
];

function conditions(dialect: Dialect): string {
  const { each, join, names, param } = dialect;
  const at = (name: FilterName): string => param(numberOf(name), NUMBERS.has(name) ? "number" : "text");
  const equal = (column: string, name: FilterName): string => `(${at(name)} IS NULL OR e.${column} = ${at(name)})`;
  const oneOf = (column: string, name: FilterName): string =>
    `(${at(name)} IS NULL OR e.${column} IN (SELECT value FROM ${each(at(name), "j")}))`;
  return [
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
    `(${at("tags")} IS NULL OR NOT EXISTS (SELECT 1 FROM ${each(at("tags"), "j")} WHERE NOT EXISTS
     (SELECT 1 FROM evidence_tag t WHERE t.tag = j.value AND t.position = e.position)))`,
    `(${at("anyTag")} IS NULL OR EXISTS (SELECT 1 FROM ${each(at("anyTag"), "j")} ${join} evidence_tag t
     ON t.tag = j.value WHERE t.position = e.position))`,
    `(${at("refType")} IS NULL OR EXISTS (SELECT 1 FROM evidence_ref r
     WHERE r.type = ${at("refType")} AND r.id = ${at("refId")} AND r.position = e.position))`,
    // Its rows are removed slice by slice; it is gone from the first on.
    "NOT EXISTS (SELECT 1 FROM threads x WHERE x.id = e.stream AND x.deleted_at IS NOT NULL)",
    // One that lasts as long as its run is found by whoever names it.
    `(${at("streams")} IS NOT NULL OR NOT EXISTS (SELECT 1 FROM threads y WHERE y.id = e.stream AND y.is_ephemeral IS NOT NULL))`,
    // What another home or program said passes for nothing that was done here.
    `(${at("origin")} = 'any' OR (e.type IN ('evidence.imported', 'item.imported')) = (${at("origin")} = 'imported'))`,
    names([...keysOf(dialect), param(3, "number")]),
  ].join("\n  AND ");
}

const E_POSITION = "e.position";

const DRIVERS = {
  stream: byColumn("evidence_by_stream", "stream"),
  author: byColumn("evidence_by_author", "author"),
  type: byColumn("evidence_by_type", "type"),
  claim: byColumn("evidence_by_claim", "claim"),
  turn: byColumn("evidence_by_turn", "turn"),
  task: byColumn("evidence_by_task", "task"),
  subjectType: byColumn("evidence_by_subject_type", "subject_type"),
  subject: {
    ...byColumn("evidence_by_subject", "subject_type"),
    where: (first, second) => `e.subject_type = ${first} AND e.subject_id = ${second}`,
  },
  envelope: byColumn("evidence_by_envelope", "envelope"),
  reply: byColumn("evidence_by_reply", "reply_to"),
  tag: { ...joined("evidence_tag"), where: (first) => `d.tag = ${first}` },
  ref: { ...joined("evidence_ref"), where: (first, second) => `d.type = ${first} AND d.id = ${second}` },
  words: {
    from: ({ join, words }) => `evidence_words d ${join} evidence e ON e.position = d.${words.position}`,
    position: ({ words }) => `d.${words.position}`,
    where: (first, _second, { words }) => words.having(first),
  },
  all: { from: () => "evidence e", position: () => E_POSITION, where: () => "TRUE" },
} as const satisfies Record<string, Driver>;
export type DriverName = keyof typeof DRIVERS;

interface Driver {
  readonly from: (dialect: Dialect) => string;
  readonly position: (dialect: Dialect) => string;
  readonly where: (first: string, second: string, dialect: Dialect) => string;
}

function byColumn(index: string, column: string): Driver {
  return {
    from: ({ by }) => `evidence e${by(index)}`,
    position: () => E_POSITION,
    where: (first) => `e.${column} = ${first}`,
  };
}

function joined(table: string): Pick<Driver, "from" | "position"> {
  return {
    from: ({ join }) => `${table} d ${join} evidence e ON e.position = d.position`,
    position: () => "d.position",
  };
}

function partsOf(name: DriverName, dialect: Dialect) {
  const driver: Driver = DRIVERS[name];
  const where = ([first, second]: readonly [string, string]): string => driver.where(first, second, dialect);
  return { from: driver.from(dialect), position: driver.position(dialect), where };
}

/** Positions below `high` and from `low` on, the first `limit` of them. */
export function walk(name: DriverName, order: "ASC" | "DESC", dialect: Dialect): string {
  const { from, position, where } = partsOf(name, dialect);
  return `SELECT ${position} AS position FROM ${from} WHERE ${where(keysOf(dialect))}
  AND ${position} < ?1 AND ${position} >= ?2 AND ${conditions(dialect)} ORDER BY ${position} ${order} LIMIT ?3`;
}

export function counting(name: DriverName, dialect: Dialect): string {
  const { from, position, where } = partsOf(name, dialect);
  return `SELECT count(*) AS found FROM ${from} WHERE ${where(keysOf(dialect))}
  AND ${position} < ?1 AND ${position} >= ?2 AND ${conditions(dialect)}`;
}

/** How many the driver alone has, up to a limit, and how far back they reach. */
export function probe(name: DriverName, dialect: Dialect): string {
  const { from, position, where } = partsOf(name, dialect);
  const keys = [dialect.param(4, "text"), dialect.param(5, "text")] as const;
  return `SELECT count(*) AS found, min(position) AS lowest FROM (SELECT ${position} AS position FROM ${from}
  WHERE ${where(keys)} AND ${position} < ?1 AND ${position} >= ?2 AND ${dialect.names(keys)}
  ORDER BY ${position} DESC LIMIT ?3) AS newest`;
}
