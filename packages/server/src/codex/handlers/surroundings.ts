/** What a client asks before its first turn: profiles, configuration, skills, modes. */
import { homedir } from "node:os";
import path from "node:path";
import { foldersFromRoot, loadSkills } from "@heddle/agent";
import { PROFILES } from "@heddle/dialects/codex-app-server";
import { isHeddleError } from "@heddle/protocol";
import type { Call, Handler, ServerContext } from "../../rpc/call.ts";
import { pageOf } from "../../rpc/paging.ts";
import type { Reply } from "../../rpc/peer.ts";
import { defaultSettings } from "../settings.ts";
import { folderOf } from "./threads.ts";

export const listProfiles: Handler<"permissionProfile/list"> = async (params) => {
  const { data, nextCursor } = pageOf(Object.values(PROFILES), params, (id) => id);
  return { result: { data: data.map((id) => ({ id, description: null, allowed: true })), nextCursor } };
};

/** What a turn with default settings runs with. */
export async function readConfig(_: unknown, { server }: Call): Promise<Reply> {
  const settings = await defaultSettings(server.settings);
  const config = {
    ...Object.fromEntries(UNSAID.map((key) => [key, null])),
    model: settings?.model ?? null,
    model_provider: settings?.provider ?? null,
    model_reasoning_effort: settings?.effort ?? null,
    approval_policy: settings?.approvalPolicy ?? null,
    sandbox_mode: settings?.sandboxMode ?? null,
  };
  return { result: { config, origins: {}, layers: null } };
}

/** Keys that clients look for and that have no counterpart here. */
const UNSAID = [
  "review_model",
  "model_context_window",
  "model_auto_compact_token_limit",
  "model_auto_compact_token_limit_scope",
  "approvals_reviewer",
  "sandbox_workspace_write",
  "forced_chatgpt_workspace_id",
  "forced_login_method",
  "web_search",
  "tools",
  "instructions",
  "developer_instructions",
  "compact_prompt",
  "model_reasoning_summary",
  "model_verbosity",
  "service_tier",
  "analytics",
  "apps",
  "browser_use",
  "computer_use",
  "desktop",
];

const SKILLS_MS = 10_000;
const MAX_FOLDERS = 20;

export const listSkills: Handler<"skills/list"> = async ({ cwds }, { server }) => {
  const wanted = cwds === undefined || cwds === null || cwds.length === 0 ? [server.cwd] : cwds.slice(0, MAX_FOLDERS);
  return { result: { data: await Promise.all(wanted.map((cwd) => skillsOf(cwd, server))) } };
};

async function skillsOf(cwd: string, server: ServerContext): Promise<Readonly<Record<string, unknown>>> {
  const folders = foldersFromRoot(await folderOf(cwd, server));
  const { skills, skipped } = await loadSkills({
    folders,
    home: server.home,
    userHome: homedir(),
    masked: [server.home],
    extraRoots: server.host.skills?.extraRoots(),
    signal: AbortSignal.timeout(SKILLS_MS),
  });
  const isNear = (file: string): boolean => folders.some((folder) => file.startsWith(`${folder}${path.sep}`));
  return {
    cwd,
    skills: skills.map((skill) => ({
      name: skill.name,
      description: skill.description,
      path: skill.path,
      scope: isNear(skill.path) ? "repo" : "user",
      enabled: server.host.skills?.isEnabled(skill) ?? true,
      pluginId: skill.pluginId ?? null,
    })),
    errors: skipped.map(({ path: file, reason }) => ({ path: file, message: reason })),
  };
}

export const listCollaborationModes: Handler<"collaborationMode/list"> = async () => {
  const mode = (name: string) => ({ name, mode: name.toLowerCase(), model: null, reasoning_effort: null });
  return { result: { data: [mode("Plan"), mode("Default")] } };
};

/** Of the provider that a turn without further settings asks; where none can be chosen yet, nothing can be done. */
export const readProviderCapabilities: Handler<"modelProvider/capabilities/read"> = async (_, { server }) => {
  const webSearch = await server.settings.explain({ mayLackKey: true }).then(
    ({ canSearch }) => canSearch,
    (error: unknown) => {
      if (isHeddleError(error)) return false;
      throw error;
    },
  );
  return { result: { imageGeneration: false, webSearch } };
};
