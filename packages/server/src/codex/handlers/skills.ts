/** `skills/*` besides the list: where else skills lie while the server runs, and which of them are off. */
import type { SkillsConfigWriteParams, SkillsExtraRootsParams } from "@heddle/dialects/codex-app-server";
import type { Call, ServerContext } from "../../rpc/call.ts";
import { absolutePath } from "../../host/file-rules.ts";
import type { HostSkills } from "../../host/host.ts";
import { invalidArgument } from "../../host/host-error.ts";
import type { Reply } from "../../rpc/peer.ts";
import { refuse } from "../thread-facts.ts";

const MAX_ROOTS = 20;

export async function setSkillRoots({ extraRoots }: SkillsExtraRootsParams, { server }: Call): Promise<Reply> {
  const roots = extraRoots.map(absolutePath);
  if (roots.length > MAX_ROOTS) throw refuse(`skills/extraRoots/set takes at most ${MAX_ROOTS} folders`);
  requireSkills(server).setExtraRoots(roots);
  return { result: {}, after: () => tellChange(server) };
}

export async function writeSkillConfig(params: SkillsConfigWriteParams, { server }: Call): Promise<Reply> {
  const { path, name, enabled } = params;
  const [skill, another] = [typeof path === "string" ? absolutePath(path) : [], name ?? []].flat();
  if (skill === undefined || skill === "" || another !== undefined) {
    throw invalidArgument("skills/config/write requires exactly one of path or name");
  }
  await requireSkills(server).setEnabled(skill, enabled);
  return { result: { effectiveEnabled: enabled }, after: () => tellChange(server) };
}

function tellChange(server: ServerContext): void {
  server.announce({ method: "skills/changed", params: {} });
}

function requireSkills({ host }: ServerContext): HostSkills {
  if (host.skills === undefined) throw refuse("the skills of this server cannot be changed");
  return host.skills;
}
