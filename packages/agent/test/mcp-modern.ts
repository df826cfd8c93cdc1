/** A server of the stateless era (2026-07-28), made with the reference implementation; it refuses the session era. */
import { createServer, type IncomingHttpHeaders } from "node:http";
import { once } from "node:events";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { z } from "zod";

export function modernServer(): McpServer {
  const server = new McpServer({ name: "modern", version: "1" }, { capabilities: { tools: { listChanged: true } } });
  server.registerTool(
    "add",
    {
      description: "Adds two numbers",
      inputSchema: z.object({ a: z.number(), b: z.number() }),
      outputSchema: z.object({ sum: z.number() }),
      annotations: { readOnlyHint: true },
    },
    async ({ a, b }) => ({ content: [{ type: "text", text: String(a + b) }], structuredContent: { sum: a + b } }),
  );
  server.registerTool("region", { description: "Names its region", inputSchema: REGION }, async ({ region }) => ({
    content: [{ type: "text", text: `in ${region}` }],
  }));
  return server;
}

/** The revision lets a server ask that an argument is repeated in a header. */
const REGION = z.object({ region: z.string().meta({ "x-mcp-header": "Region" }) });

export interface ModernHttp extends AsyncDisposable {
  readonly url: string;
  /** Headers of every request, the oldest first. */
  readonly requests: readonly IncomingHttpHeaders[];
  announceChange(): void;
}

export async function startModernHttp(): Promise<ModernHttp> {
  const handler = createMcpHandler(() => modernServer(), { legacy: "reject" });
  const requests: IncomingHttpHeaders[] = [];
  const server = createServer((incoming, outgoing) => {
    requests.push(incoming.headers);
    const gone = new AbortController();
    outgoing.once("close", () => gone.abort());
    answer()
      .catch(() => outgoing.destroy())
      .finally(() => outgoing.end());

    async function answer(): Promise<void> {
      const chunks: Buffer[] = [];
      for await (const chunk of incoming) chunks.push(chunk as Buffer);
      const { method = "GET", url = "/" } = incoming;
      const headers = new Headers();
      for (const [name, value] of Object.entries(incoming.headers)) headers.set(name, String(value));
      const body = method === "GET" ? {} : { body: Buffer.concat(chunks) };
      const request = new Request(`http://127.0.0.1${url}`, { method, headers, signal: gone.signal, ...body });
      const response = await handler.fetch(request);
      outgoing.writeHead(response.status, Object.fromEntries(response.headers));
      outgoing.flushHeaders();
      for await (const chunk of response.body ?? []) outgoing.write(chunk);
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    requests,
    announceChange: () => handler.notify.toolsChanged(),
    async [Symbol.asyncDispose]() {
      await handler.close();
      server.closeAllConnections();
      server.close();
    },
  };
}
