/**
 * `heddle mcp`: the MCP servers of the configuration, logins at those that are reached over HTTP, and Heddle as such a server
 * itself. It shows no secret.
 */
import { openMcpLogins } from "@heddle/agent";
import type { McpAccounts } from "@heddle/models/accounts";
import { EXIT, exitCodeOf, visibleText, type McpAuthStatus, type McpHttpServer } from "@heddle/protocol";
import { heddleHome, type ConfigFile, type McpServerTable } from "@heddle/runtime/config";
import { mcpServersOf } from "@heddle/runtime/settings";
import { readConfigOf } from "../config-options.ts";
import { CONFIG_OPTIONS } from "./exec-options.ts";
import { foreignOption, usage, type ParsedArgs } from "../args.ts";
import type { Command, CommandContext } from "../command.ts";
import { revokedText, takePasted } from "./login.ts";
import { SERVE_OPTIONS } from "./mcp-options.ts";
import { toLine } from "../print/jsonl.ts";
import { openScreen, sayLine } from "../print/screen.ts";
import { openOutput } from "../print/output.ts";

export const mcpCommand: Command = {
  usage:
    "mcp list [--json]\nmcp login NAME [--scopes SCOPE,SCOPE] [--json]\nmcp logout NAME [--json]\n" +
    "mcp serve [--envelope NAME] [--ask] [--tasks] [--finish]",
  about:
    "Shows the MCP servers of config.toml and how Heddle authenticates, logs in with a browser to one that is reached over HTTP\n" +
    "(OAuth), and logs out again. Logins are kept with the other credentials; a token in the configuration is used instead.\n" +
    "serve is the other direction: Heddle as an MCP server on standard input and output, for a client such as Claude Code,\n" +
    "with tools for threads, tasks and evidence, or with those of one envelope.",
  subcommands: ["list", "login", "logout", "serve"],
  options: [
    { name: "json", help: "JSON: list prints one array, login the address and then the end, logout what was done" },
    { name: "scopes", value: "SCOPE,SCOPE", of: "login", help: "What to ask for, instead of what the server names" },
    ...SERVE_OPTIONS,
    ...CONFIG_OPTIONS,
  ],
  examples: [
    "heddle mcp list",
    "heddle mcp login linear",
    "heddle mcp login linear --scopes read,write",
    "heddle mcp logout linear",
    "heddle mcp serve",
    "heddle mcp serve --envelope explore",
    "claude mcp add heddle -- heddle mcp serve",
  ],
  run,
};

/** One server that does not answer delays the list by no more than this. */
const STATUS_MS = 10_000;

async function run(args: ParsedArgs, context: CommandContext): Promise<number> {
  const { env } = context;
  const [word, name, ...more] = args.positionals;
  const foreign = foreignOption(mcpCommand.options, args, word);
  if (foreign !== undefined) throw usage(`--${foreign.name} is an option of mcp ${foreign.owners.join(" and ")}`);
  if (word === "serve" && name === undefined) return (await import("./mcp-serve.ts")).serve(args, context);
  const isNamed = name !== undefined && more.length === 0;
  if (!(word === "list" && name === undefined) && !((word === "login" || word === "logout") && isNamed)) {
    throw usage("write heddle mcp list, heddle mcp login NAME, heddle mcp logout NAME, or heddle mcp serve");
  }
  const { config } = await readConfigOf(args, env);
  await using logins = await openMcpLogins({ home: heddleHome(env), env });
  if (name === undefined) return list(config, logins, { args, env });
  const server = await namedServer(config, name, env);
  return word === "login" ? logIn(server, logins, args) : logOut(server, logins, args);
}

async function namedServer(config: ConfigFile, name: string, env: NodeJS.ProcessEnv): Promise<McpHttpServer> {
  const server = (await mcpServersOf(config, env)).find((known) => known.name === name);
  if (server === undefined) throw usage(`No MCP server named '${name}' found; see heddle mcp list`);
  if ("url" in server) return server;
  throw usage("OAuth login is only supported for streamable HTTP servers.");
}

async function list(
  config: ConfigFile,
  logins: McpAccounts,
  { args, env }: { readonly args: ParsedArgs; readonly env: NodeJS.ProcessEnv },
): Promise<number> {
  const signal = AbortSignal.timeout(STATUS_MS);
  const servers = await mcpServersOf(config, env);
  const statuses = await Promise.all(servers.map((server) => logins.status(server, signal)));
  const statusOf = (name: string): McpAuthStatus =>
    statuses[servers.findIndex((server) => server.name === name)] ?? "unknown";
  const tables = Object.entries(config.mcp_servers ?? {});
  const out = openScreen(process.stdout, { isRaw: args.has("json") });
  if (args.has("json")) {
    await out.write(toLine(tables.map(([name, table]) => described(name, table, statusOf(name)))));
    return EXIT.ok;
  }
  if (tables.length === 0) process.stderr.write("heddle: there are no MCP servers in the configuration\n");
  for (const [name, table] of tables) {
    const how = table.enabled === false ? "disabled" : statusText(name, table, statusOf(name));
    await out.write(`${visibleText(name).padEnd(20)} ${visibleText(targetOf(table)).padEnd(40)} ${how}\n`);
  }
  return EXIT.ok;
}

function statusText(name: string, { bearer_token_env_var: variable }: McpServerTable, status: McpAuthStatus): string {
  if (variable !== undefined && status === "notLoggedIn")
    return visibleText(`no token: the environment variable ${variable} is not set`);
  return TEXTS[status].replace("NAME", name);
}

const TEXTS: Readonly<Record<McpAuthStatus, string>> = {
  unknown: "does not respond",
  unsupported: "no login",
  notLoggedIn: "not logged in; heddle mcp login NAME",
  bearerToken: "a token in the configuration",
  oAuth: "logged in",
};

/** An address may carry a key in its query. */
function targetOf({ url, command }: McpServerTable): string {
  return url === undefined ? (command ?? "") : shownUrl(url);
}

function shownUrl(text: string): string {
  const url = new URL(text);
  return `${url.origin}${url.pathname}`;
}

/** As `codex mcp list --json` has it; values that may be secrets are masked. */
function described(name: string, table: McpServerTable, status: McpAuthStatus): Readonly<Record<string, unknown>> {
  const { url, command, args, env, env_vars: variables, cwd } = table;
  const transport =
    url === undefined
      ? {
          type: "stdio",
          command: command ?? "",
          args: args ?? [],
          env: masked(env),
          env_vars: variables ?? [],
          cwd: cwd ?? null,
        }
      : {
          type: "streamable_http",
          url: shownUrl(url),
          bearer_token_env_var: table.bearer_token_env_var ?? null,
          http_headers: masked(table.http_headers),
          env_http_headers: table.env_http_headers ?? null,
        };
  return {
    name,
    enabled: table.enabled !== false,
    disabled_reason: null,
    transport,
    startup_timeout_sec: table.startup_timeout_sec ?? null,
    tool_timeout_sec: table.tool_timeout_sec ?? null,
    auth_status: status.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
  };
}

function masked(values: Readonly<Record<string, string>> | undefined): Readonly<Record<string, string>> | null {
  return values === undefined ? null : Object.fromEntries(Object.keys(values).map((key) => [key, "*****"]));
}

async function logIn(server: McpHttpServer, logins: McpAccounts, args: ParsedArgs): Promise<number> {
  const scopes = args
    .value("scopes")
    ?.split(",")
    .filter((scope) => scope !== "");
  const started = await logins.start(server, { scopes });
  const cancel = (): void => void logins.cancel(started.loginId);
  process.once("SIGINT", cancel).once("SIGTERM", cancel);
  const { authorizationUrl, loginId } = started;
  const out = openScreen(process.stdout, { isRaw: args.has("json") });
  if (args.has("json")) await out.write(toLine({ name: server.name, authorization_url: authorizationUrl }));
  else process.stderr.write(`\nOpen this address in a browser:\n\n${authorizationUrl}\n\n`);
  if (started.isManual) sayLine("the port is taken; if the browser cannot open the page, paste its address here");
  using _pasting = takePasted((line) => logins.paste(loginId, line));
  const { status, failure } = await logins.ended(loginId);
  const isDone = status === "completed";
  const error = failure?.message ?? `the login has ${status}`;
  if (args.has("json")) {
    await out.write(toLine({ name: server.name, success: isDone, ...(isDone ? {} : { error }) }));
  }
  sayLine(isDone ? `logged in at the MCP server ${server.name}` : error);
  return isDone ? EXIT.ok : exitCodeOf(failure?.code ?? "login.failed");
}

async function logOut(server: McpHttpServer, logins: McpAccounts, args: ParsedArgs): Promise<number> {
  const { wasLoggedIn, isRevoked } = await logins.logout(server);
  if (args.has("json")) {
    await openOutput(process.stdout).write(
      toLine({ name: server.name, was_logged_in: wasLoggedIn, is_revoked: isRevoked }),
    );
  }
  const of = `the MCP server ${server.name}`;
  sayLine(wasLoggedIn ? `logged out of ${of}${revokedText(isRevoked)}` : `not logged in at ${of}`);
  return EXIT.ok;
}
