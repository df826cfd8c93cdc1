/**
 * Public keys of other homes that the owner trusts: one on each line of `known-keys` in the home, as its id and its text in
 * base64. An id is short; what is compared is the key.
 */
import { existsSync, lstatSync, readFileSync } from "node:fs";
import { appendFile } from "node:fs/promises";
import { join } from "node:path";
import { HeddleError } from "@heddle/protocol";
import { verifierOf } from "./keys.ts";

/** Thousands of homes. */
const MAX_BYTES = 1024 * 1024;

export function knownKeysFile(home: string): string {
  return join(home, "known-keys");
}

/** In PEM form. A line that is none is an error: a key that was meant would be missing. */
export function readKnownKeys(home: string): readonly string[] {
  const file = knownKeysFile(home);
  if (!existsSync(file)) return [];
  if (lstatSync(file).size > MAX_BYTES)
    throw new HeddleError("config.invalid", `${file} is too large for a list of keys`);
  const lines = readFileSync(file, "utf8").split("\n");
  return lines.flatMap((line, index) => {
    const trimmed = line.trim();
    if (trimmed === "" || trimmed.startsWith("#")) return [];
    const [id, encoded = ""] = trimmed.split(/\s+/);
    const pem = Buffer.from(encoded, "base64").toString("utf8");
    if (keyIdOf(pem) === id) return [pem];
    throw new HeddleError("config.invalid", `${file}:${index + 1}: this is not the id of a key and the key in base64`);
  });
}

export async function addKnownKey(home: string, pem: string): Promise<void> {
  if (readKnownKeys(home).includes(pem)) return;
  const file = knownKeysFile(home);
  const text = existsSync(file) ? readFileSync(file, "utf8") : "";
  const start = text === "" || text.endsWith("\n") ? "" : "\n";
  const line = `${verifierOf(pem).keyId} ${Buffer.from(pem).toString("base64")}\n`;
  await appendFile(file, start + line, { mode: 0o600, flush: true });
}

function keyIdOf(pem: string): string | undefined {
  try {
    return verifierOf(pem).keyId;
  } catch {
    return undefined;
  }
}
