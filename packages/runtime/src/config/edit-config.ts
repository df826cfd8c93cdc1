/** Changes to the text of config.toml by whole values, tables included: each becomes changes of single keys. */
import { realpathSync } from "node:fs";
import { replaceFile } from "@heddle/models/replace-file";
import { HeddleError, isHeddleError, reasonOf, diskFaultOf } from "@heddle/protocol";
import { parseToml } from "./parse-toml.ts";
import { readConfigText } from "./read-config.ts";
import { setTomlKey, unsetTomlKey, type TomlScalar } from "./toml-edit.ts";
import { isTable } from "./toml-lines.ts";

export interface ConfigChange {
  readonly key: readonly string[];
  /** null: the key goes, with all below it. */
  readonly value: unknown;
  /** A table is joined with what is there; otherwise it takes its place. */
  readonly isJoined: boolean;
}

export function changeConfig(text: string, { key, value, isJoined }: ConfigChange, file: string): string {
  const before = valueAt(parseToml(text, file), key);
  if (value === null || value === undefined) return withoutLeaves(text, key, before);
  if (!isTable(value)) return setTomlKey(text, key, scalar(value, key));
  const kept = isJoined || !isTable(before) ? text : withoutLeaves(text, key, before, value);
  return leavesOf(value, key).reduce((all, leaf) => setTomlKey(all, leaf.key, scalar(leaf.value, leaf.key)), kept);
}

/** Leaves that `coming` has are changed in their place, so that what is written beside them stays. */
function withoutLeaves(text: string, key: readonly string[], before: unknown, coming: unknown = {}): string {
  if (before === undefined) return text;
  const going = isTable(before) ? leavesOf(before, key) : [{ key, value: before }];
  return going
    .filter((leaf) => valueAt(coming, leaf.key.slice(key.length)) === undefined || leaf.key.length === key.length)
    .reduce((all, leaf) => unsetTomlKey(all, leaf.key), text);
}

interface Leaf {
  readonly key: readonly string[];
  readonly value: unknown;
}

export function leavesOf(table: Readonly<Record<string, unknown>>, above: readonly string[] = []): readonly Leaf[] {
  return Object.entries(table).flatMap(([name, value]): readonly Leaf[] => {
    const key = [...above, name];
    if (value === null || value === undefined) return [];
    return isTable(value) ? leavesOf(value, key) : [{ key, value }];
  });
}

export function valueAt(value: unknown, key: readonly string[]): unknown {
  let found = value;
  for (const part of key) found = isTable(found) && Object.hasOwn(found, part) ? found[part] : undefined;
  return found;
}

function scalar(value: unknown, key: readonly string[]): TomlScalar {
  if (isScalar(value)) return value;
  throw new HeddleError("config.invalid", `${key.join(".")} takes one value, a list of values or a table`);
}

export function isScalar(value: unknown): value is TomlScalar {
  if (Array.isArray(value)) return value.every(isScalar);
  return ["string", "number", "bigint", "boolean"].includes(typeof value);
}

/**
 * Replaces Heddle's own config.toml as a whole: a reader sees the old text or the new one, never a part. False: the file no
 * longer says what the new text was made from, somebody edits it too.
 */
export async function writeWhole(file: string, text: string, before: string | undefined): Promise<boolean> {
  try {
    // A link stays one: what it leads to is what its owner keeps.
    const target = before === undefined ? file : realpathSync.native(file);
    return await replaceFile(target, text, () => readConfigText(file) === before);
  } catch (cause) {
    if (isHeddleError(cause)) throw cause;
    throw new HeddleError(diskFaultOf(cause), `${file} could not be written: ${reasonOf(cause)}`, { cause });
  }
}
