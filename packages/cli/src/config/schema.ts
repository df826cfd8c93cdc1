/**
 * The keys of config.toml: Heddle's own, strict, and with the same names and meanings as Codex has where both know them.
 * Every key is optional.
 */
import path from "node:path";
import { SandboxMode } from "@heddle/protocol";
import { z } from "zod";

const text = z.string().min(1);
const absolute = text.refine((folder) => path.isAbsolute(folder), "must be an absolute path");
const strings = z.record(z.string(), z.string());

const ProviderTable = z.strictObject({
  name: text.optional(),
  /** Needed unless the name is that of a built-in provider. */
  base_url: z.url({ protocol: /^https?$/ }).optional(),
  wire_api: z.enum(["responses", "chat", "anthropic", "gemini"]).optional(),
  /** The environment variable that holds the key; without one, no key is sent. */
  env_key: text.optional(),
  http_headers: strings.optional(),
  /** Header name to the environment variable that holds its value. */
  env_http_headers: strings.optional(),
  query_params: strings.optional(),
  request_max_retries: z.int().min(0).max(100).optional(),
  stream_max_retries: z.int().min(0).max(100).optional(),
  stream_idle_timeout_ms: z.int().min(1).optional(),
});
export type ProviderTable = z.infer<typeof ProviderTable>;

/** Policies that need somebody to ask; `exec` has nobody, so there they all mean `never`. */
const ApprovalPolicyKey = z.enum(["never", "on-request", "untrusted", "on-failure"]);

const Choices = {
  model: text.optional(),
  model_provider: text.optional(),
  model_reasoning_effort: text.optional(),
  approval_policy: ApprovalPolicyKey.optional(),
  sandbox_mode: SandboxMode.optional(),
  sandbox_workspace_write: z
    .strictObject({ writable_roots: z.array(absolute).optional(), network_access: z.boolean().optional() })
    .optional(),
};

export const ConfigFile = z.strictObject({
  ...Choices,
  openai_base_url: z.url({ protocol: /^https?$/ }).optional(),
  /** The profile in force when the command line names none. */
  profile: text.optional(),
  model_providers: z.record(text, ProviderTable).optional(),
  profiles: z.record(text, z.strictObject(Choices)).optional(),
});
export type ConfigFile = z.infer<typeof ConfigFile>;

/** Keys of Codex that have no meaning here. Given with `-c` they are passed over, so that its callers need no change. */
export const CODEX_ONLY_KEYS: ReadonlySet<string> = new Set([
  "analytics",
  "chatgpt_base_url",
  "check_for_update_on_startup",
  "cli_auth_credentials_store",
  "compact_prompt",
  "developer_instructions",
  "disable_response_storage",
  "features",
  "feedback",
  "file_opener",
  "forced_chatgpt_workspace_id",
  "forced_login_method",
  "hide_agent_reasoning",
  "history",
  "instructions",
  "mcp_servers",
  "model_auto_compact_token_limit",
  "model_context_window",
  "model_instructions_file",
  "model_max_output_tokens",
  "model_reasoning_summary",
  "model_supports_reasoning_summaries",
  "model_verbosity",
  "notice",
  "notify",
  "oss_provider",
  "otel",
  "personality",
  "preferred_auth_method",
  "project_doc_fallback_filenames",
  "project_doc_max_bytes",
  "projects",
  "review_model",
  "service_tier",
  "shell_environment_policy",
  "show_raw_agent_reasoning",
  "skills",
  "tool_output_token_limit",
  "tools",
  "tui",
  "web_search",
  "windows_wsl_setup_acknowledged",
]);
