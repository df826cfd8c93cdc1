/**
 * Paths that an agent may not write, at any depth, existing or not: other programs execute or trust what lies there
 * later (git hooks, editors, shells, package managers, other agents). Names are compared without case, because a
 * checkout may move to a file system that ignores it.
 */

const NAMES: ReadonlySet<string> = new Set([
  ".heddle",
  ".codex",
  ".agents",
  ".claude",
  ".opencode",
  ".gemini",
  ".cursor",
  ".vscode",
  ".idea",
  ".devcontainer",
  ".husky",
  ".mcp.json",
  "opencode.json",
  ".envrc",
  ".npmrc",
  ".bashrc",
  ".bash_profile",
  ".zshrc",
  ".zprofile",
  ".profile",
  ".gitconfig",
  ".gitmodules",
  ".ripgreprc",
]);

/** .yarnrc, .yarnrc.yml and what yarn reads beside them. */
const NAME_PREFIXES: readonly string[] = [".yarnrc"];

/** Entries of a git folder that make git run or read something else. The rest of it stays writable: git must work. */
export const GIT_PROTECTED: ReadonlySet<string> = new Set(["hooks", "config", "config.worktree", "info", "commondir"]);

/** Reported, never refused: attributes only name filters, and those are defined in a protected configuration. */
export const REPORTED_NAME = ".gitattributes";

/** What a name comes down to on file systems that ignore case, some characters, or what follows a dot, blank or colon. */
export function plainName(name: string): string {
  if (/^\.?[\w-]+(?:\.[\w-]+)*$/.test(name)) return name.toLowerCase();
  const seen = name.replaceAll(/[\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]/gu, "").split(":", 1)[0] ?? "";
  const bare = seen.replace(/[. ]+$/, "").toLowerCase();
  return bare === "git~1" ? ".git" : bare;
}

export function isProtectedName(name: string): boolean {
  const lower = plainName(name);
  return NAMES.has(lower) || NAME_PREFIXES.some((prefix) => lower.startsWith(prefix));
}

/** `.github` itself is harmless; what runs is below `workflows`. */
export function isProtectedChild(parent: string, name: string): boolean {
  return plainName(name) === "workflows" && plainName(parent) === ".github";
}

/**
 * The first protected part of a path below a write root, for file tools. They have no business anywhere inside `.git`:
 * git itself works through commands, where only the dangerous entries are closed.
 */
export function protectedPart(components: readonly string[]): string | undefined {
  for (const [index, name] of components.entries()) {
    if (isProtectedName(name) || plainName(name) === ".git") return components.slice(0, index + 1).join("/");
    const parent = components[index - 1];
    if (parent !== undefined && isProtectedChild(parent, name)) return components.slice(0, index + 1).join("/");
  }
  return undefined;
}
