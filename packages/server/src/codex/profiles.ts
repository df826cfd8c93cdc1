/** Permission profiles by name: what they come to, and what may not stand beside them. */
import { sandboxOfProfile, type SandboxChoice } from "@heddle/dialects/codex-app-server";
import { visibleLine } from "@heddle/protocol";
import { refuse } from "./thread-facts.ts";

/** What a client that names a profile gets; it may not name parts of it as well. */
export function profileChoice(
  name: string | null | undefined,
  beside: { readonly field: "sandbox" | "sandboxPolicy"; readonly value: unknown },
): Partial<SandboxChoice> {
  if (name === undefined || name === null) return {};
  if ((beside.value ?? undefined) !== undefined) {
    throw refuse(`\`permissions\` cannot be combined with \`${beside.field}\``);
  }
  const choice = sandboxOfProfile(name);
  if (choice === undefined) throw refuse(`failed to load configuration: ${unknownProfile(name)}`);
  return choice;
}

export function unknownProfile(name: string): string {
  return `default_permissions refers to unknown built-in profile \`${visibleLine(name)}\``;
}
