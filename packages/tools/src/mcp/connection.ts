/**
 * One connection to one server, in whichever protocol era the server speaks: it is asked with `server/discover` first
 * (2026-07-28, stateless) and greeted with `initialize` when it does not know that (2025-11-25 and before). The library is
 * loaded here and only here, when the first server is needed.
 */
import { pathToFileURL } from "node:url";
import type { CallToolResult, Client } from "@modelcontextprotocol/client";
import { z } from "zod";
import type { CallClock } from "./call-clock.ts";
import { mcpError, messageOf } from "./failure.ts";
import type { ServerTransport } from "./stdio-transport.ts";

export interface ConnectOptions {
  /** Called again when the server ends on the version probe. */
  openTransport(): Promise<ServerTransport>;
  /** Reported to the server as its root. */
  readonly workspace: string;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  onListChanged(): void;
  /** Absent: no user can answer, and the server is told so in the handshake. */
  onElicit?: ((wanted: Elicitation) => Promise<Elicited>) | undefined;
  /** Closed by the server or by a fault, not by `close`. */
  onLost(cause: string): void;
}

/** A server's question to the user, in the middle of a call. */
export interface Elicitation {
  readonly message: string;
  readonly schema: unknown;
}

export type Elicited =
  | { readonly action: "accept"; readonly content: unknown }
  | { readonly action: "decline" | "cancel" };

export interface CallOptions {
  readonly name: string;
  readonly arguments: Record<string, unknown>;
  /** What a client says about the call, besides its arguments. */
  readonly meta?: Readonly<Record<string, unknown>> | undefined;
  readonly parameters: Readonly<Record<string, unknown>>;
  readonly signal: AbortSignal;
  readonly onProgress: (message: string) => void;
  /** Started by the caller. */
  readonly clock: CallClock;
}

export interface McpConnection {
  readonly protocolVersion: string;
  /** Every entry of every page, unread. */
  list(options: { readonly timeoutMs: number; readonly signal: AbortSignal }): Promise<readonly unknown[]>;
  call(options: CallOptions): Promise<CallToolResult>;
  /** The server's own description; unchecked. */
  readonly about: { readonly info: unknown; readonly capabilities: unknown };
  /** Any other request; the answer is unread. */
  ask(
    method: "resources/list" | "resources/templates/list" | "resources/read",
    params: Readonly<Record<string, unknown>>,
    options: { readonly timeoutMs: number; readonly signal: AbortSignal },
  ): Promise<Readonly<Record<string, unknown>>>;
  close(): Promise<void>;
}

/** A server that does not know the probe mostly answers at once; after silence it is greeted the old way. */
const PROBE_SHARE = 0.3;
const MAX_PAGES = 100;
const MAX_LISTED = 5000;

const Anything = z.looseObject({});
/** What a form can hold. */
const Content = z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.array(z.string())]));
/** The library's own limit; the clock of the call is the one that counts. */
const NEVER_MS = 2 ** 31 - 1;
const Page = z.looseObject({ tools: z.array(z.unknown()), nextCursor: z.string().optional() });

export async function connectMcp(options: ConnectOptions): Promise<McpConnection> {
  const startedAt = performance.now();
  const first = await options.openTransport();
  try {
    return await connectOnce(first, "auto", options, options.timeoutMs);
  } catch (cause) {
    // Read before closing: what it prints when it is ended is not the reason.
    const error = withDiagnosis(cause, first);
    await first.close();
    const leftMs = Math.round(options.timeoutMs - (performance.now() - startedAt));
    // Some programs end on any message before `initialize`: they are started again without the probe.
    const diedOfProbe = "stderr" in first && first.failure !== undefined && leftMs > 0 && !options.signal.aborted;
    if (!diedOfProbe) throw error;
    const second = await options.openTransport();
    try {
      return await connectOnce(second, "legacy", options, leftMs);
    } catch (again) {
      const secondError = withDiagnosis(again, second);
      await second.close();
      throw secondError;
    }
  }
}

async function connectOnce(
  transport: ServerTransport,
  mode: "auto" | "legacy",
  options: ConnectOptions,
  timeoutMs: number,
): Promise<McpConnection> {
  // On a shared channel silence may mean the old era, so there must be time left to greet; over HTTP it is an outage.
  const probeMs = "stderr" in transport ? Math.max(1, Math.round(timeoutMs * PROBE_SHARE)) : timeoutMs + 1000;
  const client = await newClient(mode, options, probeMs);
  const late = AbortSignal.timeout(timeoutMs);
  const stop = AbortSignal.any([options.signal, late]);
  // Longer than `late`, which gives the better message.
  const connecting = client.connect(transport, { timeout: timeoutMs + 1000, signal: stop });
  await untilStopped(connecting, stop, () =>
    late.aborted ? mcpError(`the server did not start in ${timeoutMs} ms`) : mcpError("stopped with the turn"),
  );
  let isClosing = false;
  client.onclose = () => {
    if (!isClosing) options.onLost(describeEnd(transport));
  };
  return {
    protocolVersion: client.getNegotiatedProtocolVersion() ?? "unknown",
    list: ({ timeoutMs: listMs, signal }) => listAll(client, listMs, signal),
    call: (call) => callTool(client, call),
    about: { info: client.getServerVersion() ?? null, capabilities: client.getServerCapabilities() ?? null },
    ask: (method, params, { timeoutMs: askMs, signal }) =>
      client.request({ method, params: { ...params } }, Anything, { timeout: askMs, signal }),
    async close() {
      isClosing = true;
      await transport.close();
    },
  };
}

async function newClient(mode: "auto" | "legacy", options: ConnectOptions, probeMs: number): Promise<Client> {
  const { Client: McpClient, ProtocolError, ProtocolErrorCode } = await import("@modelcontextprotocol/client");
  const client = new McpClient(
    { name: "heddle", version: "1" },
    {
      capabilities: { roots: {}, ...(options.onElicit === undefined ? {} : { elicitation: { form: {} } }) },
      versionNegotiation: { mode, probe: { timeoutMs: probeMs } },
      listChanged: { tools: { autoRefresh: false, debounceMs: 0, onChanged: () => options.onListChanged() } },
      // Results are not held against the server's own schema: a schema can be made to take for ever.
      jsonSchemaValidator: {
        getValidator: () => () => ({ valid: false, data: undefined, errorMessage: "schemas of results are not used" }),
      },
    },
  );
  const { workspace } = options;
  client.setRequestHandler("roots/list", () => ({
    roots: [{ uri: pathToFileURL(workspace).href, name: "workspace" }],
  }));
  const { onElicit } = options;
  if (onElicit !== undefined) {
    client.setRequestHandler("elicitation/create", async ({ params }) => {
      if (params.mode === "url") throw new ProtocolError(ProtocolErrorCode.InvalidParams, "only forms are supported");
      const answer = await onElicit({ message: params.message, schema: params.requestedSchema });
      return answer.action === "accept" ? { action: "accept", content: Content.parse(answer.content) } : answer;
    });
  }
  client.fallbackRequestHandler = async ({ method }) => {
    throw new ProtocolError(ProtocolErrorCode.MethodNotFound, `Heddle does not support ${method}`);
  };
  return client;
}

/** The library waits for some steps without a limit; this does not. */
async function untilStopped<T>(work: Promise<T>, stop: AbortSignal, reason: () => Error): Promise<T> {
  const stopped = Promise.withResolvers<never>();
  const onAbort = (): void => stopped.reject(reason());
  stop.addEventListener("abort", onAbort, { once: true });
  if (stop.aborted) onAbort();
  // The loser of the race must not count as unhandled.
  work.catch(() => undefined);
  stopped.promise.catch(() => undefined);
  try {
    return await Promise.race([work, stopped.promise]);
  } finally {
    stop.removeEventListener("abort", onAbort);
  }
}

async function listAll(client: Client, timeoutMs: number, signal: AbortSignal): Promise<readonly unknown[]> {
  if (client.getServerCapabilities()?.tools === undefined) return [];
  const entries: unknown[] = [];
  const seen = new Set<string>();
  let cursor: string | undefined;
  for (let pages = 0; pages < MAX_PAGES; pages += 1) {
    const params = cursor === undefined ? {} : { cursor };
    const page = await client.request({ method: "tools/list", params }, Page, { timeout: timeoutMs, signal });
    entries.push(...page.tools.slice(0, MAX_LISTED - entries.length));
    cursor = page.nextCursor;
    if (cursor === undefined || cursor === "" || entries.length >= MAX_LISTED || seen.has(cursor)) return entries;
    seen.add(cursor);
  }
  return entries;
}

async function callTool(client: Client, call: CallOptions): Promise<CallToolResult> {
  const { name, signal, onProgress, clock } = call;
  try {
    return await client.callTool(
      { name, arguments: call.arguments, ...(call.meta === undefined ? {} : { _meta: call.meta }) },
      {
        timeout: NEVER_MS,
        signal: AbortSignal.any([signal, clock.signal]),
        onprogress: ({ message }) => {
          clock.sawActivity();
          if (message !== undefined) onProgress(message);
        },
        // Given here, so that the library fetches and compiles nothing.
        toolDefinition: { name, inputSchema: { ...call.parameters, type: "object" } },
      },
    );
  } catch (error) {
    throw clock.signal.aborted && !signal.aborted ? clock.signal.reason : error;
  }
}

function describeEnd(transport: ServerTransport): string {
  const { failure, diagnosis } = transport;
  const end = failure ?? "the connection was closed";
  return diagnosis === "" ? end : `${end}; it had written: ${messageOf(diagnosis)}`;
}

/** The end of the process explains more than the request that failed because of it. */
function withDiagnosis(error: unknown, transport: ServerTransport): Error {
  if (transport.failure !== undefined) return mcpError(describeEnd(transport), error);
  const { diagnosis } = transport;
  const text = diagnosis === "" ? "" : `; it had written: ${messageOf(diagnosis)}`;
  return mcpError(`${messageOf(error)}${text}`, error);
}
