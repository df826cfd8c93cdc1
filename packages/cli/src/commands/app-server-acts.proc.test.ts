/** What clients do outside turns is on record: their commands in the stream of the host, MCP calls in that of the thread. */
import { createServer } from "node:http";
import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import { openJournal } from "@heddle/journal";
import type { StoredEvent } from "@heddle/protocol";
import { expect, test } from "vitest";
import { KEY, serve, startThread, type Client } from "../../test/app-server-client.ts";
import { openWorld, run, type World } from "../../test/heddle-process.ts";

/** What is stored, read beside the server. */
async function acts(world: World, stream: string): Promise<readonly StoredEvent[]> {
  await using journal = await openJournal({ home: world.home });
  const events = await journal.read({ stream, after: 0, limit: 1000 });
  return events.filter(({ body }) => body.type === "client.intended" || body.type === "client.settled");
}

/** An MCP server that answers with what it was given, or fails. */
async function startEcho() {
  const server = createServer((incoming, response) => {
    let text = "";
    incoming.setEncoding("utf8").on("data", (piece: string) => void (text += piece));
    incoming.on("end", () => {
      if (incoming.method !== "POST") return void response.writeHead(405).end();
      const { id, method, params } = JSON.parse(text) as {
        id?: unknown;
        method: string;
        params: { arguments?: unknown };
      };
      if (id === undefined) return void response.writeHead(202).end();
      const inputSchema = { type: "object", properties: {} };
      const results: Readonly<Record<string, unknown>> = {
        initialize: {
          protocolVersion: "2025-11-25",
          capabilities: { tools: {} },
          serverInfo: { name: "e", version: "1" },
        },
        "tools/list": { tools: [{ name: "echo", description: "says it back", inputSchema }] },
        "tools/call": { content: [{ type: "text", text: JSON.stringify(params.arguments) }] },
      };
      const result = results[method];
      const said = result === undefined ? { error: { code: -32601, message: "no such method" } } : { result };
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify({ jsonrpc: "2.0", id, ...said }));
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}

async function opened(world: World, mcp = "http://127.0.0.1:9/mcp") {
  await mkdir(world.home, { mode: 0o700 });
  await world.file(
    "home/config.toml",
    `model = "gpt-5.5"\nmodel_provider = "mock"\n[model_providers.mock]\nbase_url = "http://127.0.0.1:9/v1"\nenv_key = "MOCK_KEY"\n[mcp_servers.echo]\nurl = "${mcp}"\n`,
  );
  const served = serve([], { world, env: KEY });
  await served.client.initialize();
  return served;
}

const exec = (client: Client, params: object): Promise<unknown> => client.call("command/exec", params);

test("command/exec is on record before and after, short and without secrets, and the record verifies", async () => {
  await using world = await openWorld();
  await using served = await opened(world);
  const { client } = served;
  const key = KEY.MOCK_KEY;
  await exec(client, { command: ["sh", "-c", `echo said ${key}`, key], env: { MINE: key, GONE: null } });
  await exec(client, { command: ["sh", "-c", "head -c 100000 /dev/zero | tr '\\0' x; exit 3"] });
  await exec(client, { command: ["true", ...Array.from({ length: 300 }, () => "w")] });
  await client.ask("command/exec", { command: ["true"], cwd: "/no/such/folder" });
  const stored = await acts(world, "host");
  expect(stored.map(({ body }) => body.type)).toEqual(Array(3).fill(["client.intended", "client.settled"]).flat());
  expect(JSON.stringify(stored)).not.toContain(key);
  const [first, ended, , long, many] = stored.map(({ body }) => body);
  expect(first).toMatchObject({
    client: "probe",
    act: { kind: "command", argv: ["sh", "-c", expect.any(String), "[redacted:known-secret]"], cwd: world.workspace },
  });
  expect(first).toMatchObject({ act: { envNames: ["MINE", "GONE"], isConfined: true, network: "none" } });
  expect(ended).toMatchObject({ outcome: "ok", exitCode: 0, output: "said [redacted:known-secret]\n" });
  expect(long).toMatchObject({ outcome: "failed", exitCode: 3 });
  expect(long?.type === "client.settled" && (long.output?.length ?? 0)).toBeLessThan(5_000);
  expect(many?.type === "client.intended" && many.act.kind === "command" && many.act.argv.at(-1)).toBe(
    "… and 201 more",
  );
  expect(new Set(stored.map(({ author }) => author))).toEqual(new Set(["user:owner"]));
  expect(await run(["verify"], { world })).toMatchObject({ code: 0 });
});

test("mcpServer/tool/call is on record in its thread, also when it fails", async () => {
  await using echo = await startEcho();
  await using world = await openWorld();
  await using served = await opened(world, echo.url);
  const { client } = served;
  const threadId = await startThread(client);
  const asked = { threadId, server: "echo", tool: "echo", arguments: { words: KEY.MOCK_KEY } };
  await client.call("mcpServer/tool/call", asked);
  await client.ask("mcpServer/tool/call", { ...asked, tool: "nothing" });
  const stored = await acts(world, threadId);
  expect(stored.map(({ body }) => body)).toMatchObject([
    { type: "client.intended", act: { kind: "mcpTool", server: "echo", tool: "echo" } },
    { type: "client.settled", outcome: "ok", output: '{"words":"[redacted:known-secret]"}' },
    { type: "client.intended", act: { tool: "nothing" } },
    { type: "client.settled", outcome: "failed", failure: { code: "tool.unknown" } },
  ]);
  expect(JSON.stringify(stored)).not.toContain(KEY.MOCK_KEY);
  expect(await acts(world, "host")).toEqual([]);
});
