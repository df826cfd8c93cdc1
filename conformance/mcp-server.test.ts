/**
 * The official conformance runner of MCP against `heddle serve` at `/mcp`: every scenario for servers that it has. The runner
 * shows no token, so a small proxy of this test adds it, and passes on everything else as it came.
 */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer, request, type IncomingHttpHeaders } from "node:http";
import path from "node:path";
import { promisify } from "node:util";
import { startModelServer } from "@heddle/models/testing";
import { describe, expect, test } from "vitest";
import { openFixture, type Fixture } from "./fixture.ts";
import { heddle } from "./program.ts";

const execute = promisify(execFile);
const RUNNER = path.join(
  import.meta.dirname,
  "node_modules",
  "@modelcontextprotocol",
  "conformance",
  "dist",
  "index.js",
);

const FIXTURE = "calls a tool that the runner expects of a test server; a product has none by that name";
const NO_RESOURCES = "Heddle serves no resources: what it records is asked for with tools, which are refused by role";
const NO_STREAM =
  "is about streams that outlive a request; Heddle has none at /mcp, and the runner then checks nothing";
const NO_PROMPTS = "Heddle serves no prompts";

/** Scenarios that do not apply, and why. */
const NOT_APPLICABLE: Readonly<Record<string, string>> = {
  "logging-set-level": "Heddle sends no log messages over MCP, and does not say that it does",
  "completion-complete": "Heddle completes no arguments, and does not say that it does",
  "tools-call-simple-text": FIXTURE,
  "tools-call-image": FIXTURE,
  "tools-call-audio": FIXTURE,
  "tools-call-embedded-resource": FIXTURE,
  "tools-call-mixed-content": FIXTURE,
  "tools-call-with-logging": FIXTURE,
  "tools-call-error": FIXTURE,
  "tools-call-with-progress": FIXTURE,
  "tools-call-sampling": FIXTURE,
  "tools-call-elicitation": FIXTURE,
  "json-schema-2020-12": FIXTURE,
  "elicitation-sep1034-defaults": FIXTURE,
  "elicitation-sep1330-enums": FIXTURE,
  "server-sse-polling": NO_STREAM,
  "server-sse-multiple-streams": NO_STREAM,
  "resources-list": NO_RESOURCES,
  "resources-read-text": NO_RESOURCES,
  "resources-read-binary": NO_RESOURCES,
  "resources-templates-read": NO_RESOURCES,
  "resources-subscribe": NO_RESOURCES,
  "resources-unsubscribe": NO_RESOURCES,
  "prompts-list": NO_PROMPTS,
  "prompts-get-simple": NO_PROMPTS,
  "prompts-get-with-args": NO_PROMPTS,
  "prompts-get-embedded-resource": NO_PROMPTS,
  "prompts-get-with-image": NO_PROMPTS,
};

interface Proxy extends AsyncDisposable {
  readonly url: string;
}

/** A page that calls the proxy by its own name calls the server by its own; any other name stays what it is. */
async function startProxy(target: URL, token: string): Promise<Proxy> {
  let own = "";
  const renamed = (text: string | undefined): string | undefined =>
    text?.replaceAll(new RegExp(`\\b(localhost|127\\.0\\.0\\.1):${own}\\b`, "g"), `$1:${target.port}`);
  const server = createServer((incoming, outgoing) => {
    const { host, origin, ...rest } = incoming.headers;
    const headers: IncomingHttpHeaders = { ...rest, host: renamed(host), authorization: `Bearer ${token}` };
    if (origin !== undefined) headers.origin = renamed(origin);
    const { method, url: where = "/" } = incoming;
    const sent = request({ host: target.hostname, port: target.port, method, path: where, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    });
    sent.on("error", () => outgoing.destroy());
    outgoing.on("close", () => sent.destroy());
    incoming.pipe(sent);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", () => resolve()));
  const address = server.address();
  own = String(typeof address === "object" && address !== null ? address.port : 0);
  return {
    url: `http://localhost:${own}/mcp`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

interface Served extends AsyncDisposable {
  readonly url: URL;
  readonly token: string;
}

async function startServe({ workspace, env }: Fixture): Promise<Served> {
  const child = spawn(process.execPath, [heddle.file, "serve", "--listen", "http://127.0.0.1:0"], {
    cwd: workspace,
    env,
    stdio: ["ignore", "pipe", "ignore"],
  });
  const ended = once(child, "exit");
  let said = "";
  const opened = new Promise<void>((resolve) => {
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      said += text;
      if (said.includes("token    ")) resolve();
    });
  });
  await Promise.race([opened, ended]);
  const [, url = ""] = /serving +(http\S+)/.exec(said) ?? [];
  const token = (await readFile(path.join(env["HEDDLE_HOME"] ?? "", "serve.token"), "utf8")).trim();
  return {
    url: new URL(url),
    token,
    async [Symbol.asyncDispose]() {
      child.kill("SIGTERM");
      await ended;
    },
  };
}

/** As the runner lists those for servers. */
async function scenarios(): Promise<readonly string[]> {
  const { stdout } = await execute(process.execPath, [RUNNER, "list"]);
  const [, ofServers = ""] = /Server scenarios[^\n]*\n((?: +- [^\n]*\n)*)/.exec(stdout) ?? [];
  return [...ofServers.matchAll(/- (\S+)/g)].map(([, name = ""]) => name);
}

interface Outcome {
  readonly name: string;
  readonly isPassed: boolean;
  readonly said: string;
}

async function play(name: string, url: string): Promise<Outcome> {
  const args = [RUNNER, "server", "--url", url, "--scenario", name];
  return execute(process.execPath, args, { timeout: 50_000 }).then(
    // Without a single check it is no pass.
    ({ stdout }) => ({ name, isPassed: /Passed: ([1-9]\d*)\/\1, 0 failed/.test(stdout), said: stdout }),
    (error: unknown) => ({ name, isPassed: false, said: String(Reflect.get(Object(error), "stdout")) }),
  );
}

describe("@modelcontextprotocol/conformance over Heddle", () => {
  test("every scenario of the official runner passes, or is listed with its reason", async () => {
    await using model = await startModelServer({ script: [] });
    await using fixture = await openFixture(heddle, model.url);
    await using served = await startServe(fixture);
    await using proxy = await startProxy(served.url, served.token);
    const names = await scenarios();
    expect(names.length).toBeGreaterThan(30);
    const outcomes: Outcome[] = [];
    for (const name of names) outcomes.push(await play(name, proxy.url));
    const failed = outcomes.filter(({ isPassed }) => !isPassed);
    const unlisted = failed.filter(({ name }) => NOT_APPLICABLE[name] === undefined);
    expect(unlisted).toEqual([]);
    // A reason that no longer holds is removed.
    expect(failed.map(({ name }) => name).toSorted()).toEqual(Object.keys(NOT_APPLICABLE).toSorted());
    const passed = outcomes.filter(({ isPassed }) => isPassed).map(({ name }) => name);
    expect(passed).toEqual(
      expect.arrayContaining(["server-initialize", "ping", "tools-list", "dns-rebinding-protection"]),
    );
  }, 300_000);

  test("the version that is pinned here is the one that is played", async () => {
    const own = JSON.parse(await readFile(path.join(import.meta.dirname, "package.json"), "utf8"));
    const { stdout } = await execute(process.execPath, [RUNNER, "--version"]);
    expect(stdout.trim()).toBe(own.dependencies["@modelcontextprotocol/conformance"]);
  });
});
