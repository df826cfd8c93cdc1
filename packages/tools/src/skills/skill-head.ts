/**
 * The head of a SKILL.md: `name` and `description` between two `---` lines, in the little YAML that people write there.
 * Not a YAML parser on purpose: no anchors, tags or collections, nothing that expands; other keys are passed over.
 */

export type SkillHead =
  | {
      readonly kind: "head";
      readonly name: string | undefined;
      readonly description: string;
      readonly bodyStart: number;
    }
  | { readonly kind: "bad"; readonly reason: string };

const MAX_LINES = 200;
const MAX_DESCRIPTION_CHARS = 1024;
const MAX_NAME_CHARS = 64;

export function parseSkillHead(text: string): SkillHead {
  const lines = text
    .replace(/^\uFEFF/, "")
    .split("\n", MAX_LINES + 2)
    .map((line) => line.replace(/\r$/, ""));
  if (lines[0]?.trimEnd() !== "---") return bad("it does not begin with ---");
  const end = lines.findIndex((line, index) => index > 0 && line.trimEnd() === "---");
  if (end === -1) return bad(`its head has no closing --- within ${MAX_LINES} lines`);
  const values = new Map<string, string>();
  for (let index = 1; index < end;) {
    const line = lines[index] ?? "";
    const next = endOfEntry(lines, index + 1, end);
    const [, key, value] = /^([A-Za-z][\w-]*):(?:[ \t]+(.*))?$/.exec(line) ?? [];
    if (key === "name" || key === "description") {
      if (values.has(key)) return bad(`${key} is given twice`);
      const scalar = readScalar((value ?? "").trim(), lines.slice(index + 1, next));
      if (scalar === undefined) return bad(`its ${key} is not plain text`);
      values.set(key, scalar);
    }
    index = next;
  }
  const name = values.get("name");
  if (name !== undefined && !isSkillName(name)) return bad("its name is not made of a-z, 0-9 and single hyphens");
  const description = (values.get("description") ?? "").trim().replaceAll(/\s+/g, " ");
  if (description === "") return bad("it has no description");
  const bodyStart = lines.slice(0, end + 1).reduce((total, line) => total + line.length + 1, 0);
  return { kind: "head", name, description: description.slice(0, MAX_DESCRIPTION_CHARS), bodyStart };
}

export function isSkillName(name: string): boolean {
  return name.length <= MAX_NAME_CHARS && /^[a-z0-9]+(?:-[a-z0-9]+)*$/.test(name);
}

/** An entry continues with indented and empty lines. */
function endOfEntry(lines: readonly string[], from: number, end: number): number {
  let index = from;
  while (index < end && /^(?:[ \t]|$)/.test(lines[index] ?? "")) index += 1;
  return index;
}

/** undefined: something that would need a real YAML parser. */
function readScalar(value: string, more: readonly string[]): string | undefined {
  const rest = more.map((line) => line.trim());
  if (/^[|>][+-]?$/.test(value)) return rest.join(value.startsWith("|") ? "\n" : " ");
  const whole = [value, ...rest].filter((line) => line !== "").join(" ");
  if (whole.startsWith('"')) return quoted(whole);
  if (whole.startsWith("'"))
    return /^'(?:[^']|'')*'$/.test(whole) ? whole.slice(1, -1).replaceAll("''", "'") : undefined;
  if (/^[&*!|>%@`[{]/.test(whole)) return undefined;
  // A comment begins after a space.
  return whole.replace(/(^|\s)#.*$/, "").trim();
}

/** The escapes of JSON are the common ones of both. */
function quoted(text: string): string | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "string" ? value : undefined;
  } catch {
    return undefined;
  }
}

function bad(reason: string): SkillHead {
  return { kind: "bad", reason };
}
