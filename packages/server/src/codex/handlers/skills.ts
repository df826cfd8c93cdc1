/** `skills/*` except the list: further folders of skills while the server runs, and which skills are off. */
import type { Handler, ServerContext } from "../../rpc/call.ts";
import { absolutePath } from "../../host/file-rules.ts";
import type { HostSkills } from "../../host/host.ts";
import { invalidArgument } from "../../host/host-error.ts";
import { refuse } from "../thread-facts.ts";

const MAX_ROOTS = 20;

export const setSkillRoots: Handler<"skills/extraRoots/set"> = async ({ extraRoots }, { server }) => {
  const roots = extraRoots.map(absolutePath);
  if (roots.length > MAX_ROOTS) throw refuse(`skills/extraRoots/set takes at most ${MAX_ROOTS} folders`);
  requireSkills(server).setExtraRoots(roots);
  return { result: {}, after: () => announceChange(server) };
};

export const writeSkillConfig: Handler<"skills/config/write"> = async (params, { server }) => {
  const { path, name, enabled } = params;
  const [skill, another] = [typeof path === "string" ? absolutePath(path) : [], name ?? []].flat();
  if (skill === undefined || skill === "" || another !== undefined) {
    throw invalidArgument("skills/config/write requires exactly one of path or name");
  }
  await requireSkills(server).setEnabled(skill, enabled);
  return { result: { effectiveEnabled: enabled }, after: () => announceChange(server) };
};

function announceChange(server: ServerContext): void {
  server.announce({ method: "skills/changed", params: {} });
}

function requireSkills({ host }: ServerContext): HostSkills {
  if (host.skills === undefined) throw refuse("the skills of this server cannot be changed");
  return host.skills;
}
