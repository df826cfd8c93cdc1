/**
 * MCP over streamable HTTP: each request is one POST, whichever era it speaks, behind the same checks as every route. The
 * library answers it; failures before that are answered as JSON-RPC, because its clients read nothing else.
 */
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { HeddleError, PLAIN, reasonOf, rpcCodeOf, toHeddleError } from "@heddle/protocol";
import { Accepted, DONE, McpEnvelopeParams } from "@heddle/protocol/http";
import { envelopeFolders, readEnvelopes } from "@heddle/tools/envelopes";
import { z } from "zod";
import { heddleSurface } from "../mcp/heddle-surface.ts";
import type { EnvelopeSessionOptions } from "../mcp/envelope-session.ts";
import type { ToolSurface } from "../mcp/surface.ts";
import { CAREFUL_HEADERS, statusOf } from "./answer.ts";
import { parseBody } from "./body.ts";
import { route, type HttpCall, type Route } from "./route.ts";

/** The library is loaded with the first request. */
const library = () => import("../mcp/library.ts");

const SESSION_HEADER = "mcp-session-id";

interface Served {
  readonly surface: ToolSurface;
  /** For the client to send from here on. */
  readonly sessionId?: string;
}

type Choose = (body: unknown, isHandshakeEra: boolean) => Served | Promise<Served>;

async function serve(call: HttpCall, choose: Choose): Promise<void> {
  const { response, context } = call;
  const gone = new AbortController();
  response.once("close", () => gone.abort());
  try {
    const body = await parseBody(call.bytes);
    const { answerMcp, isHandshakeEra } = await library();
    const request = requestOf(call, gone.signal);
    const { surface, sessionId } = await choose(body, await isHandshakeEra(request, body));
    const { version, log } = context;
    await using answer = await answerMcp(request, body, { surface, version, log, gone: gone.signal });
    const { status, headers, body: sent } = answer.response;
    const own = sessionId === undefined ? {} : { [SESSION_HEADER]: sessionId };
    response.writeHead(status, { ...Object.fromEntries(headers), ...CAREFUL_HEADERS, ...own });
    if (sent === null) response.end();
    // A client that goes away in the middle is no fault.
    else await pipeline(Readable.fromWeb(sent), response).catch(() => response.destroy());
  } catch (error) {
    refuse(call, error);
  }
}

function refuse({ response, context }: HttpCall, error: unknown): void {
  const failure = toHeddleError(error);
  const { code } = failure;
  if (code === "internal") context.log(`MCP failed: ${reasonOf(error)}`);
  if (response.headersSent || response.destroyed) return void response.destroy();
  const message = code === "internal" ? "internal error; see the log of the server" : failure.message;
  const body = { jsonrpc: "2.0", id: null, error: { code: rpcCodeOf(code), message, data: { code } } };
  response.writeHead(statusOf(failure), { ...CAREFUL_HEADERS, "content-type": "application/json; charset=utf-8" });
  response.end(`${JSON.stringify(body)}\n`);
}

function requestOf({ headers, bytes, url }: HttpCall, signal: AbortSignal): Request {
  const given = Object.entries(headers).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, [value].flat().join(", ")] as [string, string]],
  );
  return new Request(url, { method: "POST", headers: given, body: new Uint8Array(bytes), signal });
}

/** The library knows callers by nothing; who calls was decided by the guard. */
function sessionOptions(envelope: string, { context, principal, by }: HttpCall): EnvelopeSessionOptions {
  if (principal === undefined) throw new HeddleError("door.unauthorized", "a token is needed");
  // A name that nobody knows begins no session.
  readEnvelopes(envelopeFolders(context.home, context.cwd)).entry(envelope);
  return { context, principal, by, envelope, log: context.log };
}

const Method = z.object({ method: z.string() });

function methodOf(body: unknown): string {
  return Method.safeParse(body, PLAIN).data?.method ?? "";
}

async function chooseSession(options: EnvelopeSessionOptions, call: HttpCall, body: unknown, isHandshakeEra: boolean) {
  const { mcpSessions } = call.context;
  if (!isHandshakeEra)
    return { surface: await mcpSessions.shared(options, { isNew: methodOf(body) === "server/discover" }) };
  if (methodOf(body) === "initialize") {
    const { id, surface } = mcpSessions.begin(options);
    return { surface, sessionId: id };
  }
  const surface = mcpSessions.find(options, sessionIdOf(call));
  if (surface === undefined)
    throw new HeddleError("door.not-found", "there is no such session; initialize another one");
  return { surface };
}

function sessionIdOf({ headers }: HttpCall): string {
  const id = [headers[SESSION_HEADER]].flat()[0];
  if (id !== undefined && id !== "") return id;
  throw new HeddleError(
    "usage.invalid",
    "the header Mcp-Session-Id is missing; it comes with the answer to initialize",
  );
}

export const MCP_ROUTES: readonly Route[] = [
  route({
    name: "serveMcp",
    on: "POST /mcp",
    summary: "The tools of Heddle for MCP clients, over streamable HTTP; each tool has a scope of its own",
    scope: "read",
    answer: "mcp",
    handle: (_given, call) =>
      serve(call, () => {
        const { context, principal, by } = call;
        if (principal === undefined) throw new HeddleError("door.unauthorized", "a token is needed");
        return { surface: heddleSurface({ context, principal, by, log: context.log }) };
      }),
  }),
  route({
    name: "serveMcpEnvelope",
    on: "POST /mcp/envelopes/{envelope}",
    summary: "The tools of an envelope for MCP clients, over streamable HTTP, in the folder of the server",
    scope: "write",
    params: McpEnvelopeParams,
    answer: "mcp",
    handle: ({ params }, call) =>
      serve(call, (body, isHandshakeEra) =>
        chooseSession(sessionOptions(params.envelope, call), call, body, isHandshakeEra),
      ),
  }),
  route({
    name: "leaveMcpEnvelope",
    on: "DELETE /mcp/envelopes/{envelope}",
    summary: "Ends the session that Mcp-Session-Id names, with its calls",
    scope: "write",
    params: McpEnvelopeParams,
    answer: Accepted,
    async handle({ params }, call) {
      const isEnded = await call.context.mcpSessions.end(sessionOptions(params.envelope, call), sessionIdOf(call));
      if (!isEnded) throw new HeddleError("door.not-found", "there is no such session; it has ended");
      return DONE;
    },
  }),
];
