/** JSON and YAML files as values, and what is expected at a place in them. */
import { canonical, HeddleError } from "@heddle/protocol";
import { parseDocument } from "yaml";
import { failed, passed, type CheckContext, type Finding } from "./check.ts";
import { lookUp, type Found } from "./document-path.ts";
import { testPattern } from "./patterns.ts";
import { shown } from "./shown.ts";

/** Anchors that are repeated more often are made to fill memory. */
const MAX_ALIASES = 100;

export type Format = "json" | "yaml";

export interface Document {
  readonly value: unknown;
  readonly sha256: string;
}

/** The value of a file, or the finding that there is none. */
export async function readDocument(
  path: string,
  format: Format,
  { files }: Pick<CheckContext, "files">,
): Promise<Document | { readonly finding: Finding }> {
  const file = await files.read(path);
  if (file === undefined) return { finding: failed(`${path} does not exist`, { isMoot: true }) };
  const { sha256 } = file;
  try {
    return { value: parse(file.text.replace(/^\uFEFF/, ""), format), sha256 };
  } catch (error) {
    const why = error instanceof Error ? (error.message.split("\n", 1)[0] ?? "") : String(error);
    return { finding: failed(`${path} is not valid ${format.toUpperCase()}: ${why}`, { sha256, isMoot: true }) };
  }
}

function parse(text: string, format: Format): unknown {
  if (format === "json") return JSON.parse(text);
  const document = parseDocument(text, { strict: true, uniqueKeys: true, logLevel: "error" });
  const [problem] = document.errors;
  if (problem !== undefined) throw problem;
  return document.toJS({ maxAliasCount: MAX_ALIASES });
}

export interface Expectation {
  readonly path: string;
  readonly at?: string | undefined;
  readonly equals?: unknown;
  readonly matches?: string | undefined;
  readonly exists?: boolean | undefined;
}

export async function expectAt(check: Expectation, format: Format, context: CheckContext): Promise<Finding> {
  const wishes = [check.equals, check.matches, check.exists].filter((wish) => wish !== undefined);
  if (wishes.length !== 1) {
    throw new HeddleError("usage.invalid", "give exactly one of equals, matches and exists");
  }
  const document = await readDocument(check.path, format, context);
  if ("finding" in document) return document.finding;
  const { sha256 } = document;
  const where = check.at === undefined || check.at === "" ? check.path : `${check.path} at ${check.at}`;
  const found = lookUp(document.value, check.at);
  const finding = await judge(check, found, where, context.signal);
  return { ...finding, sha256 };
}

async function judge(check: Expectation, found: Found, where: string, signal: AbortSignal): Promise<Finding> {
  if (check.exists !== undefined) {
    const message = found.isThere ? `${where} is there` : `${where}: no value`;
    return found.isThere === check.exists ? passed(message) : failed(message);
  }
  if (!found.isThere) return failed(`${where}: no value`, { isMoot: true });
  const { value } = found;
  if (check.matches !== undefined) {
    const text = typeof value === "string" ? value : (JSON.stringify(value) ?? "");
    const isMatch = await testPattern({ source: check.matches, flags: "m", text }, signal);
    const message = `${where} is ${shown(value)}, which ${isMatch ? "matches" : "does not match"} /${check.matches}/`;
    return isMatch ? passed(message) : failed(message);
  }
  return canonical(value) === canonical(check.equals)
    ? passed(`${where} is ${shown(value)}`)
    : failed(`${where} is ${shown(value)}, not ${shown(check.equals)}`);
}
