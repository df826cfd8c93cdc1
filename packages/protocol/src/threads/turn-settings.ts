/** The settings of a turn; stored with its admission. */
import { z } from "zod";
import { ApprovalPolicy, HostRule, SandboxMode } from "../envelopes/envelope.ts";

/** Reaching a limit ends the turn with `limit.reached`; what was said so far is kept. */
export const TurnLimits = z.object({
  /** Requests to a model; retries of the same one count once. */
  maxRequests: z.number().int().positive().optional(),
  /** Input and output together. */
  maxTokens: z.number().int().positive().optional(),
  maxCostUsd: z.number().positive().optional(),
});
export type TurnLimits = z.infer<typeof TurnLimits>;

export const Verbosity = z.enum(["low", "medium", "high"]);
export type Verbosity = z.infer<typeof Verbosity>;
export const ReasoningSummary = z.enum(["auto", "concise", "detailed", "none"]);
export type ReasoningSummary = z.infer<typeof ReasoningSummary>;
export const Personality = z.enum(["none", "friendly", "pragmatic"]);
export type Personality = z.infer<typeof Personality>;

/** Context that a client adds to an input, by a name of its own. */
export const ClientContext = z.object({
  name: z.string(),
  /** `application`: the client vouches for it. `untrusted`: text of somebody else. */
  kind: z.enum(["application", "untrusted"]),
  text: z.string(),
});
export type ClientContext = z.infer<typeof ClientContext>;

/** Instructions of owner and client, and the form of the answers; stored with every turn. */
const instructions = {
  /** In place of Heddle's own; empty: none. */
  baseInstructions: z.string().optional(),
  /** Beside the base instructions. */
  developerInstructions: z.string().optional(),
  /** In place of those of the mode. */
  modeInstructions: z.string().optional(),
  verbosity: Verbosity.optional(),
  summary: ReasoningSummary.optional(),
  serviceTier: z.string().optional(),
  /** Reported to clients, as Codex does; it changes nothing. */
  personality: Personality.optional(),
  /** Names of guides besides AGENTS.md, in this order. */
  guideNames: z.array(z.string()).optional(),
  /** For the guides of a repository together; 0: none is read. */
  guideBytes: z.number().int().nonnegative().optional(),
};

/** `live`: of the web as it is. `indexed`: of pages that the provider knows. `cached`: of what it has stored of them. */
export const SearchKind = z.enum(["cached", "indexed", "live"]);
export type SearchKind = z.infer<typeof SearchKind>;

/** How the provider searches; what it is not told it decides. */
export const SearchOptions = z.object({
  contextSize: z.enum(["low", "medium", "high"]).optional(),
  /** No other sites. */
  allowedDomains: z.array(z.string()).optional(),
  /** Where the user is. */
  location: z
    .object({
      country: z.string().optional(),
      region: z.string().optional(),
      city: z.string().optional(),
      timezone: z.string().optional(),
    })
    .optional(),
});
export type SearchOptions = z.infer<typeof SearchOptions>;

/** An MCP server that a client brought, as in `mcp.ts`, without the values of its variables and headers. */
export const BroughtServer = z.looseObject({ name: z.string().min(1) });
export type BroughtServer = z.infer<typeof BroughtServer>;

/** What the commands of a turn see of the environment; keys of providers are never among it. */
export const EnvironmentPolicy = z.object({
  /** What they begin with; absent: all. */
  inherit: z.enum(["all", "core", "none"]).optional(),
  /** Names that look like those of secrets are left out unless this is true. */
  ignoresDefaultExcludes: z.boolean().optional(),
  /** Patterns of names, with `*` and `?`, in any case of letters. */
  exclude: z.array(z.string()).optional(),
  set: z.record(z.string(), z.string()).optional(),
  /** Nothing else is left; absent or empty: everything is. */
  includeOnly: z.array(z.string()).optional(),
});
export type EnvironmentPolicy = z.infer<typeof EnvironmentPolicy>;

export const TurnSettings = z.object({
  ...instructions,
  /** Who carries out the turn; absent: Heddle's own loop. An agent program is named as the provider, too. */
  runner: z.string().optional(),
  provider: z.string(),
  /** Of an agent program: `default` is the one that it chooses itself. */
  model: z.string(),
  effort: z.string().optional(),
  sandboxMode: SandboxMode,
  networkAccess: z.boolean(),
  /** The only hosts that commands reach; absent: all or none, by `networkAccess`. */
  networkHosts: z.array(HostRule).min(1).max(200).optional(),
  writableRoots: z.array(z.string()),
  approvalPolicy: ApprovalPolicy,
  outputSchema: z.unknown().optional(),
  /** The schema is only asked for: whoever reads the answer checks it, as callers of Codex do. */
  isAnswerUnchecked: z.literal(true).optional(),
  /** The model's window, where the catalog does not know it or is to be overridden. */
  contextTokens: z.number().int().positive().optional(),
  /** From this size on the context is compacted; absent: at four fifths of the window. */
  compactAtTokens: z.number().int().positive().optional(),
  limits: TurnLimits.optional(),
  /** Only these tools exist, by their own names; absent: all that the sandbox mode gives. */
  allowedTools: z.array(z.string()).optional(),
  /** `plan`: the agent investigates and proposes, and may ask the user. */
  mode: z.literal("plan").optional(),
  /** The agent may ask the user outside planning too. */
  asksUser: z.literal(true).optional(),
  /** The turn works on a task: the agent can report on it. */
  isForTask: z.literal(true).optional(),
  /** A client that follows the turn runs the tools that were declared in the thread. */
  hasClientTools: z.literal(true).optional(),
  /** The model may search the web where the envelope of the turn has the network; absent: it may not. */
  webSearch: SearchKind.optional(),
  searchOptions: SearchOptions.optional(),
  /** The owner's configuration or command line asks for it: it needs no network of the sandbox, which it does not use. */
  isSearchByOwner: z.literal(true).optional(),
  /** Besides those of the configuration. */
  mcpServers: z.array(BroughtServer).optional(),
  environment: EnvironmentPolicy.optional(),
  /** Ids of installed plugins whose skills and MCP servers the thread does without. */
  disabledPlugins: z.array(z.string()).optional(),
  /** The envelope by its name; absent: the one of the sandbox mode. */
  envelope: z.string().optional(),
  /** The widest envelope, or sandbox mode, that this thread may ever have; absent: no limit. */
  ceiling: z.string().optional(),
});
export type TurnSettings = z.infer<typeof TurnSettings>;
