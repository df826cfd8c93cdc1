/** `hooks/list`: the hooks of Heddle's own configuration; nothing in a workspace is one. */
import { createHash } from "node:crypto";
import path from "node:path";
import { canonical, type HookConfig } from "@heddle/protocol";
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
  const hooks = (server.host.hooks ?? []).map((hook, index) => describe(hook, index, server));
  return { result: { data: folders.map((cwd) => ({ cwd, hooks, warnings: [], errors: [] })) } };
};

function describe(hook: HookConfig, index: number, { host, home }: ServerContext): Readonly<Record<string, unknown>> {
  const { event, matcher, command, timeoutMs } = hook;
  return {
    key: `hooks.${index}`,
    eventName: `${event.charAt(0).toLowerCase()}${event.slice(1)}`,
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
