/** Files that the spec protects by name and that are not as they were. */
import { visibleName, type CheckViolation } from "@heddle/protocol";
import type { TaskSpec } from "@heddle/protocol/tasks";
import { protectedPart } from "@heddle/tools/files";
import { toText } from "@heddle/tools/raw-path";
import { globList, literalGlob } from "../checks/globs.ts";
import { relativePath } from "../checks/relative-path.ts";
import { listed } from "../checks/shown.ts";
import type { Change } from "../tree/manifest.ts";

/** They are stored, and told to the agent; more say nothing new. */
const MAX_VIOLATIONS = 50;

/** What is new below a protected path is free. What is in a folder tells that it went; its mode is told by itself. */
export function protectedChanges(
  changes: readonly Change[],
  { protect }: Pick<TaskSpec, "protect">,
): readonly CheckViolation[] {
  const isProtected = globList(protect);
  return changes
    .filter(({ how, before, now, path }) => {
      const isTold = before?.kind === "folder" && now?.kind !== "folder";
      return how !== "added" && !isTold && isProtected(toText(path));
    })
    .slice(0, MAX_VIOLATIONS)
    .map(({ path: raw, how }): CheckViolation => {
      const path = toText(raw);
      const free = `put it back as it was, or, if that is the work, add deliver: [${JSON.stringify(literalGlob(path))}] and take it out of protect`;
      return how === "removed"
        ? { kind: "protected-removed", path, message: `${visibleName(path)} is protected and was removed; ${free}` }
        : { kind: "protected-changed", path, message: `${visibleName(path)} is protected and was changed; ${free}` };
    });
}

/** What `deliver` names although the sandbox keeps agents from writing it, as sentences. */
export function undeliverable({ deliver = [], sandbox }: Pick<TaskSpec, "deliver" | "sandbox">): readonly string[] {
  if (sandbox === "danger-full-access") return [];
  return deliver.flatMap((glob) => {
    const part = glob.startsWith("!") ? undefined : protectedPart(relativePath(glob).split("/"));
    if (part === undefined) return [];
    return [
      `deliver names ${JSON.stringify(glob)}, and no agent can write ${part}: other programs run or trust what lies there, so that it is protected and what is put there goes to quarantine; write it yourself and take it out of deliver`,
    ];
  });
}

/** What an agent is told beforehand, so that it need not find out by being rejected; "" when there is nothing to tell. */
export function rulesText({ deliver, protect, checks }: Pick<TaskSpec, "deliver" | "protect" | "checks">): string {
  if (checks.length === 0) return "";
  const named = protect.filter((glob) => !glob.startsWith("!"));
  const free = protect.filter((glob) => glob.startsWith("!")).map((glob) => glob.slice(1));
  const lines = [
    deliver === undefined
      ? "Heddle judges your files in a clean copy of the workspace and names what the verdict rests on: changing tests, configuration or helpers that checks read puts the work before its owner instead of finishing it."
      : `Only these files are taken from you, on a clean copy of the workspace: ${listed(deliver, 20)}. What else you change is not judged and not kept.`,
    named.length === 0
      ? ""
      : `Work that changes protected files is rejected: leave ${listed(named, 20)} as they are${free.length === 0 ? "" : `, except ${listed(free, 20)}`}.`,
  ];
  return lines.filter((line) => line !== "").join(" ");
}
