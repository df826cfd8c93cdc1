/** The official MCP client, of either era, with `heddle mcp serve` or `heddle serve` as its server. */
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import type { EventBody } from "@heddle/protocol";
import { LAUNCHER, run, type World } from "./heddle-process.ts";
import { MOCK_KEY } from "./mock-model.ts";

export const ERAS = ["2025-11-25", "2026-07-28"] as const;
export type Era = (typeof ERAS)[number];

export interface McpClient extends AsyncDisposable {
  readonly client: Client;
  readonly pid: number;
  readonly stderr: () => string;
  /** The object of a tool's answer; fails where that is an error. */
  call(name: string, args?: object, options?: CallOptions): Promise<Readonly<Record<string, unknown>>>;
  /** The text of a tool's answer. */
  text(name: string, args?: object, options?: CallOptions): Promise<string>;
  /** `code` of the error that a tool answers with, and what it says. */
  refused(name: string, args?: object): Promise<{ readonly code: string; readonly message: string }>;
  names(): Promise<string[]>;
}

interface CallOptions {
  readonly signal?: AbortSignal;
  readonly onprogress?: (progress: { readonly message?: string | undefined }) => void;
}

export interface McpOptions {
  readonly world: World;
  readonly args?: readonly string[];
  readonly era?: Era;
}

/** The library asks a process of its own which era a server speaks, except for transports that it does not know. */
class OneProcess extends StdioClientTransport {}

export async function openMcpStdio({ world, args = [], era = "2025-11-25" }: McpOptions): Promise<McpClient> {
  const transport = new OneProcess({
    command: process.execPath,
    args: [LAUNCHER, "mcp", "serve", ...args],
    cwd: world.workspace,
    env: { ...world.env, ...MOCK_KEY },
    stderr: "pipe",
  });
  let said = "";
  transport.stderr?.on("data", (piece: Buffer) => {
    said += piece.toString();
  });
  const client = clientOf(era);
  await client.connect(transport);
  return { ...callsOf(client), pid: transport.pid ?? 0, stderr: () => said };
}

export async function openMcpHttp(
  { url, token }: { readonly url: string; readonly token: string },
  { path = "/mcp", era = "2025-11-25" }: { readonly path?: string; readonly era?: Era } = {},
): Promise<McpClient> {
  const headers = { authorization: `Bearer ${token}` };
  const transport = new StreamableHTTPClientTransport(new URL(path, url), { requestInit: { headers } });
  const client = clientOf(era);
  await client.connect(transport);
  return {
    ...callsOf(client),
    pid: 0,
    stderr: () => "",
    async [Symbol.asyncDispose]() {
      await transport.terminateSession();
      await client.close();
    },
  };
}

function clientOf(era: Era): Client {
  const mode = era === "2025-11-25" ? ("legacy" as const) : { pin: era };
  return new Client({ name: "probe", version: "1" }, { versionNegotiation: { mode } });
}

function callsOf(client: Client): Omit<McpClient, "pid" | "stderr"> {
  const ask = async (name: string, args: object = {}, options: CallOptions = {}) => {
    const { content, structuredContent, isError } = await client.callTool({ name, arguments: { ...args } }, options);
    const text = content.map((part) => (part.type === "text" ? part.text : "")).join("\n");
    return { text, structured: structuredContent, isError: isError === true };
  };
  return {
    client,
    async call(name, args, options) {
      const { text, structured, isError } = await ask(name, args, options);
      if (isError) throw new Error(`${name}: ${text}`);
      return { ...Object(structured) };
    },
    async text(name, args, options) {
      const { text, isError } = await ask(name, args, options);
      return isError ? `ERROR ${text}` : text;
    },
    async refused(name, args) {
      const { text, isError } = await ask(name, args);
      if (!isError) throw new Error(`${name} was not refused: ${text}`);
      return JSON.parse(text.split("\n")[0] ?? "").error;
    },
    names: async () => (await client.listTools()).tools.map(({ name }) => name),
    [Symbol.asyncDispose]: () => client.close(),
  };
}

export interface RecordedEvent {
  readonly author: string;
  readonly body: EventBody;
}

/** As they are exported, oldest first. */
export async function eventsOf(world: World, threadId: string): Promise<readonly RecordedEvent[]> {
  const { stdout } = await run(["threads", "export", threadId], { world });
  const lines = stdout
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  return lines.flatMap(({ author, body }) => (typeof body === "string" ? [{ author, body: JSON.parse(body) }] : []));
}

export async function countOf(world: World, threadId: string, type: EventBody["type"]): Promise<number> {
  return (await eventsOf(world, threadId)).filter(({ body }) => body.type === type).length;
}

/** Newest first. */
export async function threadsOf(world: World): Promise<string[]> {
  const { stdout } = await run(["threads", "list", "--json"], { world });
  return stdout
    .trimEnd()
    .split("\n")
    .map((line) => String(JSON.parse(line).id));
}
