/** A turn whose envelope lists hosts: commands, hooks and MCP servers reach them, and the record says what was reached and refused. */
import { createServer, type Server } from "node:http";
import type { EventBody, EventOf } from "@heddle/protocol";
import { expect, test } from "vitest";
import { fixture, mcpCall, mcpItems } from "../../test/mcp-play.ts";
import { openTestHeddle, type TestHeddle } from "../../test/test-heddle.ts";

const sh = (cmd: string): { tool: string; args: { cmd: string } } => ({ tool: "exec_command", args: { cmd } });
const GET = (where: string): string =>
  `${process.execPath} -e 'fetch("${where}").then(r=>r.text()).then(t=>console.log("answer",t),e=>console.log("failed"))'`;

interface Web extends AsyncDisposable {
  readonly port: number;
  readonly urls: string[];
}

async function openWeb(): Promise<Web> {
  const urls: string[] = [];
  const server: Server = createServer((request, response) => {
    urls.push(request.url ?? "");
    response.end("hello");
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return {
    port: address.port,
    urls,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
  };
}

async function run(t: TestHeddle): Promise<EventBody[]> {
  const turn = await t.start("go");
  await turn.done;
  return (await t.events(turn.threadId)).map(({ body }) => body);
}

function ofType<T extends EventBody["type"]>(events: readonly EventBody[], type: T): EventOf<T>[] {
  return events.filter((body): body is EventOf<T> => body.type === type);
}

test("S3: hosts of a list are reached and recorded once, others are refused and recorded", async () => {
  await using web = await openWeb();
  await using other = await openWeb();
  await using t = await openTestHeddle({
    script: [
      { calls: [sh(GET(`http://127.0.0.1:${web.port}/one`)), sh(GET(`http://127.0.0.1:${web.port}/two`))] },
      { calls: [sh(GET(`http://127.0.0.1:${other.port}/`)), sh(GET("http://evil.example/"))] },
      { text: "done" },
    ],
    settings: { networkHosts: [`127.0.0.1:${web.port}`] },
    hooks: [{ event: "Stop", command: GET(`http://127.0.0.1:${web.port}/hook`) }],
  });
  const events = await run(t);
  const { turnId } = ofType(events, "turn.started")[0] ?? { turnId: "" };
  expect({ web: web.urls, other: other.urls }).toEqual({ web: ["/one", "/two", "/hook"], other: [] });
  expect(ofType(events, "network.used")).toEqual([
    {
      type: "network.used",
      v: 1,
      turnId,
      host: "127.0.0.1",
      port: web.port,
      requests: 3,
      bytesSent: expect.any(Number),
      bytesReceived: expect.any(Number),
    },
  ]);
  // Every other port of the loopback is the sandbox's own, where nothing listens.
  expect(ofType(events, "network.refused").map(({ host, port, reason, count }) => [host, port, reason, count])).toEqual(
    [["evil.example", 80, "not-listed", 1]],
  );
  expect(ofType(events, "turn.started")[0]?.envelope).toMatchObject({ network: [`127.0.0.1:${web.port}`] });
  expect(ofType(events, "context.loaded")[0]?.text).toContain(`network: only 127.0.0.1:${web.port};`);
  // Before the end of the turn, so that who waits for it has all of it.
  expect(events.at(-1)?.type).toBe("turn.completed");
});

test("an MCP server in the thread's sandbox has the same way out and no other", async () => {
  await using web = await openWeb();
  await using other = await openWeb();
  const dials = [web, other].map(({ port }) => mcpCall("dial", { port }));
  await using t = await openTestHeddle({
    script: [{ calls: [...dials, mcpCall("look", {})] }, { text: "done" }],
    settings: { networkHosts: [`127.0.0.1:${web.port}`] },
    mcpServers: [fixture()],
  });
  const [listed, unlisted, seen] = mcpItems(await run(t)).map(({ result }) => JSON.stringify(result));
  // A plain connection goes past the proxy, to the loopback of the sandbox, where the listed port is the host's.
  expect(listed).toContain("connected");
  expect(unlisted).toContain("refused");
  expect(seen).toContain("HTTPS_PROXY");
  expect(web.urls).toEqual([]);
});

test("a turn without a list records nothing about the network", async () => {
  await using t = await openTestHeddle({ script: [{ calls: [sh("echo $HTTP_PROXY.")] }, { text: "done" }] });
  const events = await run(t);
  expect(events.filter(({ type }) => type.startsWith("network."))).toEqual([]);
  expect(JSON.stringify(ofType(events, "item.completed"))).not.toContain("http://127.0.0.1");
});
