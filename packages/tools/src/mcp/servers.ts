/**
 * The MCP servers of one thread, started in parallel, each within its own time limit. `settle` is called before every
 * request to the model: it starts what does not run, lists changed ones again, and reports the news. Closing ends every process.
 */
import { resolve } from "node:path";
import type { McpApproval, McpServerConfig, McpState, McpStdioServer, McpTokenSource, Network } from "@heddle/protocol";
import type { ProtectedPathViolation, Sandbox } from "../sandbox/sandbox.ts";
import { shown, type ToolDefinition } from "./definitions.ts";
import { mcpError } from "./failure.ts";
import { openHttpTransport } from "./http-transport.ts";
import { mcpTool } from "./mcp-tool.ts";
import { canonicalName, matchesName, offeredNames } from "./names.ts";
import { offerTools, type McpReport, type McpServers, type NamedTool } from "./named-tools.ts";
import { McpServer } from "./server.ts";
import { StdioTransport, type ServerTransport } from "./stdio-transport.ts";

/** Providers take some 128 tools in all, Heddle's own among them. */
const MAX_OFFERED_TOOLS = 100;
/** They are sent with every request. */
const MAX_OFFERED_BYTES = 128 * 1024;
const MAX_NAMED = 5;

export interface McpServersOptions {
  readonly servers: readonly McpServerConfig[];
  readonly workspace: string;
  /** The thread's own; not closed here. */
  readonly sandbox: Sandbox;
  /** The complete environment of commands, to which each server's own is added. */
  readonly environment: Readonly<Record<string, string>>;
  /** Where tokens come from. */
  readonly env: NodeJS.ProcessEnv;
  /** For servers whose configuration brings none. */
  readonly logins?: McpTokenSource | undefined;
  /** Names or prefixes (`…*`) of tools that run without approval. */
  readonly allowTools: readonly string[];
  /** A user can answer questions of a server. */
  readonly mayElicit?: boolean;
  readonly onState?: ((state: McpState) => void) | undefined;
  /** A sandbox like the thread's, with another network. */
  readonly openSandbox: (network: Network) => Promise<Sandbox>;
}

interface OwnedServers {
  readonly servers: readonly McpServer[];
  readonly sweep: () => Promise<readonly ProtectedPathViolation[]>;
  readonly close: () => Promise<readonly ProtectedPathViolation[]>;
}

/** The servers, none of them started, and the end of all of them. */
export function ownedServers(options: Omit<McpServersOptions, "allowTools">): OwnedServers {
  const own = new Map<McpServerConfig, Promise<Sandbox>>();
  const servers = options.servers.map(
    (config) =>
      new McpServer({
        config,
        workspace: options.workspace,
        openTransport: () => openTransport(config, options, own),
        mayElicit: options.mayElicit === true,
        onState: options.onState,
      }),
  );
  const inEach = async (
    look: (sandbox: Sandbox) => Promise<readonly ProtectedPathViolation[]>,
  ): Promise<readonly ProtectedPathViolation[]> => {
    const violations: ProtectedPathViolation[] = [];
    for (const opening of own.values()) {
      const sandbox = await opening.catch(() => undefined);
      if (sandbox !== undefined) violations.push(...(await look(sandbox)));
    }
    return violations;
  };
  return {
    servers,
    sweep: () => inEach((sandbox) => sandbox.sweep()),
    close: async () => {
      await Promise.all(servers.map((server) => server[Symbol.asyncDispose]()));
      const violations = await inEach((sandbox) => sandbox.close());
      own.clear();
      return violations;
    },
  };
}

export function openMcpServers(options: McpServersOptions): McpServers {
  const { servers, sweep, close } = ownedServers(options);
  let offer: Offer = { tools: [], leftOut: "" };

  const opened: McpServers = {
    async startAhead() {
      const required = servers.filter(({ config }) => config.required);
      const starting = servers.map((server) => server.startAhead());
      await Promise.all(starting.filter((_, index) => servers[index]?.config.required));
      return required.flatMap(({ state }) => (state?.status === "failed" ? [`${state.server}: ${state.error}`] : []));
    },
    get states() {
      return servers.flatMap(({ state }) => state ?? []);
    },
    async settle(signal, { isNewTurn }) {
      await Promise.all(
        servers.map(async (server) => {
          if (isNewTurn) await server.start(signal);
          await server.refresh(signal);
        }),
      );
      const before = offer.leftOut;
      offer = makeOffer(servers, options);
      const reports = servers.flatMap((server) => reportsOf(server, offer, options));
      return offer.leftOut === "" || offer.leftOut === before
        ? reports
        : [...reports, { kind: "leftOut", message: offer.leftOut }];
    },
    hasProcesses: options.servers.some((config) => !("url" in config)),
    sweep,
    close,
  };
  offerTools(opened, () => offer.tools);
  return opened;
}

async function openTransport(
  config: McpServerConfig,
  options: Omit<McpServersOptions, "allowTools">,
  own: Map<McpServerConfig, Promise<Sandbox>>,
): Promise<ServerTransport> {
  if (config.withheld !== undefined) {
    const names = config.withheld.map(shown).join(", ");
    throw mcpError(`${names} is not stored; the client that brought the server must send it again with thread/resume`);
  }
  if ("url" in config) return openHttpTransport(config, options);
  return new StdioTransport({
    sandbox: await sandboxFor(config, options, own),
    argv: [config.command, ...config.args],
    cwd: resolve(options.workspace, config.cwd ?? "."),
    env: { ...options.environment, ...config.env },
  });
}

/** The thread's own, unless the server's network differs; then one for this server alone, kept for its restarts. */
function sandboxFor(
  config: McpStdioServer,
  { sandbox, openSandbox }: Pick<McpServersOptions, "sandbox" | "openSandbox">,
  own: Map<McpServerConfig, Promise<Sandbox>>,
): Promise<Sandbox> {
  const wanted = networkOf(config, sandbox);
  if (wanted === sandbox.policy.network) return Promise.resolve(sandbox);
  const opening = own.get(config) ?? openSandbox(wanted);
  own.set(config, opening);
  // One that could not be opened is tried again.
  opening.catch(() => own.delete(config));
  return opening;
}

function networkOf(config: McpStdioServer, sandbox: Sandbox): Network {
  if (config.network === undefined || sandbox.level === "none") return sandbox.policy.network;
  return config.network ? "all" : "none";
}

interface Offer {
  readonly tools: readonly OfferedMcpTool[];
  /** Empty: nothing is missing. */
  readonly leftOut: string;
}

interface OfferedMcpTool extends NamedTool {
  readonly server: McpServer;
  readonly definition: ToolDefinition;
}

/** In the order of the configuration, so that what is cut when it is too much is the user's choice. */
function makeOffer(servers: readonly McpServer[], options: McpServersOptions): Offer {
  const wanted = servers.flatMap((server) => wantedTools(server).map((definition) => ({ server, definition })));
  const names = offeredNames(
    wanted.map(({ server, definition }) => ({ server: server.config.name, tool: definition.name })),
  );
  const tools: OfferedMcpTool[] = [];
  const left: string[] = servers.flatMap(({ config, leftOut }) => leftOut.map((why) => `${shown(config.name)} ${why}`));
  let bytes = 0;
  for (const [index, { server, definition }] of wanted.entries()) {
    const offeredAs = names[index] ?? "";
    const approval = approvalOf(server.config, definition.name, { offeredAs, allowTools: options.allowTools });
    if (approval === "deny") continue;
    const { description, parameters } = definition;
    bytes += Buffer.byteLength(JSON.stringify({ name: offeredAs, description, parameters }));
    if (bytes > MAX_OFFERED_BYTES || tools.length >= MAX_OFFERED_TOOLS) left.push(offeredAs);
    else tools.push({ offeredAs, server, definition, tool: mcpTool(server, definition, approval) });
  }
  return { tools, leftOut: left.length === 0 ? "" : leftOutText(left) };
}

function leftOutText(left: readonly string[]): string {
  const named = left.slice(0, MAX_NAMED).join("; ");
  const more = left.length > MAX_NAMED ? `; and ${left.length - MAX_NAMED} more` : "";
  return `${left.length} MCP tools are not offered to the model because there are too many, they are too large or not valid (name the ones you need in enabled_tools): ${named}${more}`;
}

function wantedTools({ config, tools, isGivenUp }: McpServer): readonly ToolDefinition[] {
  if (isGivenUp) return [];
  return tools.filter(({ name }) => isEnabled(config, name));
}

export function isEnabled({ enabledTools, disabledTools }: McpServerConfig, tool: string): boolean {
  return !disabledTools.includes(tool) && (enabledTools?.includes(tool) ?? true);
}

export function configuredApproval({ toolApproval, approval }: McpServerConfig, tool: string): McpApproval {
  return (Object.hasOwn(toolApproval, tool) ? toolApproval[tool] : undefined) ?? approval;
}

function approvalOf(
  config: McpServerConfig,
  tool: string,
  { offeredAs, allowTools }: { readonly offeredAs: string; readonly allowTools: readonly string[] },
): McpApproval {
  const approval = configuredApproval(config, tool);
  if (approval !== "prompt") return approval;
  const names = [offeredAs, canonicalName(config.name, tool)];
  return allowTools.some((pattern) => names.some((name) => matchesName(pattern, name))) ? "auto" : "prompt";
}

function reportsOf(server: McpServer, offer: Offer, options: McpServersOptions): McpReport[] {
  const { config } = server;
  return server.takeNews().map((news): McpReport => {
    if (news.kind === "failed") {
      return {
        kind: "failed",
        server: config.name,
        message: news.message,
        isRequired: config.required && server.state?.status !== "ready",
      };
    }
    return {
      ...news,
      server: config.name,
      transport: "url" in config ? "http" : "stdio",
      hasNetwork: "url" in config || networkOf(config, options.sandbox) === "all",
      tools: offer.tools
        .filter((tool) => tool.server === server)
        .map(({ definition, offeredAs }) => ({ tool: definition.name, offeredAs, definition: definition.hash })),
    };
  });
}
