import type { Dialect } from "../sql/dialect.ts";

export const SQLITE: Dialect = {
  each: (list, alias) => `json_each(${list}) AS ${alias}`,
  eachIn: (column, path, alias) => `json_each(${column}, '$.${path.join(".")}') AS ${alias}`,
  member: (column, path) => `CAST(${column} ->> '$.${path.join(".")}' AS TEXT)`,
  contains: (column, text) => `instr(lower(${column}), lower(${text})) > 0`,
  like: "LIKE",
  by: (index) => ` INDEXED BY ${index}`,
  join: "CROSS JOIN",
  param: (number) => `?${number}`,
  names: (params) => `coalesce(${params.join(", ")}, 0) IS NOT NULL`,
  words: {
    position: "rowid",
    having: (match) => `d.evidence_words MATCH ${match}`,
    // Each word as it is: in quotes nothing is an operator.
    match: (words) => words.map((word) => `"${word}"`).join(" "),
  },
};
