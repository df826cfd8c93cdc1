/** What a patch would change, read from the model's call, for the approval before it is applied. */
import type { FileChangeEntry } from "@heddle/protocol";

const HEAD = /^\*\*\* (Add|Update|Delete) File: (.+)$/;
const KINDS = { Add: "add", Update: "update", Delete: "delete" } as const;
/** It is sent to every client. */
const MAX_DIFF_CHARS = 64 * 1024;

interface Section {
  readonly kind: FileChangeEntry["kind"];
  readonly path: string;
  readonly lines: string[];
}

/** `paths` are absolute and decide; a path that the text does not explain has an empty diff. */
export function patchChanges(paths: readonly string[], callText: string): FileChangeEntry[] {
  const sections = sectionsOf(callText);
  return paths.map((path) => {
    const found = sections.find((section) => path === section.path || path.endsWith(`/${section.path}`));
    const diff = found?.lines.join("\n").replace(/\n$/, "") ?? "";
    return {
      path,
      kind: found?.kind ?? "update",
      diff: diff.slice(0, MAX_DIFF_CHARS),
      ...(diff.length > MAX_DIFF_CHARS ? { diffTruncatedBytes: diff.length - MAX_DIFF_CHARS } : {}),
    };
  });
}

function sectionsOf(callText: string): readonly Section[] {
  const sections: Section[] = [];
  for (const line of textOf(callText).split("\n")) {
    const [, word, path] = HEAD.exec(line) ?? [];
    if (path !== undefined && (word === "Add" || word === "Update" || word === "Delete")) {
      sections.push({ kind: KINDS[word], path: path.trim().replace(/^\.\//, ""), lines: [] });
    } else if (!line.startsWith("*** ")) sections.at(-1)?.lines.push(line);
  }
  return sections;
}

/** The bare patch, or the one string in the arguments that holds it. */
function textOf(callText: string): string {
  if (!callText.startsWith("{")) return callText;
  try {
    const args: unknown = JSON.parse(callText);
    const values = typeof args === "object" && args !== null ? Object.values(args) : [];
    return values.find((word): word is string => typeof word === "string" && word.includes("*** ")) ?? "";
  } catch {
    return "";
  }
}
