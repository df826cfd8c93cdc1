import type { Dialect } from "../sql/dialect.ts";

export const POSTGRES: Dialect = {
  // Of type json: it takes what jsonb refuses, such as a NUL in a member that nobody asks for.
  each: (list, alias) => `json_array_elements_text(${list}::json) AS ${alias}(value)`,
  eachIn: (column, path, alias) =>
    `json_array_elements_text(${column}::json #> '{${path.join(",")}}') AS ${alias}(value)`,
  member: (column, path) => `(${column}::json #>> '{${path.join(",")}}')`,
  contains: (column, text) => `strpos(lower(${column}), lower(${text} COLLATE "C")) > 0`,
  like: "ILIKE",
  by: () => "",
  join: "JOIN",
  // Where it is null its type would not be known.
  param: (number, type) => `?${number}::${type === "text" ? "text" : "bigint"}`,
  names: (params) => params.map((param) => `(${param} IS NULL OR TRUE)`).join(" AND "),
  words: {
    position: "position",
    having: (match) => `d.words @> string_to_array(${match}, ' ')`,
    match: (words) => words.join(" "),
  },
};
