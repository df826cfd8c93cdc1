/**
 * A server that runs somewhere else, over streamable HTTP. Its token is read from the environment at each start, or comes
 * from a login and is renewed when the server refuses it; it goes into requests alone. A redirect is followed only within
 * the origin, so that it cannot carry the token away.
 */
import type { AuthProvider } from "@modelcontextprotocol/client";
import type { McpHttpServer, McpTokenSource } from "@heddle/protocol";
import { mcpError, messageOf } from "./failure.ts";
import { createBoundedFetch } from "./http-fetch.ts";
import { INTERNAL_ERROR, readMessage } from "./message.ts";
import type { ServerTransport } from "./stdio-transport.ts";

const GOODBYE_MS = 500;

export interface TokenSources {
  readonly env: NodeJS.ProcessEnv;
  readonly logins?: McpTokenSource | undefined;
}

export async function openHttpTransport(server: McpHttpServer, sources: TokenSources): Promise<ServerTransport> {
  const { StreamableHTTPClientTransport } = await import("@modelcontextprotocol/client");
  const bounded = createBoundedFetch((requestBody, error) => fail(requestBody, messageOf(error)));
  class HttpTransport extends StreamableHTTPClientTransport implements ServerTransport {
    readonly failure = undefined;
    readonly diagnosis = "";
    #closed: Promise<void> | undefined;

    override async close(): Promise<void> {
      this.#closed ??= this.#close();
      await this.#closed;
    }

    async #close(): Promise<void> {
      let timer: NodeJS.Timeout | undefined;
      const patience = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, GOODBYE_MS);
      });
      // A server that has ended or has no sessions is closed in any case.
      await Promise.race([this.terminateSession().catch(() => undefined), patience]);
      clearTimeout(timer);
      await super.close();
      bounded[Symbol.dispose]();
    }
  }
  const headers = headersOf(server, sources.env);
  const { logins } = sources;
  const transport = new HttpTransport(new URL(server.url), {
    fetch: bounded.fetch,
    requestInit: { headers },
    redirectPolicy: "same-origin",
    ...(logins === undefined || hasAuthorization(headers) ? {} : { authProvider: tokensFrom(logins, server) }),
  });

  /** The library leaves a request whose answer broke off to its time limit; this fails it at once. */
  function fail(requestBody: string, message: string): void {
    const request = readMessage(requestBody);
    if (request === undefined || request === "tooDeep" || !("method" in request) || !("id" in request)) return;
    transport.onmessage?.({ jsonrpc: "2.0", id: request.id, error: { code: INTERNAL_ERROR, message } });
  }

  return transport;
}

function headersOf(server: McpHttpServer, env: NodeJS.ProcessEnv): Record<string, string> {
  const { bearerTokenEnv } = server;
  if (bearerTokenEnv === undefined) return { "user-agent": "heddle", ...server.headers };
  const token = env[bearerTokenEnv]?.trim();
  if (token === undefined || token === "") {
    throw mcpError(`the environment variable ${bearerTokenEnv} with the token of this server is not set`);
  }
  return { "user-agent": "heddle", ...server.headers, authorization: `Bearer ${token}` };
}

function hasAuthorization(headers: Readonly<Record<string, string>>): boolean {
  return Object.keys(headers).some((name) => name.toLowerCase() === "authorization");
}

/** Asked by the library before each request, and once more when the server refuses what was sent. */
function tokensFrom(logins: McpTokenSource, server: McpHttpServer): AuthProvider {
  let last: string | undefined;
  return {
    async token() {
      last = await logins.token(server);
      return last;
    },
    onUnauthorized: () => logins.renew(server, last),
  };
}
