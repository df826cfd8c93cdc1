/** What clients of the Agent Client Protocol send. Unknown keys are passed over: later versions have more. */
import { z } from "zod";

const MAX_NAME_CHARS = 200;
const name = z.string().max(MAX_NAME_CHARS);
const sessionId = z.string();
const cwd = z
  .string()
  .refine((path) => path.startsWith("/") || /^[A-Za-z]:[\\/]/.test(path), "must be an absolute path");

const Pairs = z.array(z.object({ name: z.string(), value: z.string() }));
const McpServer = z.union([
  z.object({ type: z.literal("http"), name, url: z.string(), headers: Pairs.default([]) }),
  z.object({ type: z.literal("sse"), name, url: z.string() }),
  z.object({
    type: z.literal("stdio").optional(),
    name,
    command: z.string(),
    args: z.array(z.string()).default([]),
    env: Pairs.default([]),
  }),
]);
export type AcpMcpServer = z.infer<typeof McpServer>;
/** More at once are no configuration of an editor. */
const MAX_SERVERS = 100;
const mcpServers = z.array(McpServer).max(MAX_SERVERS);

const Resource = z.union([
  z.object({ uri: z.string(), text: z.string(), mimeType: z.string().nullish() }),
  z.object({ uri: z.string(), blob: z.string(), mimeType: z.string().nullish() }),
]);

export const ContentBlock = z.discriminatedUnion("type", [
  z.object({ type: z.literal("text"), text: z.string() }),
  z.object({ type: z.literal("image"), data: z.string(), mimeType: z.string() }),
  z.object({ type: z.literal("audio") }),
  z.object({ type: z.literal("resource_link"), uri: z.string(), name: z.string(), title: z.string().nullish() }),
  z.object({ type: z.literal("resource"), resource: Resource }),
]);
export type ContentBlock = z.infer<typeof ContentBlock>;

const enabled = z.looseObject({}).nullish();
const ClientCapabilities = z.looseObject({
  session: z.looseObject({ notices: enabled, compaction: enabled }).nullish(),
  elicitation: z.looseObject({ form: enabled }).nullish(),
  _meta: z.looseObject({ terminal_output: z.unknown() }).nullish(),
});

export const ACP_PARAMS = {
  initialize: z.looseObject({
    protocolVersion: z.number(),
    clientInfo: z.looseObject({ name, version: z.string().optional() }).nullish(),
    clientCapabilities: ClientCapabilities.nullish().catch(undefined),
  }),
  authenticate: z.looseObject({ methodId: z.string() }),
  "session/new": z.object({ cwd, mcpServers: mcpServers.default([]), additionalDirectories: z.array(cwd).nullish() }),
  "session/load": z.object({ sessionId, cwd, mcpServers: mcpServers.default([]) }),
  "session/resume": z.object({ sessionId, cwd, mcpServers: mcpServers.optional() }),
  "session/fork": z.object({ sessionId, cwd, mcpServers: mcpServers.optional() }),
  "session/list": z.object({ cwd: cwd.nullish(), cursor: z.string().nullish() }),
  "session/close": z.object({ sessionId }),
  "session/delete": z.object({ sessionId }),
  "session/set_title": z.object({ sessionId, title: z.string() }),
  "session/prompt": z.object({ sessionId, prompt: z.array(ContentBlock) }),
  "session/set_mode": z.object({ sessionId, modeId: name }),
  "session/set_model": z.object({ sessionId, modelId: name }),
  "session/set_config_option": z.object({ sessionId, configId: name, value: z.union([name, z.boolean()]) }),
} as const;
export type AcpMethod = keyof typeof ACP_PARAMS;
export type AcpParams<Method extends AcpMethod> = z.infer<(typeof ACP_PARAMS)[Method]>;

export const Cancel = z.object({ sessionId });
export const CancelRequest = z.object({ requestId: z.union([z.string(), z.number()]) });
