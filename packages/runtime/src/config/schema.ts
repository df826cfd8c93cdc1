/**
 * The keys of config.toml, with the names and meanings of Codex where both know them. Every key is optional. A table that
 * Codex has too is a `z.object`: a key it does not name is Codex's, and passed over. A table of Heddle's alone is a
 * `z.strictObject`: a key it does not name is a mistake.
 */
import path from "node:path";
import { HookConfig, HostRule, Personality, ReasoningSummary, SandboxMode, Verbosity } from "@heddle/protocol";
import { z } from "zod";
import { DayLimitsTable } from "./day-limits-table.ts";
import { InboxTable } from "./inbox-table.ts";
import { RunnerTable } from "./runner-table.ts";
import { StoreTable } from "./store-table.ts";

const text = z.string().min(1);
const absolute = text.refine((folder) => path.isAbsolute(folder), "must be an absolute path");
const strings = z.record(z.string(), z.string());

const variable = text.regex(/^[A-Za-z_]\w*$/, "must be the name of an environment variable");
const address = z.url({ protocol: /^https?$/ });
const headerName = text.regex(/^[A-Za-z0-9-]+$/, "must be the name of a header");
const command = z.array(text).min(1).max(100);

/** How a provider authenticates, where a key in the usual header is not all; see accounts.md. */
const AuthTable = z.discriminatedUnion(
  "type",
  [
    /** The key goes into this header. */
    z.strictObject({
      type: z.literal("api-key"),
      header: headerName,
    }),
    /** A program that prints a token. */
    z.strictObject({
      type: z.literal("command"),
      command,
      /** In place of a bearer token: `x-api-key`, for a key. */
      header: headerName.optional(),
      timeout_ms: z.int().min(1).max(600_000).optional(),
      refresh_seconds: z.int().min(1).max(86_400).optional(),
      env_vars: z.array(variable).max(100).optional(),
    }),
    z.strictObject({
      type: z.literal("copilot"),
      github_url: address.optional(),
      github_api_url: address.optional(),
      client_id: text.optional(),
    }),
    z.strictObject({
      type: z.literal("vertex"),
      project: text.optional(),
      location: text.optional(),
      credentials_file: absolute.optional(),
      metadata: z.boolean().optional(),
      command: command.optional(),
      token_url: address.optional(),
    }),
    z.strictObject({
      type: z.literal("bedrock"),
      region: text.optional(),
      profile: text.optional(),
      credentials_file: absolute.optional(),
    }),
  ],
  { error: "must be one of api-key, command, copilot, vertex, bedrock" },
);
export type AuthTable = z.infer<typeof AuthTable>;

/** US dollars for a million tokens. */
const rate = z.number().min(0).max(1_000_000);

const PriceTable = z.strictObject({
  input: rate,
  output: rate,
  /** Of tokens read from the provider's cache; as input unless said. */
  cached_input: rate.optional(),
  /** Of tokens written to it; as input unless said. */
  cache_write: rate.optional(),
});

const ProviderTable = z.object({
  name: text.optional(),
  /** Needed unless the name is that of a built-in provider. */
  base_url: z.url({ protocol: /^https?$/ }).optional(),
  wire_api: z.enum(["responses", "chat", "anthropic", "gemini"]).optional(),
  /** The environment variable that holds the key; without one, no key is sent. */
  env_key: text.optional(),
  /** Without a variable of its own it is sent the key of OpenAI, where there is one. */
  requires_openai_auth: z.boolean().optional(),
  auth: AuthTable.optional(),
  /** Off: known, and refused whenever it is asked for. `openai-codex` is off unless this says otherwise. */
  enabled: z.boolean().optional(),
  /** Which of several accounts stored with `heddle login --profile`. */
  account: text.optional(),
  /** `openai-codex` only: use the login Codex keeps, as it is and without renewing it. */
  adopt_codex_login: z.boolean().optional(),
  http_headers: strings.optional(),
  /** Header name to the environment variable that holds its value. */
  env_http_headers: strings.optional(),
  query_params: strings.optional(),
  request_max_retries: z.int().min(0).max(100).optional(),
  stream_max_retries: z.int().min(0).max(100).optional(),
  stream_idle_timeout_ms: z.int().min(1).optional(),
  /** By model: what it costs here, where no list knows it or the list is wrong. */
  prices: z.record(text, PriceTable).optional(),
});
export type ProviderTable = z.infer<typeof ProviderTable>;

const ApprovalMode = z.enum(["auto", "approve", "prompt", "deny"]);

/** One MCP server: `command` for one that is started here, `url` for one that is reached over HTTP. */
const McpServerTable = z.object({
  command: text.optional(),
  args: z.array(z.string()).optional(),
  env: strings.optional(),
  /** Variables of Heddle's own environment that the server may see. */
  env_vars: z.array(text).optional(),
  cwd: text.optional(),
  url: z.url({ protocol: /^https?$/ }).optional(),
  bearer_token_env_var: text.optional(),
  /** Of a login at this server: heddle mcp login. */
  scopes: z.array(text).optional(),
  oauth_resource: z.url({ protocol: /^https?$/ }).optional(),
  oauth: z.object({ client_id: text.optional(), callback_port: z.int().min(1).max(65_535).optional() }).optional(),
  http_headers: strings.optional(),
  env_http_headers: strings.optional(),
  startup_timeout_sec: z.number().positive().optional(),
  startup_timeout_ms: z.number().positive().optional(),
  tool_timeout_sec: z.number().positive().optional(),
  enabled: z.boolean().optional(),
  /** A run without this server makes no sense: it fails when the server cannot start. */
  required: z.boolean().optional(),
  enabled_tools: z.array(text).optional(),
  disabled_tools: z.array(text).optional(),
  /** Who decides about a call: the policy of the turn, a user, or no one. `approve` is Codex's name for the first. */
  default_tools_approval_mode: ApprovalMode.optional(),
  tools: z.record(text, z.object({ approval_mode: ApprovalMode.optional() })).optional(),
  /** This server reaches the network, whatever the sandbox lets others do. */
  network_access: z.boolean().optional(),
});
export type McpServerTable = z.infer<typeof McpServerTable>;

const HookTable = z.strictObject({
  event: HookConfig.shape.event,
  matcher: HookConfig.shape.matcher,
  command: HookConfig.shape.command,
  timeout_ms: HookConfig.shape.timeoutMs,
  on_failure: HookConfig.shape.onFailure,
});
export type HookTable = z.infer<typeof HookTable>;

const ProjectTable = z.object({ trust_level: z.enum(["trusted", "untrusted"]).optional() });

/** Policies that need a user to ask; `exec` has none, so there they all mean `never`. */
const ApprovalPolicyKey = z.enum(["never", "on-request", "untrusted", "on-failure"]);

/** Every request carries them. */
const MAX_GUIDE_BYTES = 1024 * 1024;
const guideName = text.refine(
  (name) => !path.isAbsolute(name) && !name.split("/").includes(".."),
  "must be the name of a file in the folder",
);

/** What a timer can count. */
const MAX_TIMER_SEC = 2_000_000;

const domain = z.string().min(1).max(253);

const SearchTable = z.object({
  context_size: z.enum(["low", "medium", "high"]).optional(),
  allowed_domains: z.array(domain).max(100).optional(),
  location: z
    .object({
      country: z.string().max(100).optional(),
      region: z.string().max(100).optional(),
      city: z.string().max(100).optional(),
      timezone: z.string().max(100).optional(),
    })
    .optional(),
});
export type SearchTable = z.infer<typeof SearchTable>;

const Choices = {
  /** Who carries out turns: `embedded`, Heddle's own loop, or an agent program. */
  runner: text.max(64).optional(),
  model: text.optional(),
  model_provider: text.optional(),
  model_reasoning_effort: text.optional(),
  /** The model's window in tokens, where the list of models does not know it or is to be overruled. */
  model_context_window: z.int().positive().optional(),
  /** From this size on the context is compacted. */
  model_auto_compact_token_limit: z.int().positive().optional(),
  /** In place of Heddle's own instructions: as text, or from a file, relative to the one that names it. */
  instructions: z.string().optional(),
  model_instructions_file: text.optional(),
  /** Its older name. */
  experimental_instructions_file: text.optional(),
  /** Beside them. */
  developer_instructions: z.string().optional(),
  /** How long answers are. */
  model_verbosity: Verbosity.optional(),
  model_reasoning_summary: ReasoningSummary.optional(),
  /** Of the provider: `flex`, `priority` or its other name `fast`; `default` for none. */
  service_tier: text.optional(),
  /** Without effect, as in Codex. */
  personality: Personality.optional(),
  approval_policy: ApprovalPolicyKey.optional(),
  sandbox_mode: SandboxMode.optional(),
  /** By its name; counts more than a sandbox mode beside it. */
  envelope: text.max(64).optional(),
  /** The widest envelope a thread may ever have, even with an approval. */
  ceiling: text.max(64).optional(),
  sandbox_workspace_write: z
    .object({
      writable_roots: z.array(absolute).optional(),
      network_access: z.boolean().optional(),
      /** Heddle's own: the only hosts that commands reach. */
      network_hosts: z.array(HostRule).min(1).max(200).optional(),
    })
    .optional(),
  /** The model may search the web, where its provider can. */
  web_search: z.enum(["disabled", "cached", "indexed", "live"]).optional(),
  /** The older form of `web_search`, and how the provider searches. */
  tools: z.object({ web_search: z.union([z.boolean(), SearchTable]).optional() }).optional(),
  /** Those that once turned searches on. */
  features: z
    .object({
      web_search: z.boolean().optional(),
      web_search_request: z.boolean().optional(),
      web_search_cached: z.boolean().optional(),
      /** Clients may change effort, summary and tier of a running turn. */
      step_model_switching: z.boolean().optional(),
      /** Threads may start child threads. */
      multi_agent: z.boolean().optional(),
    })
    .optional(),
};

/** Work orders, for every door that takes them or carries them out. */
const TasksTable = z.strictObject({
  /** How many are carried out at a time. */
  concurrency: z.int().min(1).max(64).optional(),
  /** Only folders inside these may be worked in; absent: any folder. */
  workspace_roots: z.array(absolute).optional(),
  /** No schedule begins a task more often. */
  min_interval: z
    .string()
    .regex(/^[1-9]\d*(?:s|m|h|d)$/, 'must be a duration with its unit, such as "1m"')
    .optional(),
});
export type TasksTable = z.infer<typeof TasksTable>;

/** A collector of OpenTelemetry. Without one, what the environment says of one counts. */
const TelemetryTable = z.strictObject({
  /** Without `/v1/traces`. */
  endpoint: address.optional(),
  service_name: text.max(200).optional(),
  /** Header name to the environment variable that holds its value. */
  env_http_headers: strings.optional(),
});

/** Names of notifications, or `*`: in a list, or in one text. */
const names = z.union([z.string(), z.array(z.string())]);

/** One sink of notifications. Secrets come from the environment, never from this file. */
const NotifyTable = z.strictObject({
  type: z.enum(["webhook", "slack", "discord", "ntfy", "telegram", "file", "desktop"]).optional(),
  enabled: z.boolean().optional(),
  events: names.optional(),
  url: z.url({ protocol: /^https?$/ }).optional(),
  /** For an address that is itself the key, as at Slack. */
  url_env: variable.optional(),
  /** Bodies are signed with it. */
  secret_env: variable.optional(),
  http_headers: strings.optional(),
  env_http_headers: strings.optional(),
  /** Of `telegram`. */
  token_env: variable.optional(),
  chat_id: text.optional(),
  timeout_ms: z.int().min(1).max(60_000).optional(),
  max_tries: z.int().min(1).max(1000).optional(),
  /** Receivers in private networks are meant. */
  allow_private: z.boolean().optional(),
  /** Of `file`. */
  folder: absolute.optional(),
  prefix: text.regex(/^[\w.-]+$/, "must be letters, digits, dots and hyphens").optional(),
  keep: z.int().min(1).max(1_000_000).optional(),
});
export type NotifyTable = z.infer<typeof NotifyTable>;

/** Long enough for every name there is; a client may write it. */
const pattern = text.max(256);

const EnvironmentTable = z.object({
  inherit: z.enum(["all", "core", "none"]).optional(),
  ignore_default_excludes: z.boolean().optional(),
  exclude: z.array(pattern).max(1000).optional(),
  include_only: z.array(pattern).max(1000).optional(),
  /** The newer form of the two lists. */
  filters: z.record(pattern, z.enum(["include", "exclude"])).optional(),
  set: z.record(variable, z.string().max(32_768)).optional(),
});
export type EnvironmentTable = z.infer<typeof EnvironmentTable>;

export const ConfigFile = z.object({
  ...Choices,
  store: StoreTable.optional(),
  /** What commands see of the environment. */
  shell_environment_policy: EnvironmentTable.optional(),
  /** So long a question waits for an answer before it counts as declined; for ever unless said. */
  approval_timeout_sec: z.number().positive().max(MAX_TIMER_SEC).optional(),
  /** The older form of `ceiling`. */
  sandbox_ceiling: SandboxMode.optional(),
  /** What the commands of a thread may use together, and how many sandboxes of idle threads stay open. */
  sandbox_limits: z
    .strictObject({
      /** Processes and their threads. */
      processes: z.int().min(32).max(1_000_000).optional(),
      memory_mb: z.int().min(128).max(16_777_216).optional(),
      cpu_sec: z.int().min(1).max(MAX_TIMER_SEC).optional(),
      idle_sandboxes: z.int().min(0).max(1000).optional(),
      idle_sec: z.number().positive().max(MAX_TIMER_SEC).optional(),
    })
    .optional(),
  day_limits: DayLimitsTable.optional(),
  /** Child threads, with `features.multi_agent`. */
  agents: z
    .object({
      /** How many of one thread are open at a time. */
      max_threads: z.int().min(1).max(64).optional(),
      /** 1: a child starts none. */
      max_depth: z.int().min(1).max(4).optional(),
    })
    .optional(),
  /** Messages between agents. */
  messages: z
    .strictObject({
      /** Agents get list_agents, tell_agent, ask_agent and answer_agent. */
      tools: z.boolean().optional(),
      /** A message may start a turn of an idle thread; threads may say otherwise. */
      wake: z.boolean().optional(),
      /** What such a turn may do at most; `observe` when absent. */
      envelope: text.max(64).optional(),
    })
    .optional(),
  /** Servers: the agent may ask the user outside planning too. */
  ask_user: z.boolean().optional(),
  /** Servers: how long a client may take to carry out a tool of its own. */
  client_tool_timeout_sec: z.number().positive().max(86_400).optional(),
  /** Servers: how long an agent outside may call nothing before its session ends. */
  session_idle_sec: z.number().min(1).max(86_400).optional(),
  openai_base_url: z.url({ protocol: /^https?$/ }).optional(),
  /** Where `heddle models --refresh` fetches the catalog; a mirror of models.dev's api.json. */
  models_url: z.url({ protocol: /^https?$/ }).optional(),
  /** The profile in force when the command line names none. */
  profile: text.optional(),
  /** Who serves the model of `--oss`. */
  oss_provider: z.enum(["ollama", "lmstudio"]).optional(),
  model_providers: z.record(text, ProviderTable).optional(),
  mcp_servers: z.record(text, McpServerTable).optional(),
  hooks: z.array(HookTable).optional(),
  /** Names of guides where a folder has no AGENTS.md, the first one found counts. */
  project_doc_fallback_filenames: z.array(guideName).max(16).optional(),
  /** For the guides of a repository together; 0: none is read. */
  project_doc_max_bytes: z.int().min(0).max(MAX_GUIDE_BYTES).optional(),
  /** Names of skills, or absolute paths of their SKILL.md, that no turn is offered. */
  disabled_skills: z.array(text).optional(),
  /** Agents get evidence_search and evidence_note. */
  evidence_tools: z.boolean().optional(),
  /** Whole outputs of commands that did not fit into the record. */
  outputs: z
    .strictObject({
      max_mb: z.int().min(1).max(1_000_000_000).optional(),
      /** Absent: of any age. */
      max_days: z.number().positive().max(100_000).optional(),
    })
    .optional(),
  /** Requests beside the turns of a server (titles of chats): `off`, a model, or `provider:model`; the chat's own unless said. */
  background: z.strictObject({ model: text.optional() }).optional(),
  /** Agent programs, by name: `[runners.claude]`. */
  runners: z
    .record(text.max(64).regex(/^[\w.-]+$/, "must be letters, digits, dots and hyphens"), RunnerTable)
    .optional(),
  /** Where users reach the dashboard of `heddle serve` from elsewhere; notifications link there. */
  public_url: z
    .url({ protocol: /^https?$/ })
    .regex(/^[^?#@]+$/, "must have no user, query or fragment")
    .optional(),
  /** Where traces of turns are sent. */
  telemetry: TelemetryTable.optional(),
  tasks: TasksTable.optional(),
  inbox: InboxTable.optional(),
  /** By name: `[notify.team]`. */
  notify: z.record(text.regex(/^[\w.-]+$/, "must be letters, digits, dots and hyphens"), NotifyTable).optional(),
  /** By absolute folder. In a trusted one the sandbox lets the agent write unless something says otherwise. */
  projects: z.record(text, ProjectTable).optional(),
  profiles: z.record(text, z.object(Choices)).optional(),
});
export type ConfigFile = z.infer<typeof ConfigFile>;
