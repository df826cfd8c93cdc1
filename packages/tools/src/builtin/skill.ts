/**
 * `skill`: reads a file of a skill in Heddle's own home, which is hidden from every other tool. Only the folder of the
 * named skill can be reached.
 */
import { join } from "node:path";
import { HeddleError } from "@heddle/protocol";
import { textTool } from "../calls/call-item.ts";
import { isSkillName } from "../skills/skill-head.ts";
import { readSkill } from "../skills/skills.ts";
import type { Tool } from "../calls/tool.ts";
import { z } from "./schema.ts";

const Input = z.object({
  name: z.string(),
  file: z.optional(z.string().check(z.describe("Below the skill's folder; default is SKILL.md"))),
});
type Input = z.infer<typeof Input>;

export function skillTool(folder: string): Tool<Input> {
  return textTool<Input>({
    name: "skill",
    description: "Reads a skill whose file no other tool can read.",
    input: Input,
    async run(args, context) {
      // The owner's own folder: its links are trusted, paths of the model are not.
      const path = pathOf(folder, args);
      const { text, truncatedBytes } = await readSkill(path, { writeRoots: [], masked: [] }, context.signal);
      const cut = truncatedBytes > 0 ? `\n[${truncatedBytes} bytes left out]` : "";
      return `${text}${cut}`;
    },
  });
}

function pathOf(folder: string, { name, file = "SKILL.md" }: Input): string {
  if (!isSkillName(name))
    throw new HeddleError("tool.failed", `there is no skill ${JSON.stringify(name.slice(0, 100))}`);
  const root = join(folder, name);
  const path = join(root, file);
  if (!path.startsWith(`${root}/`)) throw new HeddleError("path.outside", `${file} is not in the folder of this skill`);
  return path;
}
