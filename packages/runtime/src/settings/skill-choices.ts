/** Which skills the configuration switches off. */
import type { SkillChoices } from "@heddle/agent";

/** Both are asked each time: they may change while a server runs. */
export function skillChoices(
  disabled: () => readonly string[],
  extraRoots: () => readonly string[] = () => [],
): SkillChoices {
  return { extraRoots, isEnabled: ({ name, path }) => !disabled().includes(name) && !disabled().includes(path) };
}
