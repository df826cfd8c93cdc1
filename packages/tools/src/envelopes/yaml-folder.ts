/** The YAML files of a folder of envelopes or gates, each under the name that its file gives it. */
import { lstatSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { HeddleError, reasonOf } from "@heddle/protocol";
import { attempt, codeOf } from "../attempt.ts";
import { ENVELOPE_NAME } from "./spec-file.ts";

/** More would be a mistake; every turn reads them. */
const MAX_FILES = 100;
const MAX_FILE_BYTES = 64 * 1024;

type FileKind = "envelope" | "gate";

export interface NamedText {
  readonly id: string;
  readonly file: string;
  readonly text: string;
}

/** In the order of their names; a folder that does not exist has none. */
export function readYamlFolder(folder: string | undefined, kind: FileKind): readonly NamedText[] {
  if (folder === undefined) return [];
  let names: string[];
  try {
    names = readdirSync(folder).filter((name) => /\.ya?ml$/.test(name));
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes(codeOf(error) ?? "")) return [];
    throw unreadable(folder, kind, error);
  }
  if (names.length > MAX_FILES)
    throw new HeddleError(`${kind}.invalid`, `${folder} has ${names.length} ${kind}s; keep at most ${MAX_FILES}`);
  return names.toSorted().map((name) => readYamlFile(join(folder, name), kind));
}

export function readYamlFile(file: string, kind: FileKind): NamedText {
  const code = `${kind}.invalid` as const;
  const [, id = ""] = /([^/]*)\.ya?ml$/.exec(file) ?? [];
  if (!ENVELOPE_NAME.test(id)) {
    const form = `the name of ${kind === "gate" ? "a gate" : "an envelope"} is of lower-case letters, digits and -, and its file ends in .yaml`;
    throw new HeddleError(code, `${file}: ${form}`, { details: { file } });
  }
  const stat = attempt(() => lstatSync(file));
  if (stat?.isFile() === false) throw new HeddleError(code, `${file} is not a plain file`);
  if (stat !== undefined && stat.size > MAX_FILE_BYTES)
    throw new HeddleError(code, `${file} is larger than ${MAX_FILE_BYTES} bytes`);
  try {
    return { id, file, text: readFileSync(file, "utf8") };
  } catch (error) {
    throw unreadable(file, kind, error);
  }
}

function unreadable(file: string, kind: FileKind, cause: unknown): HeddleError {
  return new HeddleError(`${kind}.invalid`, `${file} cannot be read: ${reasonOf(cause)}`, { cause });
}
