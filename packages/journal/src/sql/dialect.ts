/** Where the SQL of two stores differs. Everything else is written once, in the words both know. */
export interface Dialect {
  /** A list given as JSON text, as a table with one column, `value`. */
  readonly each: (list: string, alias: string) => string;
  /** The same of a list within a column of JSON text. */
  readonly eachIn: (column: string, path: readonly string[], alias: string) => string;
  /** A member of a column of JSON text, as text. */
  readonly member: (column: string, path: readonly string[]) => string;
  /** Whether a column contains a text, whatever the case of ASCII letters. */
  readonly contains: (column: string, text: string) => string;
  /** A pattern, whatever the case of ASCII letters. */
  readonly like: string;
  /** Behind the name of a table: the index to walk. */
  readonly by: (index: string) => string;
  /** A join in the order in which the tables are written. */
  readonly join: string;
  /** A numbered parameter that may be null. */
  readonly param: (number: number, type: "text" | "number") => string;
  /** A condition that is true and names parameters, because every statement has all of them. */
  readonly names: (params: readonly string[]) => string;
  readonly words: {
    /** The position of an entry in the table of words. */
    readonly position: string;
    /** Entries with all of the words that `match` made one text of. */
    readonly having: (match: string) => string;
    readonly match: (words: readonly string[]) => string;
  };
}
