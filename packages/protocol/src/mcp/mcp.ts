/**
 * A configured MCP server, as every door passes it to the agent. Secrets are named by the environment variable that holds
 * them, or are in `headers` and `env`, and are never stored.
 */
import { z } from "zod";
import { MCP_STARTUP_TIMEOUT_MS, MCP_TOOL_TIMEOUT_MS } from "./mcp-limits.ts";

/**
 * `auto`: like Heddle's own tools, by the approval policy of the turn. `prompt`: every call that the server does not call
 * read-only needs an approval; where no client can be asked, it is declined. `deny`: the tool does not exist.
 */
export const McpApproval = z.enum(["auto", "prompt", "deny"]);
export type McpApproval = z.infer<typeof McpApproval>;

/** The longest wait a configuration can ask for: an hour. */
const MAX_TIMEOUT_MS = 60 * 60 * 1000;
const timeoutMs = z.int().min(1).max(MAX_TIMEOUT_MS);
const strings = z.record(z.string(), z.string());

const common = {
  /** Unique among the servers of a thread. */
  name: z.string().min(1),
  startupTimeoutMs: timeoutMs.default(MCP_STARTUP_TIMEOUT_MS),
  /** Without progress; a call that reports progress may take ten times as long. */
  toolTimeoutMs: timeoutMs.default(MCP_TOOL_TIMEOUT_MS),
  /** Names as the server knows them; absent: all. */
  enabledTools: z.array(z.string()).optional(),
  disabledTools: z.array(z.string()).default([]),
  /** Of one that a client brought: names of variables or headers whose values are not known here. */
  withheld: z.array(z.string()).optional(),
  /** The turn fails when this server cannot start. */
  required: z.boolean().default(false),
  approval: McpApproval.default("auto"),
  /** By the tool's name as the server knows it; wins over `approval`. */
  toolApproval: z.record(z.string(), McpApproval).default({}),
};

/** A program that Heddle starts inside the thread's sandbox and talks to over its standard streams. */
export const McpStdioServer = z.strictObject({
  ...common,
  command: z.string().min(1),
  args: z.array(z.string()).default([]),
  /** Besides the allow-listed variables; exactly these values. */
  env: strings.default({}),
  /** From the workspace when relative; the workspace itself when absent. */
  cwd: z.string().optional(),
  /** Network access of this server alone. Absent: as the thread. */
  network: z.boolean().optional(),
});
export type McpStdioServer = z.infer<typeof McpStdioServer>;

/** A server that is already running, reached over streamable HTTP. */
export const McpHttpServer = z.strictObject({
  ...common,
  url: z.url({ protocol: /^https?$/ }),
  headers: strings.default({}),
  /** The environment variable that holds the bearer token. */
  bearerTokenEnv: z.string().min(1).optional(),
  /** Scopes that a login requests; absent: those that the server names. */
  scopes: z.array(z.string().regex(/^[\u0021\u0023-\u005b\u005d-\u007e]+$/)).optional(),
  /** The resource of tokens, where the server does not name it. */
  oauthResource: z.url({ protocol: /^https?$/ }).optional(),
  /** Heddle's client id at the issuer, where it does not register itself. */
  oauthClientId: z.string().min(1).optional(),
  /** The port that a browser returns to; absent: a free one. */
  oauthCallbackPort: z.int().min(1).max(65_535).optional(),
});
export type McpHttpServer = z.infer<typeof McpHttpServer>;

export const McpServerConfig = z.union([McpStdioServer, McpHttpServer]);
export type McpServerConfig = z.infer<typeof McpServerConfig>;
/** Everything with a default may be left out. */
export type McpServerInput = z.input<typeof McpServerConfig>;

/** Where the start of a server stands; live, never stored. */
export type McpState =
  | { readonly server: string; readonly status: "starting" | "ready" | "cancelled" }
  | { readonly server: string; readonly status: "failed"; readonly error: string };
