/** What a chat can choose from: skills, models, tools, modes. */
import { homedir } from "node:os";
import { foldersFromRoot, loadSkills } from "@heddle/agent";
import { modelInfo } from "@heddle/models";
import { HeddleError } from "@heddle/protocol";
import { COLLABORATION_MODES } from "@heddle/dialects/chat";
import { envelopeFor, toolsFor } from "@heddle/tools";
import type { ChatContext, ChatHandler } from "../call.ts";
import { defaultSettings } from "../../codex/settings.ts";
import { requireChat } from "../chats.ts";
import { turnSettings } from "../turn-settings.ts";

const LOOK_MS = 10_000;

export const listSkills: ChatHandler<"chat.skills.list"> = async ({ chat_id }, { server }) => {
  const workspace = chat_id === undefined ? server.cwd : (await requireChat(server, { chat_id })).workspace;
  const skills = (await skillsIn(server, workspace)).map((skill) => {
    const { name, path, description } = skill;
    return { name, path, description, enabled: server.skills?.isEnabled(skill) ?? true };
  });
  return { result: { data: [{ skills }] } };
};

async function skillsIn({ home }: ChatContext, workspace: string) {
  const folders = foldersFromRoot(workspace);
  const signal = AbortSignal.timeout(LOOK_MS);
  return (await loadSkills({ folders, home, userHome: homedir(), masked: [home], signal })).skills;
}

export const writeSkillConfig: ChatHandler<"chat.skills.config.write"> = async (params, { server }) => {
  const { name, path, enabled } = params;
  const found = (await skillsIn(server, server.cwd)).find((skill) => skill.name === name || skill.path === path);
  if (found === undefined) throw new HeddleError("usage.invalid", "path: there is no such skill");
  const isNow = server.skills?.isEnabled(found) ?? true;
  if (isNow === enabled) return { result: { ok: true, enabled } };
  if (server.skills === undefined)
    throw new HeddleError("usage.invalid", "enabled: skills cannot be switched off here");
  await server.skills.setEnabled(path ?? found.name, enabled);
  return { result: { ok: true, enabled } };
};

export const listModels: ChatHandler<"chat.model.list"> = async ({ provider, refresh }, { server }) => {
  const chosen = await defaultSettings(server.settings);
  const accounts = await server.accounts();
  const listings = await accounts.models({ provider, isForced: refresh === true });
  const data = listings.flatMap((listing) =>
    listing.models.map(({ id, name }) => ({
      id: `${listing.provider}:${id}`,
      model: id,
      provider: listing.provider,
      display_name: name ?? id,
      is_default: chosen?.provider === listing.provider && chosen.model === id,
    })),
  );
  const stale = listings.some(({ isStale, isLoggedIn }) => isStale && isLoggedIn);
  return { result: { data, fetched_at: new Date().toISOString(), stale } };
};

const ANY_PROVIDER = { wire: "openai-chat", vendor: undefined, family: undefined } as const;

export const listTools: ChatHandler<"chat.tools.list"> = async ({ chat_id }, { server }) => {
  const row = chat_id === undefined ? undefined : await requireChat(server, { chat_id });
  const settings =
    row === undefined ? await defaultSettings(server.settings) : (await turnSettings(server, row, {})).settings;
  const envelope = envelopeFor({
    mode: settings?.sandboxMode ?? "workspace-write",
    workspace: row?.workspace ?? server.cwd,
    writableRoots: settings?.writableRoots ?? [],
    networkAccess: settings?.networkAccess ?? false,
    networkHosts: settings?.networkHosts,
    approval: settings?.approvalPolicy ?? "on-request",
    masked: [server.home],
  });
  const { family } = modelInfo(ANY_PROVIDER, settings?.model ?? "");
  const data = toolsFor(family, envelope).offered.map(({ name, description, parameters }) => ({
    name,
    description,
    provider: "heddle",
    provider_dynamic: false,
    input_schema: parameters ?? { type: "string" },
  }));
  return { result: { data } };
};

export const listModes: ChatHandler<"chat.collaboration.mode.list"> = () =>
  Promise.resolve({ result: { data: COLLABORATION_MODES.map((mode) => ({ ...mode })) } });
