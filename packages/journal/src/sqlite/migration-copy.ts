/**
 * The copy of the database before its tables change: `heddle.db.schema-N`. Kept until a later migration has succeeded,
 * so that there is a way back and never more than one copy.
 */
import { readdirSync, renameSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { Connection } from "./driver.ts";
import { makePrivateFile, syncFile, syncFolder } from "../home.ts";

/** While holding the write lock, before anything changes. Whole under its name, or absent. */
export function keepCopy(connection: Connection, database: string, schema: number): void {
  const path = copyPath(database, schema);
  const partial = `${path}.partial`;
  rmSync(partial, { force: true });
  try {
    makePrivateFile(partial);
    connection.copyTo(partial);
    syncFile(partial);
    renameSync(partial, path);
  } catch (error) {
    rmSync(partial, { force: true });
    throw error;
  }
  syncFolder(dirname(path));
}

export function dropOlderCopies(database: string, schema: number): void {
  for (const path of copiesOf(database)) if (path !== copyPath(database, schema)) rmSync(path, { force: true });
}

export function copiesOf(database: string): string[] {
  const name = basename(database);
  const isCopy = (file: string): boolean =>
    file.startsWith(`${name}.schema-`) && /^\d+$/.test(file.slice(name.length + 8));
  return readdirSync(dirname(database))
    .filter(isCopy)
    .map((file) => join(dirname(database), file));
}

function copyPath(database: string, schema: number): string {
  return `${database}.schema-${schema}`;
}
