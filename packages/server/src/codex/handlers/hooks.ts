/** `hooks/list`: the hooks of Heddle's own configuration, and those of installed plugins, which are not run. */
import { createHash } from "node:crypto";
import path from "node:path";
import { installedWith } from "@heddle/agent";
import { canonical, type HookConfig } from "@heddle/protocol";
import type { PluginHook } from "@heddle/tools/plugins";
import type { Handler, ServerContext } from "../../rpc/call.ts";
import { requireLoaded } from "../thread-facts.ts";

const MAX_FOLDERS = 20;
const DEFAULT_TIMEOUT_MS = 60_000;

export const listHooks: Handler<"hooks/list"> = async ({ cwds, threadId }, { server }) => {
  const folders =
    typeof threadId === "string"
      ? [requireLoaded(server, threadId).workspace]
      : cwds === undefined || cwds === null || cwds.length === 0
        ? [server.cwd]
        : cwds.slice(0, MAX_FOLDERS);
  const own = (server.host.hooks ?? []).map((hook, index) => describe(hook, index, server));
  const hooks = [...own, ...(await hooksOfPlugins(server, own.length))];
  return { result: { data: folders.map((cwd) => ({ cwd, hooks, warnings: [], errors: [] })) } };
};

function describe(hook: HookConfig, index: number, { host, home }: ServerContext): Readonly<Record<string, unknown>> {
  const { event, matcher, command, timeoutMs } = hook;
  return {
    key: `hooks.${index}`,
    eventName: lowered(event),
    matcher: matcher ?? null,
    timeoutSec: Math.ceil((timeoutMs ?? DEFAULT_TIMEOUT_MS) / 1000),
    statusMessage: null,
    additionalContextLimit: null,
    sourcePath: host.config?.file ?? path.join(home, "config.toml"),
    source: "user",
    pluginId: null,
    environmentId: null,
    displayOrder: index,
    enabled: true,
    isManaged: false,
    currentHash: `sha256:${createHash("sha256").update(canonical(hook)).digest("hex")}`,
    trustStatus: "trusted",
    handlerType: "command",
    command: typeof command === "string" ? command : command.join(" "),
    async: false,
  };
}

export function lowered(event: string): string {
  return `${event.charAt(0).toLowerCase()}${event.slice(1)}`;
}

export function hookKey(pluginId: string, { file, event, group, index }: PluginHook): string {
  const snakeCase = event.replaceAll(/(?<!^)[A-Z]/g, (letter) => `_${letter}`).toLowerCase();
  return `${pluginId}:${file}:${snakeCase}:${group}:${index}`;
}

/** The original's, for a hook that does not say. */
const PLUGIN_TIMEOUT_SEC = 600;

async function hooksOfPlugins({ home }: ServerContext, displayed: number) {
  const found = await installedWith(home, async (plugin, { pluginHooks }) =>
    (await pluginHooks(plugin, { writeRoots: [], masked: [] })).map((hook) => ({ plugin, hook })),
  );
  return found.flat().map(({ plugin: { id, folder }, hook }, index) => ({
    key: hookKey(id, hook),
    eventName: lowered(hook.event),
    matcher: hook.matcher ?? null,
    timeoutSec: hook.timeoutSec ?? PLUGIN_TIMEOUT_SEC,
    statusMessage: null,
    additionalContextLimit: null,
    sourcePath: path.join(folder, hook.file),
    source: "plugin",
    pluginId: id,
    environmentId: null,
    displayOrder: displayed + index,
    enabled: true,
    isManaged: false,
    currentHash: `sha256:${createHash("sha256")
      .update(canonical({ ...hook }))
      .digest("hex")}`,
    // Only what the owner writes into the configuration is run.
    trustStatus: "untrusted",
    handlerType: "command",
    command: hook.command,
    async: false,
  }));
}
