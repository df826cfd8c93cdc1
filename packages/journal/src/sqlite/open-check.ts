/** What is checked when a store in SQLite is opened, and whether files that are gone were ever there. */
import { existsSync } from "node:fs";
import { hasCheckpoints } from "../evidence/checkpoints.ts";
import { readClaims } from "../evidence/witness.ts";
import { sizeOf, type HomePaths } from "../home.ts";
import type { Damage } from "../journal.ts";
import { checkOnOpen as check, type OpenCheck } from "../sql/open-check.ts";
import { answer, untilFree, type Connection } from "./driver.ts";
import { faultOf } from "./store-errors.ts";
import { rowsOf } from "./stored-rows.ts";

export function checkOnOpen(connection: Connection, paths: HomePaths): Promise<OpenCheck> {
  return check({
    ask: (asking) => untilFree(() => answer(connection, asking())),
    rows: rowsOf(connection),
    witness: paths.witness,
    isUnreadable: (error) => faultOf(error) === "read-only",
  });
}

/**
 * For a database that is missing or has no tables: proof that there was one. Then it is not created again. The witness
 * is read before the database is looked at again, because another process may be creating it.
 */
export function proofOfLoss(paths: HomePaths): Damage | undefined {
  const message = (proof: string): string => `${paths.database} is missing or empty, but ${proof} lists events in it`;
  const [claim] = readClaims(paths.witness).claims.toSorted((a, b) => a.position - b.position);
  if (claim !== undefined) return { kind: "tail-lost", message: message(paths.witness), position: 1 };
  if (hasCheckpoints(paths.checkpoints)) return { kind: "tail-lost", message: message(paths.checkpoints), position: 1 };
  const wal = `${paths.database}-wal`;
  return sizeOf(wal) > 0 && isEmpty(paths) ? { kind: "file-corrupt", message: message(wal) } : undefined;
}

export function isEmpty(paths: HomePaths): boolean {
  return !existsSync(paths.database) || sizeOf(paths.database) === 0;
}
