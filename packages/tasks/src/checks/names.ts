/** Names of checks: their own, or a short description; each is unique, so that a baseline can refer to it. */
import type { LeafCheck } from "@heddle/protocol";
import type { TaskCheck } from "@heddle/protocol/tasks";

const MAX_CHARS = 100;

export interface NamedCheck {
  readonly name: string;
  readonly check: TaskCheck;
  /** Of `all`, `any` and `not`. */
  readonly parts: readonly NamedCheck[];
}

/** The same checks always get the same names. */
export function nameChecks(checks: readonly TaskCheck[]): readonly NamedCheck[] {
  const taken = new Set<string>();
  const give = (check: TaskCheck): NamedCheck => {
    const wanted = (check.name ?? describe(check)).slice(0, MAX_CHARS);
    let name = wanted;
    for (let number = 2; taken.has(name); number += 1) name = `${wanted} (${number})`;
    taken.add(name);
    return { name, check, parts: partsOf(check).map(give) };
  };
  return checks.map(give);
}

export function everyNamed(checks: readonly NamedCheck[]): readonly NamedCheck[] {
  return checks.flatMap((named) => [named, ...everyNamed(named.parts)]);
}

/** Every check but `all`, `any` and `not`. */
export function leavesOf(checks: readonly TaskCheck[]): readonly LeafCheck[] {
  return checks.flatMap((check) => (isLeaf(check) ? [check] : leavesOf(partsOf(check))));
}

export function isLeaf(check: TaskCheck): check is LeafCheck {
  return check.kind !== "all" && check.kind !== "any" && check.kind !== "not";
}

function partsOf(check: TaskCheck): readonly TaskCheck[] {
  if (check.kind === "not") return [check.of];
  return check.kind === "all" || check.kind === "any" ? check.of : [];
}

function describe(check: TaskCheck): string {
  switch (check.kind) {
    case "all":
    case "any":
      return `${check.kind} of ${check.of.length}`;
    case "not":
      return `not ${check.of.name ?? describe(check.of)}`;
    case "glob-count":
      return `glob-count ${check.glob}`;
    case "changed":
    case "unchanged":
      return `${check.kind} ${check.paths.join(", ")}`;
    case "command":
    case "tests":
      return `${check.kind} ${typeof check.run === "string" ? check.run : check.run.join(" ")}`;
    case "git":
      return `git ${["clean", "commit", "branch", "only"].filter((key) => key in check).join(", ")}`;
    case "checkboxes":
      return `checkboxes ${check.change ?? check.paths?.join(", ") ?? ""}`;
    case "http":
      return `http ${check.url}`;
    case "json":
    case "yaml":
      return `${check.kind} ${check.path}${check.at === undefined ? "" : ` ${check.at}`}`;
    default:
      return `${check.kind} ${check.path}`;
  }
}
