/** The built-in tools with everything they bring: loaded when the first call comes, or in idle time before it. */
import { HeddleError } from "@heddle/protocol";
import type { Tool } from "../tool.ts";
import { applyPatch } from "./apply-patch.ts";
import { bash } from "./bash.ts";
import { edit } from "./edit.ts";
import { execCommand } from "./exec-command.ts";
import { glob } from "./glob.ts";
import { grep } from "./grep.ts";
import { list } from "./list.ts";
import { read } from "./read.ts";
import { updatePlan } from "./update-plan.ts";
import { viewImage } from "./view-image.ts";
import { write } from "./write.ts";
import { writeStdin } from "./write-stdin.ts";

export { skillTool } from "./skill.ts";

export const TOOLS: readonly Tool[] = [
  execCommand,
  writeStdin,
  applyPatch,
  updatePlan,
  viewImage,
  bash,
  read,
  edit,
  write,
  list,
  glob,
  grep,
];
const byName = new Map(TOOLS.map((tool) => [tool.name, tool]));

export function toolNamed(name: string): Tool {
  const tool = byName.get(name);
  if (tool === undefined) throw new HeddleError("internal", `there is no built-in tool ${name}`);
  return tool;
}
