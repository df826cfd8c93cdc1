/** Checks of JSON and YAML files: a value in them, or their shape. */
import { parseJsonSchema } from "@heddle/agent";
import { canonical, HeddleError, jsonProblem, type LeafCheckOf } from "@heddle/protocol";
import { parseDocument, YAMLError } from "yaml";
import { cannot, failed, passed, type CheckContext, type Finding, type RunLeaf } from "./check.ts";
import { lookUp, type Found } from "./document-path.ts";
import { testPattern, testPatterns, type Question } from "./patterns.ts";
import { listed, shown } from "./shown.ts";
import { yamlProblem } from "../spec/yaml-values.ts";

export const json: RunLeaf<"json"> = (check, context) => expectAt(check, "json", context);
export const yaml: RunLeaf<"yaml"> = (check, context) => expectAt(check, "yaml", context);

/** More aliases are an attempt to fill the memory. */
const MAX_ALIASES = 100;

type Format = "json" | "yaml";
type Document = { readonly value: unknown; readonly sha256: string } | { readonly finding: Finding };

async function readDocument(path: string, format: Format, { files }: Pick<CheckContext, "files">): Promise<Document> {
  const file = await files.read(path);
  if (file === undefined) return { finding: failed(`${path} does not exist`, { isMoot: true }) };
  const { sha256 } = file;
  const text = file.text.replace(/^\uFEFF/, "");
  try {
    return { value: parse(text, format), sha256 };
  } catch (error) {
    const why = format === "json" ? jsonProblem(text) : whereIn(error);
    return { finding: failed(`${path} is not valid ${format.toUpperCase()}: ${why}`, { sha256, isMoot: true }) };
  }
}

function whereIn(error: unknown): string {
  if (!(error instanceof YAMLError)) return "it has too many aliases";
  const [start] = error.linePos ?? [];
  return `${start === undefined ? "" : `line ${start.line}, column ${start.col}: `}${yamlProblem(error)}`;
}

function parse(text: string, format: Format): unknown {
  if (format === "json") return JSON.parse(text);
  const document = parseDocument(text, { strict: true, uniqueKeys: true, logLevel: "error" });
  const [problem] = document.errors;
  if (problem !== undefined) throw problem;
  return document.toJS({ maxAliasCount: MAX_ALIASES });
}

type Expectation = LeafCheckOf<"json" | "yaml">;

async function expectAt(check: Expectation, format: Format, context: CheckContext): Promise<Finding> {
  const conditions = [check.equals, check.matches, check.exists].filter((condition) => condition !== undefined);
  if (conditions.length !== 1) {
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
    const message = found.isThere ? `${where} exists` : `${where}: no value`;
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

/** More rounds than a sensible schema needs. */
const MAX_LOOKS = 20;

/**
 * Patterns of the schema are matched in a thread that can be stopped: the schema is evaluated with the answers known so far,
 * and what it asked besides is answered before the next round.
 */
export const schema: RunLeaf<"schema"> = async (check, context) => {
  const document = await readDocument(check.path, formatOf(check.path), context);
  if ("finding" in document) return document.finding;
  const { sha256 } = document;
  let wanted: unknown = check.schema;
  if (typeof check.schema === "string") {
    const read = await readDocument(check.schema, formatOf(check.schema), context);
    if ("finding" in read) return cannot(`the schema cannot be used: ${read.finding.message}`);
    wanted = read.value;
  }
  const violations = await violationsOf(wanted, { name: check.path, value: document.value, context });
  if (violations.length === 0) return passed(`${check.path} has the shape of its schema`, { sha256 });
  const output = violations.join("\n");
  return failed(`${check.path} breaks its schema: ${listed(violations, 2)}`, { sha256, output });
};

async function violationsOf(
  wanted: unknown,
  { name, value, context }: { readonly name: string; readonly value: unknown; readonly context: CheckContext },
): Promise<readonly string[]> {
  const parsed = parseJsonSchema(wanted);
  const answers = new Map<string, boolean>();
  for (let look = 0; look < MAX_LOOKS; look += 1) {
    const asked = new Map<string, Question>();
    const violations = parsed.violations(value, {
      name,
      matches({ source, flags }, text) {
        const key = JSON.stringify([source, flags, text]);
        const known = answers.get(key);
        if (known === undefined) asked.set(key, { source, flags, text });
        return known === true;
      },
    });
    if (asked.size === 0) return violations;
    const matches = await testPatterns([...asked.values()], context.signal);
    for (const [index, key] of [...asked.keys()].entries()) answers.set(key, matches[index] === true);
  }
  throw new HeddleError("limit.reached", `the patterns of the schema of ${shown(name)} take too long`);
}

function formatOf(path: string): Format {
  return /\.ya?ml$/i.test(path) ? "yaml" : "json";
}
