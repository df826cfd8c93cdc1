/** Params of the methods about the machine: its configuration, accounts, search, hooks and MCP servers. */
import { z } from "zod";

const text = z.string().nullish();
const count = z.int().nonnegative().nullish();
const flag = z.boolean().nullish();

export const ConfigReadParams = z.object({ includeLayers: flag, cwd: text });
export type ConfigReadParams = z.infer<typeof ConfigReadParams>;

const ConfigEditParam = z.object({
  keyPath: z.string(),
  value: z.unknown(),
  mergeStrategy: z.enum(["replace", "upsert"]),
});
export type ConfigEditParam = z.infer<typeof ConfigEditParam>;

const target = { filePath: text, expectedVersion: text };
export const ConfigValueWriteParams = ConfigEditParam.extend(target);
export type ConfigValueWriteParams = z.infer<typeof ConfigValueWriteParams>;

export const ConfigBatchWriteParams = z.object({ edits: z.array(ConfigEditParam), ...target, reloadUserConfig: flag });
export type ConfigBatchWriteParams = z.infer<typeof ConfigBatchWriteParams>;

export const FuzzyFileSearchParams = z.object({
  query: z.string(),
  roots: z.array(z.string()),
  cancellationToken: text,
});
export type FuzzyFileSearchParams = z.infer<typeof FuzzyFileSearchParams>;

export const GitDiffToRemoteParams = z.object({ cwd: z.string() });
export type GitDiffToRemoteParams = z.infer<typeof GitDiffToRemoteParams>;

export const HooksListParams = z.object({ cwds: z.array(z.string()).nullish(), threadId: text });
export type HooksListParams = z.infer<typeof HooksListParams>;

export const SkillsExtraRootsParams = z.object({ extraRoots: z.array(z.string()) });
export type SkillsExtraRootsParams = z.infer<typeof SkillsExtraRootsParams>;

export const SkillsConfigWriteParams = z.object({ path: text, name: text, enabled: z.boolean() });
export type SkillsConfigWriteParams = z.infer<typeof SkillsConfigWriteParams>;

export const McpServerStatusListParams = z.object({
  cursor: text,
  limit: count,
  detail: z.enum(["full", "toolsAndAuthOnly"]).nullish(),
  threadId: text,
  serverName: text,
});
export type McpServerStatusListParams = z.infer<typeof McpServerStatusListParams>;

export const McpToolCallParams = z.object({
  threadId: z.string(),
  server: z.string(),
  tool: z.string(),
  arguments: z.unknown().optional(),
});
export type McpToolCallParams = z.infer<typeof McpToolCallParams>;

export const McpResourceReadParams = z.object({ threadId: text, server: z.string(), uri: z.string() });
export type McpResourceReadParams = z.infer<typeof McpResourceReadParams>;

export const McpOauthLoginParams = z.object({
  name: z.string(),
  threadId: text,
  scopes: z.array(z.string()).nullish(),
  timeoutSecs: z.int().nullish(),
  clientRegistration: z.enum(["auto", "cimd", "dcr"]).nullish(),
});
export type McpOauthLoginParams = z.infer<typeof McpOauthLoginParams>;

export const LoginAccountParams = z.discriminatedUnion("type", [
  z.object({ type: z.literal("apiKey"), apiKey: z.string() }),
  z.object({ type: z.literal("chatgpt") }),
  z.object({ type: z.literal("chatgptDeviceCode") }),
  z.object({ type: z.literal("chatgptAuthTokens"), accessToken: z.string(), chatgptAccountId: z.string() }),
  z.object({ type: z.literal("amazonBedrock"), apiKey: z.string(), region: z.string() }),
  z.object({ type: z.literal("amazonBedrockAccessKeys"), accessKeyId: z.string(), secretAccessKey: z.string() }),
]);
export type LoginAccountParams = z.infer<typeof LoginAccountParams>;

export const CancelLoginParams = z.object({ loginId: z.string() });
export type CancelLoginParams = z.infer<typeof CancelLoginParams>;

export const AccountReadParams = z.object({ refreshToken: flag });
export type AccountReadParams = z.infer<typeof AccountReadParams>;
