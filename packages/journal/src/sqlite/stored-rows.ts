import type { StoredRows } from "../evidence/stored-rows.ts";
import { storedRows as rowsFrom } from "../sql/stored-rows.ts";
import { answer, untilFree, type Connection, type Read } from "./driver.ts";
import { readRows } from "./read.ts";
import { asDamage } from "./store-errors.ts";

export function storedRows(read: Read): StoredRows {
  return rowsFrom((asking) => read((connection) => answer(connection, asking())), {
    pageOf: (range) => read((connection) => readRows(connection, range)),
    damageOf: asDamage,
  });
}

export function rowsOf(connection: Connection): StoredRows {
  return storedRows((work) => untilFree(() => work(connection)));
}
