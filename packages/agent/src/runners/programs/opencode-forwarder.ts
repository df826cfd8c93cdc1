/**
 * The wire of a server of OpenCode. The server listens inside the sandbox of its turn, which nothing outside can reach, so a
 * small program goes in with it: it starts the server, and turns JSON lines into requests and its events into lines. A server
 * that runs already is reached by the same program, without a sandbox.
 *
 *   {"id":1,"method":"POST","path":"/session","body":{…}} ─▶ {"id":1,"status":200,"body":{…}}, or {"id":1,"problem":"…"}
 *   {"atEnd":"/session/ses_1/abort"}                      ─▶ posted to a server that outlives the turn, before it ends
 *                                                            {"ready":"1.18.33"} once events come, then {"event":{…}}
 *                                                            {"live":1} while that many connections come over its socket
 */
export interface ReachedServer {
  readonly url: string;
  readonly user: string;
  /** The variable with its password. */
  readonly passwordName: string | undefined;
}

/** With this Node: it is in every sandbox. */
export function forwarderCommand(
  directory: string,
  target: { readonly command: readonly string[] } | { readonly server: ReachedServer },
  socket?: string,
): readonly string[] {
  const isOwn = "command" in target;
  const setting = JSON.stringify({ directory, socket, ...(isOwn ? { passwordName: PASSWORD } : target.server) });
  return [process.execPath, "-e", FORWARDER, "--", setting, ...(isOwn ? target.command : [])];
}

/** As a server of OpenCode reads it. */
export const PASSWORD = "OPENCODE_SERVER_PASSWORD";

const FORWARDER = `
const { spawn } = require("node:child_process");
const net = require("node:net");
const [, setting, file, ...args] = process.argv;
const { directory, url, user = "opencode", passwordName, socket } = JSON.parse(setting);
const password = process.env[passwordName] ?? "";
const authorization = "Basic " + Buffer.from(user + ":" + password).toString("base64");
const REQUEST_MS = 60000, START_MS = 55000, LEAVE_MS = 1000, GRACE_MS = 300, POLL_MS = 50;
let base = url, server, atEnd, isLeaving = false;

const say = (message) => process.stdout.write(JSON.stringify(message) + "\\n");
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
// Who loses a connection learns of the end of the server a moment later; its end says why.
const ended = (ms) => server === undefined ? undefined : Promise.race([new Promise((resolve) => server.once("close", resolve)), pause(ms)]);
const why = (error) => error.code || error.message || "no reason";

function open(method, path, body, onAnswer) {
  const target = new URL(base.replace(/\\/+$/, "") + path);
  target.searchParams.set("directory", directory);
  const http = require(target.protocol === "https:" ? "node:https" : "node:http");
  const text = body === undefined ? undefined : JSON.stringify(body);
  const headers = { authorization, ...(text === undefined ? {} : { "content-type": "application/json", "content-length": Buffer.byteLength(text) }) };
  // An agent of its own obeys no proxy: the server is here.
  const request = http.request(target, { method, headers, agent: new http.Agent() }, onAnswer);
  request.end(text);
  return request;
}

function ask(method, path, body, ms = REQUEST_MS) {
  return new Promise((resolve, reject) => {
    const request = open(method, path, body, (answer) => {
      const chunks = [];
      answer.on("data", (chunk) => chunks.push(chunk));
      answer.on("error", reject);
      answer.on("end", () => {
        const text = Buffer.concat(chunks).toString();
        let value;
        try { value = JSON.parse(text); } catch { value = text; }
        resolve({ status: answer.statusCode, body: value });
      });
    });
    request.setTimeout(ms, () => request.destroy(new Error("no answer within " + ms + " ms")));
    request.on("error", reject);
  });
}

async function leave(code, text) {
  if (isLeaving) return;
  isLeaving = true;
  if (text !== undefined) process.stderr.write(text + "\\n");
  if (atEnd !== undefined && file === undefined) await ask("POST", atEnd, {}, LEAVE_MS).catch(() => undefined);
  if (server !== undefined && server.exitCode === null && server.signalCode === null) {
    const gone = new Promise((resolve) => server.once("exit", resolve));
    server.kill("SIGTERM");
    await Promise.race([gone, pause(LEAVE_MS)]);
    server.kill("SIGKILL");
  }
  process.exit(code);
}

function follow(version) {
  const request = open("GET", "/event", undefined, (answer) => {
    if (answer.statusCode !== 200) return leave(1, "its events were answered with " + answer.statusCode);
    let rest = "";
    let isReady = false;
    answer.setEncoding("utf8");
    answer.on("data", (chunk) => {
      const lines = (rest + chunk).split("\\n");
      rest = lines.pop();
      if (!isReady) { isReady = true; openDoor(); say({ ready: version }); }
      for (const line of lines) {
        if (!line.startsWith("data:")) continue;
        const data = line.slice(5).trim();
        if (process.stdout.write('{"event":' + data + "}\\n")) continue;
        answer.pause();
        process.stdout.once("drain", () => answer.resume());
      }
    });
    answer.on("close", async () => {
      await ended(GRACE_MS);
      await leave(1, "its stream of events has ended");
    });
  });
  request.on("error", (error) => leave(1, "its events cannot be read: " + why(error)));
}

// For a person who joins from outside: bytes go to the server as they come. A connection that says nothing is their presence.
function openDoor() {
  if (socket === undefined) return;
  const { hostname, port, protocol } = new URL(base);
  const reach = () => protocol === "https:" ? require("node:tls").connect({ host: hostname, port: port || 443, servername: hostname }) : net.connect(port || 80, hostname);
  let live = 0;
  const door = net.createServer((one) => {
    let isOver = false, to;
    const over = () => {
      one.destroy();
      to?.destroy();
      if (!isOver) say({ live: live -= 1 });
      isOver = true;
    };
    say({ live: live += 1 });
    one.on("error", over).on("close", over).once("readable", () => {
      to = reach().on("error", over).on("close", over);
      one.pipe(to).pipe(one);
    });
  });
  door.on("error", (error) => process.stderr.write("nobody can join: " + why(error) + "\\n"));
  process.umask(0o077);
  door.listen(socket);
}

const freePort = () => new Promise((resolve, reject) => {
  const probe = net.createServer().once("error", reject);
  probe.listen(0, "127.0.0.1", () => { const { port } = probe.address(); probe.close(() => resolve(port)); });
});

async function start() {
  if (file !== undefined) {
    const port = await freePort();
    base = "http://127.0.0.1:" + port;
    server = spawn(file, [...args, "--port", String(port), "--hostname", "127.0.0.1"], {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, OPENCODE_SERVER_USERNAME: user },
    });
    server.stdout.pipe(process.stderr);
    server.stderr.pipe(process.stderr);
    server.on("error", (error) => leave(1, "the server cannot be started: " + why(error)));
    server.on("close", (code, signal) => leave(code || 1, "the server has ended: " + (signal || "code " + code)));
  }
  const until = Date.now() + START_MS;
  for (;;) {
    const health = await ask("GET", "/global/health", undefined, 5000).catch((error) => error);
    if (health.status === 200) return follow(String(health.body.version));
    const problem = health.status === undefined ? why(health) : "status " + health.status;
    if (file === undefined || health.status === 401 || Date.now() > until)
      return leave(1, "the server at " + base + " cannot be used: " + problem);
    await pause(POLL_MS);
  }
}

require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, path, body, atEnd: last } = JSON.parse(line);
  if (last !== undefined) { atEnd = last; return; }
  ask(method, path, body).then((answer) => say({ id, ...answer }), async (error) => {
    await ended(GRACE_MS);
    if (!isLeaving) say({ id, problem: why(error) });
  });
}).on("close", () => leave(0));
process.on("SIGTERM", () => leave(143));
process.on("SIGINT", () => leave(130));
start().catch((error) => leave(1, why(error)));
`;
