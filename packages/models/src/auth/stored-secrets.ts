/**
 * What the file of stored logins holds that opens something, for whoever keeps a record and must leave it out. Read in one
 * go and without checking anything: whether a login may be used is decided elsewhere, and one that may not be is as secret.
 */
import { lstatSync, readFileSync } from "node:fs";
import path from "node:path";
import { CREDENTIALS_FILE, MAX_CREDENTIALS_BYTES } from "./credentials-file.ts";

/** Of all providers and MCP servers. What a keyring holds is not among them: asking it starts a program. */
export function storedSecrets(home: string): readonly string[] {
  const file = path.join(home, CREDENTIALS_FILE);
  try {
    const stats = lstatSync(file, { throwIfNoEntry: false });
    if (stats === undefined || !stats.isFile() || stats.size > MAX_CREDENTIALS_BYTES) return [];
    return secretsIn(JSON.parse(readFileSync(file, "utf8")));
  } catch {
    // Whoever needs a login from it is told what is wrong with it.
    return [];
  }
}

const SECRET_FIELD = /(?:^key|token|secret)$/i;

function secretsIn(value: unknown): readonly string[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, entry]: [string, unknown]) =>
    typeof entry === "string" ? (SECRET_FIELD.test(name) ? [entry] : []) : secretsIn(entry),
  );
}
