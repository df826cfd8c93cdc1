/**
 * A server of the session era (2025-11-25) over streamable HTTP, written by hand: sessions, a stream of its own for news,
 * answers as JSON or as events, and faults on demand.
 */
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";

type Json = Record<string, unknown>;

export type HttpFault =
  | "none"
  /** Every request is sent to another origin. */
  | "redirect"
  /** Wants another token. */
  | "unauthorized"
  /** Answers nothing at all. */
  | "silent"
  /** An answer of 50 MB. */
  | "huge"
  /** Breaks the connection in the middle of an answer. */
  | "cut"
  /** Notifications without end in the answer to a call. */
  | "floods";

export interface SessionHttp extends AsyncDisposable {
  readonly url: string;
  readonly requests: readonly {
    readonly method: string;
    readonly headers: IncomingHttpHeaders;
    readonly body: string;
  }[];
  /** As after a restart: the sessions it knew are gone. */
  forgetSessions(): void;
}

export async function startSessionHttp(fault: HttpFault = "none", elsewhere = ""): Promise<SessionHttp> {
  const requests: { method: string; headers: IncomingHttpHeaders; body: string }[] = [];
  const sessions = new Set<string>();
  const server = createServer((incoming, outgoing) => {
    answer(incoming, outgoing).catch(() => outgoing.destroy());
  });

  async function answer(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk as Buffer);
    const { method = "", headers } = incoming;
    const body = Buffer.concat(chunks).toString();
    requests.push({ method, headers, body });
    if (fault === "silent") return;
    if (fault === "redirect") {
      outgoing.writeHead(307, { location: elsewhere }).end();
      return;
    }
    if (fault === "unauthorized") {
      outgoing.writeHead(401, { "www-authenticate": "Bearer" }).end("who are you?");
      return;
    }
    const session = String(headers["mcp-session-id"] ?? "");
    if (method === "DELETE") {
      sessions.delete(session);
      outgoing.writeHead(200).end();
    } else if (method === "GET") {
      outgoing.writeHead(200, { "content-type": "text/event-stream" });
      outgoing.flushHeaders();
    } else await answerMessage(JSON.parse(body) as Json, session, outgoing);
  }

  async function answerMessage(message: Json, session: string, outgoing: ServerResponse): Promise<void> {
    const { id, method } = message;
    const json = (result: Json, headers: Record<string, string> = {}): void => {
      outgoing.writeHead(200, { "content-type": "application/json", ...headers });
      outgoing.end(JSON.stringify({ jsonrpc: "2.0", id, result }));
    };
    if (method === "initialize") {
      const newSession = `session-${sessions.size + 1}`;
      sessions.add(newSession);
      const serverInfo = { name: "sessions", version: "1" };
      json(
        { protocolVersion: "2025-11-25", capabilities: { tools: {} }, serverInfo },
        { "mcp-session-id": newSession },
      );
    } else if (!sessions.has(session)) {
      const status = session === "" ? 400 : 404;
      outgoing.writeHead(status, { "content-type": "application/json" });
      outgoing.end(JSON.stringify({ jsonrpc: "2.0", id: null, error: { code: -32001, message: "Session not found" } }));
    } else if (id === undefined) outgoing.writeHead(202).end();
    else if (method === "tools/list") json({ tools: [{ name: "shout", inputSchema: { type: "object" } }] });
    else if (method === "tools/call") await answerCall(message, outgoing);
    else outgoing.writeHead(200, { "content-type": "application/json" }).end(notFound(id));
  }

  async function answerCall({ id, params }: Json, outgoing: ServerResponse): Promise<void> {
    const { arguments: args, _meta: meta } = params as { arguments: Json; _meta?: Json };
    outgoing.writeHead(200, { "content-type": "text/event-stream" });
    const event = (message: Json): string =>
      `event: message\ndata: ${JSON.stringify({ jsonrpc: "2.0", ...message })}\n\n`;
    outgoing.write(
      event({ method: "notifications/progress", params: { progressToken: meta?.["progressToken"], progress: 1 } }),
    );
    if (fault === "cut") {
      outgoing.write("event: mess", () => outgoing.destroy());
      return;
    }
    if (fault === "floods") {
      const many = event({ method: "notifications/message", params: { level: "info", data: "!" } }).repeat(500);
      const gone = AbortSignal.any([AbortSignal.timeout(10_000), closed(outgoing)]);
      while (!gone.aborted) {
        if (!outgoing.write(many)) await once(outgoing, "drain", { signal: gone }).catch(() => undefined);
      }
      return;
    }
    const text = fault === "huge" ? "z".repeat(50 * 1024 * 1024) : String(args["text"]).toUpperCase();
    outgoing.end(event({ id, result: { content: [{ type: "text", text }] } }));
  }

  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    requests,
    forgetSessions: () => sessions.clear(),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close").catch(() => undefined);
    },
  };
}

function closed(outgoing: ServerResponse): AbortSignal {
  const gone = new AbortController();
  outgoing.once("close", () => gone.abort());
  return gone.signal;
}

function notFound(id: unknown): string {
  return JSON.stringify({ jsonrpc: "2.0", id, error: { code: -32601, message: "Method not found" } });
}
