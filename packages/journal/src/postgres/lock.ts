import { createHash } from "node:crypto";
import type { PostgresAddress } from "./address.ts";

/** The number of the one lock of a journal; a lock belongs to its database. */
export function lockOf({ schema }: PostgresAddress): string {
  return createHash("sha256").update(`heddle journal ${schema}`).digest().readBigInt64BE(0).toString();
}
