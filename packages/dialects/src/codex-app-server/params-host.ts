/** Params of the methods about the machine: files, commands, search, configuration, accounts, skills, hooks, MCP servers. */
import { z } from "zod";
import { SandboxPolicyParam } from "./settings.ts";

const text = z.string().nullish();
const count = z.int().nonnegative().nullish();
const flag = z.boolean().nullish();
const none = z.object({});

/** The handler checks that it is absolute. */
const path = z.string();
const processId = z.string();
const TerminalSize = z.object({ rows: z.int().min(0).max(65_535), cols: z.int().min(0).max(65_535) });

const MarketplaceKind = z.enum(["local", "vertical", "workspace-directory", "shared-with-me", "created-by-me-remote"]);

const ConfigEdit = z.object({
  keyPath: z.string(),
  value: z.unknown(),
  mergeStrategy: z.enum(["replace", "upsert"]),
});
const configTarget = { filePath: text, expectedVersion: text };

export const HOST_PARAMS = {
  "account/read": z.object({ refreshToken: flag }),
  getAuthStatus: none,
  "config/read": z.object({ includeLayers: flag, cwd: text }),
  "fs/readFile": z.object({ path }),
  "fs/writeFile": z.object({ path, dataBase64: z.string() }),
  "fs/createDirectory": z.object({ path, recursive: flag }),
  "fs/getMetadata": z.object({ path }),
  "fs/readDirectory": z.object({ path }),
  "fs/remove": z.object({ path, recursive: flag, force: flag }),
  "fs/copy": z.object({ sourcePath: path, destinationPath: path, recursive: flag }),
  "fs/watch": z.object({ watchId: z.string(), path }),
  "fs/unwatch": z.object({ watchId: z.string() }),
  "command/exec": z.object({
    command: z.array(z.string()),
    processId: text,
    tty: flag,
    streamStdin: flag,
    streamStdoutStderr: flag,
    outputBytesCap: count,
    disableOutputCap: flag,
    disableTimeout: flag,
    timeoutMs: z.int().nullish(),
    cwd: text,
    env: z.record(z.string(), z.string().nullable()).nullish(),
    size: TerminalSize.nullish(),
    sandboxPolicy: SandboxPolicyParam.nullish(),
    permissionProfile: text,
  }),
  "command/exec/write": z.object({ processId, deltaBase64: text, closeStdin: flag }),
  "command/exec/terminate": z.object({ processId }),
  "command/exec/resize": z.object({ processId, size: TerminalSize }),
  "process/spawn": z.object({
    command: z.array(z.string()),
    processHandle: z.string(),
    cwd: path,
    tty: flag,
    streamStdin: flag,
    streamStdoutStderr: flag,
    outputBytesCap: count,
    timeoutMs: z.int().nullish(),
    env: z.record(z.string(), z.string().nullable()).nullish(),
    size: TerminalSize.nullish(),
  }),
  "process/writeStdin": z.object({ processHandle: z.string(), deltaBase64: text, closeStdin: flag }),
  "process/kill": z.object({ processHandle: z.string() }),
  "process/resizePty": z.object({ processHandle: z.string(), size: TerminalSize }),
  fuzzyFileSearch: z.object({ query: z.string(), roots: z.array(z.string()), cancellationToken: text }),
  "fuzzyFileSearch/sessionStart": z.object({ sessionId: z.string(), roots: z.array(z.string()) }),
  "fuzzyFileSearch/sessionUpdate": z.object({ sessionId: z.string(), query: z.string() }),
  "fuzzyFileSearch/sessionStop": z.object({ sessionId: z.string() }),
  gitDiffToRemote: z.object({ cwd: z.string() }),
  "skills/extraRoots/set": z.object({ extraRoots: z.array(z.string()) }),
  "skills/config/write": z.object({ path: text, name: text, enabled: z.boolean() }),
  "plugin/list": z.object({
    cwds: z.array(path).nullish(),
    marketplaceKinds: z.array(MarketplaceKind).nullish(),
  }),
  "plugin/installed": none,
  "plugin/reconcile": none,
  "plugin/install": z.object({ marketplacePath: text, remoteMarketplaceName: text, pluginName: z.string() }),
  "plugin/uninstall": z.object({ pluginId: z.string() }),
  "plugin/read": z.object({ marketplacePath: text, remoteMarketplaceName: text, pluginName: z.string() }),
  "hooks/list": z.object({ cwds: z.array(z.string()).nullish(), threadId: text }),
  "config/value/write": ConfigEdit.extend(configTarget),
  "config/batchWrite": z.object({ edits: z.array(ConfigEdit), ...configTarget, reloadUserConfig: flag }),
  "configRequirements/read": none,
  "experimentalFeature/list": z.object({ cursor: text, limit: count, threadId: text }),
  "experimentalFeature/enablement/set": z.object({ enablement: z.record(z.string(), z.boolean()) }),
  "collaborationMode/list": none,
  "modelProvider/capabilities/read": none,
  "mcpServerStatus/list": z.object({
    cursor: text,
    limit: count,
    detail: z.enum(["full", "toolsAndAuthOnly"]).nullish(),
    threadId: text,
    serverName: text,
  }),
  "mcpServer/tool/call": z.object({
    threadId: z.string(),
    server: z.string(),
    tool: z.string(),
    arguments: z.unknown().optional(),
    _meta: z.unknown().optional(),
  }),
  "mcpServer/resource/read": z.object({ threadId: text, server: z.string(), uri: z.string() }),
  "mcpServer/oauth/login": z.object({
    name: z.string(),
    threadId: text,
    scopes: z.array(z.string()).nullish(),
    timeoutSecs: z.int().nullish(),
    clientRegistration: z.enum(["auto", "cimd", "dcr"]).nullish(),
  }),
  "config/mcpServer/reload": none,
  "account/login/start": z.discriminatedUnion("type", [
    z.object({ type: z.literal("apiKey"), apiKey: z.string() }),
    z.object({ type: z.literal("chatgpt") }),
    z.object({ type: z.literal("chatgptDeviceCode") }),
    z.object({ type: z.literal("chatgptAuthTokens"), accessToken: z.string(), chatgptAccountId: z.string() }),
    z.object({ type: z.literal("amazonBedrock"), apiKey: z.string(), region: z.string() }),
    z.object({ type: z.literal("amazonBedrockAccessKeys"), accessKeyId: z.string(), secretAccessKey: z.string() }),
  ]),
  "account/login/cancel": z.object({ loginId: z.string() }),
  "account/logout": none,
  "account/rateLimits/read": none,
  "account/usage/read": z.object({ threadId: text }),
} as const;
