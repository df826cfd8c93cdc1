/**
 * The only file that knows the library. It is loaded where MCP is served and nowhere else; what it says of eras, headers and
 * correlation holds, and everything that is listed and called is a surface (decision 11).
 */
import type * as McpLibrary from "@modelcontextprotocol/server";
import type { CallToolResult, Server, ServerContext } from "@modelcontextprotocol/server";
import { HeddleError, isHeddleError, reasonOf } from "@heddle/protocol";
import type { Channel } from "../rpc/channel.ts";
import { ChannelTransport } from "./channel-transport.ts";
import { failureResult, type SurfaceResult, type SurfaceTool, type ToolSurface } from "./surface.ts";

/** More at once is a flood, not work. */
const MAX_CALLS = 64;
/** Of one call; more often than this nobody reads it. */
const PROGRESS_MS = 100;
/** What the library reports of one client. */
const MAX_REPORTED = 20;

export interface McpServing {
  readonly surface: ToolSurface;
  readonly version: string;
  readonly log: (line: string) => void;
  /** The client of one request has gone; absent: the library says so itself. */
  readonly gone?: AbortSignal;
}

export interface McpAnswer extends AsyncDisposable {
  readonly response: Response;
}

/** One request over HTTP, of either era. It is over when its answer has been read. */
export async function answerMcp(request: Request, body: unknown, serving: McpServing): Promise<McpAnswer> {
  const known = await import("@modelcontextprotocol/server");
  // Nobody can be told of changes later: a request has no connection.
  const { onChange: _onChange, ...surface } = serving.surface;
  const calls = { open: 0 };
  const handler = known.createMcpHandler(() => serverOf(known, { ...serving, surface }, calls), {
    onerror: () => undefined,
  });
  const response = await handler.fetch(request, { parsedBody: body });
  return { response, [Symbol.asyncDispose]: () => handler.close() };
}

/** The session era; everything that the stateless one answers, refusals included, is not. */
export async function isHandshakeEra(request: Request, body: unknown): Promise<boolean> {
  return (await import("@modelcontextprotocol/server")).isLegacyRequest(request, body);
}

/** One client on one connection, whichever era it speaks; resolves when the connection has ended. */
export async function serveMcpChannel(channel: Channel, serving: McpServing): Promise<void> {
  const [library, { serveStdio }] = await Promise.all([
    import("@modelcontextprotocol/server"),
    import("@modelcontextprotocol/server/stdio"),
  ]);
  const { log } = serving;
  const transport = new ChannelTransport(channel, { parse: library.parseJSONRPCMessage, log });
  const calls = { open: 0 };
  serveStdio(() => serverOf(library, serving, calls), { transport, onerror: reporter(log) });
  await transport.closed;
}

type Library = typeof McpLibrary;

function serverOf(library: Library, { surface, version, log, gone }: McpServing, calls: { open: number }): Server {
  const server = new library.Server(
    { name: "heddle", title: "Heddle", version },
    { capabilities: { tools: { listChanged: surface.onChange !== undefined } }, instructions: surface.instructions },
  );
  server.setRequestHandler("tools/list", async () => ({ tools: (await listed(surface)).map(toolOf) }));
  server.setRequestHandler("tools/call", async ({ params }, context) => {
    if (calls.open >= MAX_CALLS) return resultOf(failureResult(tooMany(), log));
    calls.open += 1;
    try {
      const { name, arguments: given = {} } = params;
      const signal = AbortSignal.any([context.mcpReq.signal, ...(gone === undefined ? [] : [gone])]);
      return resultOf(await surface.call({ name, arguments: given, signal, progress: progressOf(context) }));
    } catch (error) {
      if (isHeddleError(error) && error.code === "tool.unknown")
        throw new library.ProtocolError(library.ProtocolErrorCode.InvalidParams, error.message, { code: error.code });
      return resultOf(failureResult(error, log));
    } finally {
      calls.open -= 1;
    }
  });
  const changes = surface.onChange?.(() => {
    server
      .sendToolListChanged()
      .catch((error: unknown) => log(`the list of tools could not be sent to a client: ${reasonOf(error)}`));
  });
  server.onclose = () => changes?.[Symbol.dispose]();
  return server;

  async function listed(of: ToolSurface): Promise<readonly SurfaceTool[]> {
    try {
      return await of.list();
    } catch (error) {
      if (!isHeddleError(error)) throw error;
      // What the user of a client is shown when its server has no tools.
      throw new library.ProtocolError(library.ProtocolErrorCode.InternalError, `${error.code}: ${error.message}`, {
        code: error.code,
      });
    }
  }
}

function tooMany(): HeddleError {
  return new HeddleError("door.overloaded", `${MAX_CALLS} calls of this client run already; wait for one to end`);
}

function toolOf({ name, description, inputSchema, outputSchema, isReadOnly = false }: SurfaceTool) {
  const annotations = { readOnlyHint: isReadOnly };
  const output = outputSchema === undefined ? {} : { outputSchema: { ...outputSchema, type: "object" as const } };
  return { name, description, inputSchema: { ...inputSchema, type: "object" as const }, ...output, annotations };
}

function resultOf({ content, structured, isError }: SurfaceResult): CallToolResult {
  return {
    content: content.map((part) => ({ ...part })),
    ...(structured === undefined ? {} : { structuredContent: { ...structured } }),
    ...(isError ? { isError } : {}),
  };
}

/** Nothing is sent to a client that has not asked for it. */
function progressOf({ mcpReq }: ServerContext): (message: string) => void {
  const token = mcpReq._meta?.progressToken;
  if (token === undefined) return () => undefined;
  let progress = 0;
  let sentAt = -PROGRESS_MS;
  return (message) => {
    const now = performance.now();
    if (mcpReq.signal.aborted || now - sentAt < PROGRESS_MS) return;
    sentAt = now;
    progress += 1;
    const params = { progressToken: token, progress, message };
    // A client that has gone misses it.
    mcpReq.notify({ method: "notifications/progress", params }).catch(() => undefined);
  };
}

function reporter(log: (line: string) => void): (error: Error) => void {
  let reported = 0;
  return (error) => {
    if ((reported += 1) <= MAX_REPORTED) log(`MCP: ${reasonOf(error).slice(0, 300)}`);
  };
}
