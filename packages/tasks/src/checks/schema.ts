/**
 * A JSON or YAML file has the shape that a JSON Schema asks for. Patterns of the schema are matched apart, where they can be
 * stopped: the schema is judged with the answers known so far, and what it asked besides is answered before the next look.
 */
import { parseJsonSchema } from "@heddle/agent";
import { HeddleError } from "@heddle/protocol";
import { cannot, failed, passed, type CheckContext, type RunLeaf } from "./check.ts";
import { readDocument, type Format } from "./documents.ts";
import { testPatterns, type Question } from "./patterns.ts";
import { listed, shown } from "./shown.ts";

const MAX_LOOKS = 20;

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
    const told = await testPatterns([...asked.values()], context.signal);
    for (const [index, key] of [...asked.keys()].entries()) answers.set(key, told[index] === true);
  }
  throw new HeddleError("limit.reached", `the patterns of the schema of ${shown(name)} take too long`);
}

function formatOf(path: string): Format {
  return /\.ya?ml$/i.test(path) ? "yaml" : "json";
}
