import { once } from "node:events";
import { request } from "node:http";
import { connect, createServer } from "node:net";
import { expect, test } from "vitest";
import { openEcho, openProxy, openWebServer, portOf } from "../../test/proxy-world.ts";
import { MAX_ROWS } from "./network-log.ts";

const get = (url: string, host: string, ...headers: readonly string[]): string =>
  [`GET ${url} HTTP/1.1`, `Host: ${host}`, "Connection: close", ...headers, "", ""].join("\r\n");
const statusOf = (answer: string): string => answer.split("\r\n", 1)[0] ?? "";

test("a listed host is reached by an absolute URL, and counted", async () => {
  await using web = await openWebServer();
  await using proxy = await openProxy([`127.0.0.1:${web.port}`]);
  const at = `127.0.0.1:${web.port}`;
  const answer = await proxy.send(get(`http://${at}/a?b=c`, at, "Proxy-Authorization: Basic secret", "X-Kept: yes"));
  expect(statusOf(answer)).toBe("HTTP/1.1 200 OK");
  expect(answer).toContain("got /a?b=c");
  expect(web.requests).toEqual([`GET /a?b=c ${at}`]);
  const { used, refused } = proxy.log.take();
  expect(used).toEqual([
    {
      host: "127.0.0.1",
      port: web.port,
      requests: 1,
      bytesSent: expect.any(Number),
      bytesReceived: expect.any(Number),
    },
  ]);
  expect(used[0]?.bytesReceived).toBeGreaterThan(20);
  expect(refused).toEqual([]);
  expect(proxy.log.take()).toEqual({ used: [], refused: [] });
});

test("a body is handed on, whether its length is known or not", async () => {
  await using web = await openWebServer();
  const at = `127.0.0.1:${web.port}`;
  await using proxy = await openProxy([at]);
  const head = `POST http://${at}/p HTTP/1.1\r\nHost: ${at}\r\nConnection: close\r\n`;
  expect(await proxy.send(`${head}Content-Length: 5\r\n\r\nhello`)).toContain("got /phello");
  expect(await proxy.send(`${head}Transfer-Encoding: chunked\r\n\r\n5\r\nworld\r\n0\r\n\r\n`)).toContain("got /pworld");
});

test("CONNECT gives a tunnel in both directions, closed from either side", async () => {
  await using echo = await openEcho();
  await using proxy = await openProxy([`localhost:${echo.port}`]);
  const socket = connect(proxy.port, "127.0.0.1");
  socket.setEncoding("latin1");
  socket.write(`CONNECT localhost:${echo.port} HTTP/1.1\r\n\r\nearly `);
  let text = "";
  socket.on("data", (chunk: string) => {
    text += chunk;
    if (text.endsWith("early ")) socket.end("late");
  });
  await once(socket, "close");
  expect(text).toBe("HTTP/1.1 200 Connection established\r\n\r\nearly late");
  expect(proxy.log.take().used).toEqual([
    { host: "localhost", port: echo.port, requests: 1, bytesSent: 10, bytesReceived: 10 },
  ]);
});

test("a refusal is answered 403 with one line that names the host and how it is allowed, and counted", async () => {
  await using proxy = await openProxy(["example.org"]);
  const answers = [
    await proxy.send("CONNECT evil.example:443 HTTP/1.1\r\n\r\n"),
    await proxy.send("CONNECT evil.example:443 HTTP/1.1\r\n\r\n"),
    await proxy.send(get("http://evil.example:8080/", "evil.example:8080")),
  ];
  expect(answers.map(statusOf)).toEqual(Array.from({ length: 3 }, () => "HTTP/1.1 403 Forbidden"));
  expect(answers[2]).toContain(
    'heddle: evil.example:8080 is not among the hosts that commands may reach. The owner allows it with network_hosts = ["evil.example:8080"] under [sandbox_workspace_write] in config.toml, or --network-host evil.example:8080; for an agent program alone, with hosts under its [runners.NAME].\n',
  );
  expect(proxy.log.take()).toEqual({
    used: [],
    refused: [
      { host: "evil.example", port: 443, reason: "not-listed", count: 2 },
      { host: "evil.example", port: 8080, reason: "not-listed", count: 1 },
    ],
  });
});

/** Names and the addresses that a hostile DNS gives them. */
const LEADING: Readonly<Record<string, readonly string[]>> = {
  "loopback.example": ["127.0.0.1"],
  "metadata.example": ["169.254.169.254"],
  "private.example": ["10.1.2.3", "192.168.0.1", "172.16.9.9"],
  "shared.example": ["100.64.1.1"],
  "unique.example": ["fd00::1", "fe80::1"],
  "mapped.example": ["::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1"],
  "nobody.example": ["0.0.0.0", "::", "224.0.0.1", "255.255.255.255"],
  "text.example": ["localhost", "evil.example"],
};

test.for(Object.keys(LEADING))("S3: %s is listed, and its address is not", async (name) => {
  await using web = await openWebServer();
  const rules = [`${name}:${web.port}`];
  await using proxy = await openProxy(rules, { resolve: async (asked) => LEADING[asked] ?? [] });
  const at = `${name}:${web.port}`;
  const answers = [await proxy.send(`CONNECT ${at} HTTP/1.1\r\n\r\n`), await proxy.send(get(`http://${at}/`, at))];
  expect(answers.map(statusOf)).toEqual(["HTTP/1.1 403 Forbidden", "HTTP/1.1 403 Forbidden"]);
  expect(web.requests).toEqual([]);
  expect(proxy.log.take().refused).toEqual([{ host: name, port: web.port, reason: "address-not-listed", count: 2 }]);
});

test("S3: a name is looked up once, and only what was checked is connected to", async () => {
  await using web = await openWebServer();
  const answers = [["127.0.0.1"], ["10.0.0.1"]];
  let lookups = 0;
  const resolve = async (): Promise<readonly string[]> => answers[lookups++] ?? [];
  await using proxy = await openProxy([`re.example:${web.port}`, `127.0.0.1:${web.port}`], { resolve });
  const at = `re.example:${web.port}`;
  expect(statusOf(await proxy.send(get(`http://${at}/`, at)))).toBe("HTTP/1.1 200 OK");
  expect(lookups).toBe(1);
  expect(statusOf(await proxy.send(get(`http://${at}/`, at)))).toBe("HTTP/1.1 403 Forbidden");
  expect(web.requests).toEqual([`GET / ${at}`]);
});

test("a name without an address is no refusal", async () => {
  await using proxy = await openProxy(["gone.example"], { resolve: () => Promise.reject(new Error("ENOTFOUND")) });
  const answer = await proxy.send("CONNECT gone.example:443 HTTP/1.1\r\n\r\n");
  expect(answer).toMatch(/^HTTP\/1\.1 502 [^]*heddle: gone\.example has no address\n$/);
  expect(proxy.log.take().refused).toEqual([]);
});

test("a redirect to another host is one more request, and refused", async () => {
  await using other = await openWebServer();
  await using web = await openWebServer(() => ({
    status: 302,
    headers: { location: `http://127.0.0.1:${other.port}/` },
    text: "",
  }));
  await using proxy = await openProxy([`localhost:${web.port}`]);
  const first = await proxy.send(get(`http://localhost:${web.port}/`, `localhost:${web.port}`));
  const location = /location: (\S+)/i.exec(first)?.[1] ?? "";
  expect(statusOf(await proxy.send(get(location, `127.0.0.1:${other.port}`)))).toBe("HTTP/1.1 403 Forbidden");
  expect(other.requests).toEqual([]);
});

/** Requests whose target could be read in two ways, or in none. `@` stands for the listed host and port. */
const HOSTILE: readonly (readonly [string, string, string])[] = [
  ["another header Host", "GET http://@/ HTTP/1.1\r\nHost: evil.example\r\n\r\n", "403"],
  ["another port in the header Host", "GET http://@/ HTTP/1.1\r\nHost: localhost:1\r\n\r\n", "403"],
  ["two headers Host", "GET http://@/ HTTP/1.1\r\nHost: @\r\nHost: evil.example\r\n\r\n", "4"],
  ["a name before the host", "GET http://@@evil.example/ HTTP/1.1\r\nHost: @\r\n\r\n", "4"],
  ["a user before the host", "GET http://user:word@/ HTTP/1.1\r\nHost: @\r\n\r\n", "4"],
  ["a URL of another kind", "GET https://@/ HTTP/1.1\r\nHost: @\r\n\r\n", "4"],
  ["a file", "GET file:///etc/passwd HTTP/1.1\r\nHost: @\r\n\r\n", "4"],
  ["no URL", "GET / HTTP/1.1\r\nHost: @\r\n\r\n", "4"],
  ["the odd number of an address", "GET http://2130706433:1/ HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n", "403"],
  ["CONNECT without a port", "CONNECT localhost HTTP/1.1\r\n\r\n", "400"],
  ["CONNECT with a path", "CONNECT @/evil HTTP/1.1\r\n\r\n", "400"],
  ["CONNECT with a user", "CONNECT user@@ HTTP/1.1\r\n\r\n", "400"],
  ["CONNECT with a zone", "CONNECT [fe80::1%25lo]:443 HTTP/1.1\r\n\r\n", "400"],
  ["CONNECT to port 0", "CONNECT localhost:0 HTTP/1.1\r\n\r\n", "400"],
  ["CONNECT to port 65536", "CONNECT localhost:65536 HTTP/1.1\r\n\r\n", "400"],
  ["CONNECT to an address", "CONNECT 8.8.8.8:443 HTTP/1.1\r\n\r\n", "403"],
  ["CONNECT to an address in IPv6", "CONNECT [2001:4860:4860::8888]:443 HTTP/1.1\r\n\r\n", "403"],
  ["CONNECT to the wildcard", "CONNECT *.localhost:443 HTTP/1.1\r\n\r\n", "400"],
  [
    "both lengths",
    "POST http://@/ HTTP/1.1\r\nHost: @\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n",
    "400",
  ],
  ["TLS at once", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "400"],
  ["headers without end", `GET http://@/ HTTP/1.1\r\nX: ${"y".repeat(200_000)}\r\n`, "400"],
];

test.for(HOSTILE)("refuses %s", async ([, text, status]) => {
  await using web = await openWebServer();
  const at = `localhost:${web.port}`;
  await using proxy = await openProxy([at]);
  const sent = text.replaceAll("@@", "\0").replaceAll("@", at).replaceAll("\0", `${at}@`);
  expect(statusOf(await proxy.send(sent.replace("HTTP/1.1\r\n", "HTTP/1.1\r\nConnection: close\r\n")))).toMatch(
    new RegExp(`^HTTP/1\\.1 ${status}`),
  );
  expect(web.requests).toEqual([]);
  expect(proxy.log.take().refused.map(({ count }) => count)).toEqual([1]);
});

test("each request of one connection is judged by itself", async () => {
  await using web = await openWebServer();
  const at = `localhost:${web.port}`;
  await using proxy = await openProxy([at]);
  const socket = connect(proxy.port, "127.0.0.1");
  socket.setEncoding("latin1");
  socket.write(`GET http://${at}/one HTTP/1.1\r\nHost: ${at}\r\n\r\n`);
  let text = "";
  socket.on("data", (chunk: string) => {
    const isFirst = !text.includes("0\r\n\r\n");
    text += chunk;
    if (isFirst && text.endsWith("0\r\n\r\n")) socket.write(get("http://evil.example/two", "evil.example"));
  });
  await once(socket, "close");
  expect(text.match(/HTTP\/1\.1 \d+/g)).toEqual(["HTTP/1.1 200", "HTTP/1.1 403"]);
  expect(web.requests).toEqual([`GET /one ${at}`]);
});

test("requests that do not wait for an answer open no connections without bound", async () => {
  await using web = await openWebServer();
  const at = `localhost:${web.port}`;
  await using proxy = await openProxy([at]);
  const one = `GET http://${at}/ HTTP/1.1\r\nHost: ${at}\r\n\r\n`;
  expect(await proxy.send(one.repeat(3000))).toBe("");
  expect(await proxy.send(`${one}CONNECT ${at} HTTP/1.1\r\n\r\n`)).toBe("");
  expect(web.requests.length).toBeLessThanOrEqual(2);
  expect(proxy.log.take().refused).toEqual([{ host: "", port: 0, reason: "too-many", count: expect.any(Number) }]);
});

/** Answers of a hostile server, and how the one to the client begins; none leaves it waiting. */
const ANSWERS: readonly (readonly [string, string, string])[] = [
  ["no status", "NOPE\r\n\r\n", "HTTP/1.1 502"],
  ["a switch of protocols", "HTTP/1.1 101 X\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nzzz", "HTTP/1.1 502"],
  ["headers without end", `HTTP/1.1 200 OK\r\nX: ${"y".repeat(100_000)}\r\n\r\n`, "HTTP/1.1 502"],
  [
    "both lengths",
    "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "HTTP/1.1 502",
  ],
  [
    "many times to continue",
    `${"HTTP/1.1 100 X\r\n\r\n".repeat(1000)}HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi`,
    "HTTP/1.1 200",
  ],
  ["a body cut off", "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nhi", "HTTP/1.1 200"],
  ["nothing", "", "HTTP/1.1 502"],
];

test.for(ANSWERS)("a server that answers %s", async ([, text, begins]) => {
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.once("data", () => socket.end(text));
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const at = `localhost:${portOf(server)}`;
  await using proxy = await openProxy([at]);
  expect(await proxy.send(get(`http://${at}/`, at))).toMatch(new RegExp(`^${begins}`));
  server.close();
});

test("hosts beyond the bound are summed up in one row", async () => {
  await using proxy = await openProxy(["example.org"]);
  const names = Array.from({ length: MAX_ROWS + 20 }, (_, index) => `h${index}.example`);
  for (const name of names) await proxy.send(`CONNECT ${name}:443 HTTP/1.1\r\n\r\n`);
  const { refused } = proxy.log.take();
  expect(refused).toHaveLength(MAX_ROWS + 1);
  expect(refused.at(-1)).toEqual({ host: "*", port: 0, reason: "not-listed", count: 20 });
});

test("more connections than the bound are closed and counted", async () => {
  await using echo = await openEcho();
  await using proxy = await openProxy([`localhost:${echo.port}`], { bounds: { connections: 2 } });
  const held = [0, 1].map(() => connect(proxy.port, "127.0.0.1"));
  for (const socket of held) {
    socket.write(`CONNECT localhost:${echo.port} HTTP/1.1\r\n\r\n`);
    await once(socket, "data");
  }
  expect(await proxy.send(`CONNECT localhost:${echo.port} HTTP/1.1\r\n\r\n`)).toBe("");
  expect(proxy.log.take().refused).toEqual([{ host: "", port: 0, reason: "too-many", count: 1 }]);
  for (const socket of held) socket.destroy();
});

test("a client that sends its headers slowly, and a tunnel that stands still, are ended", async () => {
  await using echo = await openEcho();
  const at = `localhost:${echo.port}`;
  await using slow = await openProxy([at], { bounds: { headersMs: 50 } });
  expect(statusOf(await slow.send(`GET http://${at}/ HTTP/1.1\r\nX: `))).toBe("HTTP/1.1 400 Bad Request");
  await using idle = await openProxy([at], { bounds: { idleMs: 50 } });
  expect(await idle.send(`CONNECT ${at} HTTP/1.1\r\n\r\nhello`)).toBe(
    "HTTP/1.1 200 Connection established\r\n\r\nhello",
  );
});

test("a client that leaves ends the request to the server, and closing the proxy ends tunnels", async () => {
  await using echo = await openEcho();
  const proxy = await openProxy([`localhost:${echo.port}`]);
  const socket = connect(proxy.port, "127.0.0.1");
  socket.write(`CONNECT localhost:${echo.port} HTTP/1.1\r\n\r\n`);
  await once(socket, "data");
  socket.resume();
  const closed = once(socket, "close");
  await proxy[Symbol.asyncDispose]();
  await closed;
});

test("requests of Node's own client pass, and keep their connection", async () => {
  await using web = await openWebServer(() => ({ headers: { "set-cookie": "a=b" }, text: "x".repeat(300_000) }));
  const at = `localhost:${web.port}`;
  await using proxy = await openProxy([at]);
  const sent = request({ port: proxy.port, host: "127.0.0.1", path: `http://${at}/big`, headers: { host: at } }).end();
  const [response] = await once(sent, "response");
  let bytes = 0;
  for await (const chunk of response) bytes += chunk.length;
  expect({ bytes, cookie: response.headers["set-cookie"] }).toEqual({ bytes: 300_000, cookie: ["a=b"] });
});
