import { chmod, mkdtemp, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { openAccounts } from "./accounts.ts";
import type { CommandAuth } from "../providers/provider-auth.ts";
import { resolveProvider, type Provider } from "../providers/providers.ts";
import { startModelServer } from "../testing/testing.ts";
import { collect, completedOf } from "../testing/testing-requests.ts";
import { CANARY, testJwt } from "./testing.ts";

interface Fixture extends AsyncDisposable {
  readonly root: string;
  /** A provider whose token a program with this body prints. */
  provider(body: string, more?: Partial<CommandAuth>): Promise<Provider>;
  runs(): Promise<number>;
}

async function openFixture(url = "http://127.0.0.1:1"): Promise<Fixture> {
  const root = await realpath(await mkdtemp(path.join(tmpdir(), "heddle-command-")));
  const log = path.join(root, "runs");
  return {
    root,
    async provider(body, more = {}) {
      const program = path.join(root, "token");
      await writeFile(program, `#!/bin/sh\necho run >> '${log}'\n${body}\n`);
      await chmod(program, 0o755);
      const auth: CommandAuth = { type: "command", command: [program, "a b", "$(id)"], ...more };
      const env = { HOME: root, PATH: process.env["PATH"] ?? "", OTHER_SECRET: "x", LISTED: "seen" };
      const config = { id: "gateway", wire: "openai-chat", baseUrl: `${url}/v1`, auth, retryBaseMs: 1 } as const;
      await using accounts = openAccounts({ home: path.join(root, "home"), env, configs: [config] });
      return resolveProvider([await accounts.provide("gateway")], "gateway", env);
    },
    runs: async () => (await readFile(log, "utf8").catch(() => "")).split("\n").length - 1,
    [Symbol.asyncDispose]: () => rm(root, { recursive: true, force: true }),
  };
}

const SCRIPT = [{ text: "hello" }];

describe("12.19: a token that a command prints", () => {
  test("is sent, kept until it ends, and asked for once by any number; the command sees no shell and few variables", async () => {
    await using server = await startModelServer({ script: SCRIPT });
    await using fixture = await openFixture(server.url);
    const seen = path.join(fixture.root, "seen");
    const body = `printf '%s|%s|%s|%s' "$1" "$2" "$OTHER_SECRET" "$LISTED" > '${seen}'; pwd >> '${seen}'; echo token-${CANARY}`;
    const provider = await fixture.provider(body, { envVars: ["LISTED"] });
    const received: string[] = [];
    provider.credential?.onSecrets?.((secrets) => received.push(...secrets));
    await Promise.all([1, 2, 3].map(async () => completedOf(await collect(provider))));
    completedOf(await collect(provider));
    expect(new Set(server.requests.map(({ headers }) => headers.authorization))).toEqual(
      new Set([`Bearer token-${CANARY}`]),
    );
    expect(await fixture.runs()).toBe(1);
    expect(await readFile(seen, "utf8")).toBe(`a b|$(id)||seen${fixture.root}\n`);
    expect(received).toEqual([`token-${CANARY}`]);
  });

  test.each([
    ["JSON with its end", `echo '{"accessToken":"t-1","expires_on":"1","tokenType":"Bearer"}'`, 2],
    ["JSON with its length", `echo '{"access_token":"t-1","expires_in":3600}'`, 1],
    ["a JWT that has ended", `echo ${testJwt({ exp: 1 })}`, 2],
    ["a word that says nothing of itself", `echo t-1`, 1],
  ])("as %s is asked for again when it has ended", async (_what, body, runs) => {
    await using server = await startModelServer({ script: SCRIPT });
    await using fixture = await openFixture(server.url);
    const provider = await fixture.provider(body);
    for (const _turn of [1, 2]) completedOf(await collect(provider));
    expect(await fixture.runs()).toBe(runs);
  });

  test("that is a key goes into a header of its own, and is asked for again when it is refused there", async () => {
    await using server = await startModelServer({
      script: SCRIPT,
      faults: ({ headers }) => (headers["x-api-key"] === "t-2" ? undefined : { kind: "status", status: 401 }),
    });
    await using fixture = await openFixture(server.url);
    const counting = `wc -l < '${path.join(fixture.root, "runs")}' | tr -d ' ' | sed 's/^/t-/'`;
    completedOf(await collect(await fixture.provider(counting, { header: "X-Api-Key" })));
    expect(server.requests.map(({ headers }) => [headers["x-api-key"], headers.authorization])).toEqual([
      ["t-1", undefined],
      ["t-2", undefined],
    ]);
  });

  test("is asked for once more when it is refused, and not a third time", async () => {
    await using server = await startModelServer({
      script: SCRIPT,
      faults: ({ headers }) => (headers.authorization === "Bearer t-2" ? undefined : { kind: "status", status: 401 }),
    });
    await using fixture = await openFixture(server.url);
    const counting = `wc -l < '${path.join(fixture.root, "runs")}' | tr -d ' ' | sed 's/^/t-/'`;
    completedOf(await collect(await fixture.provider(counting)));
    expect(await fixture.runs()).toBe(2);
    const stubborn = await fixture.provider("echo always");
    expect((await collect(stubborn)).error).toMatchObject({ code: "auth.rejected" });
    expect(await fixture.runs()).toBe(4);
  });

  test.each([
    ["a second line", `printf 'tok-${CANARY}\\nx-evil: 1\\n'`],
    ["a carriage return", `printf 'tok-${CANARY}\\r\\nx-evil: 1'`],
    ["control characters", `printf 'tok-${CANARY}\\033[31m'`],
    ["letters that no header has", `printf 'tök-${CANARY}'`],
    ["a megabyte", `head -c 1048576 /dev/zero | tr '\\0' a; echo ${CANARY}`],
    ["nothing", `true`],
    ["two words", `echo tok ${CANARY}`],
    ["broken JSON", `echo '{"accessToken": "${CANARY}'`],
    ["JSON with a line end inside the token", `printf '{"accessToken":"a\\\\r\\\\n${CANARY}"}'`],
    ["a failure", `echo ${CANARY}; echo ${CANARY} >&2; exit 3`],
  ])("that is %s is refused, told to nobody and sent nowhere", async (_what, body) => {
    await using server = await startModelServer({ script: SCRIPT });
    await using fixture = await openFixture(server.url);
    const { error, events } = await collect(await fixture.provider(body));
    expect(error).toMatchObject({
      code: "auth.missing",
      message: expect.stringContaining("the command of model_providers.gateway.auth"),
    });
    expect(JSON.stringify([error?.message, error?.details, events])).not.toContain(CANARY);
    expect(server.requests).toHaveLength(0);
  });

  test("that never comes is given up in time, with everything it started", async () => {
    await using fixture = await openFixture();
    const pids = path.join(fixture.root, "pids");
    const provider = await fixture.provider(`sleep 300 & echo $$ $! > '${pids}'; wait`, { timeoutMs: 300 });
    const { error } = await collect(provider);
    expect(error).toMatchObject({ code: "auth.missing", message: expect.stringContaining("within 300 ms") });
    for (const pid of (await readFile(pids, "utf8")).trim().split(" ")) await gone(Number(pid));
  });

  test("is not waited for by a turn that was interrupted, and its program ends with the last that waits", async () => {
    await using fixture = await openFixture();
    const pids = path.join(fixture.root, "pids");
    const provider = await fixture.provider(`echo $$ > '${pids}.new'; mv '${pids}.new' '${pids}'; exec sleep 300`);
    const control = new AbortController();
    const asked = collect(provider, undefined, { signal: control.signal });
    let pid = 0;
    await expect
      .poll(async () => (pid = Number(await readFile(pids, "utf8").catch(() => "0"))), { timeout: 10_000 })
      .toBeGreaterThan(0);
    control.abort();
    expect((await asked).error).toMatchObject({ code: "turn.interrupted" });
    await gone(pid);
  });

  test("of a program that is not there, or is named by where a run begins, is refused", async () => {
    await using fixture = await openFixture();
    const missing = await fixture.provider("", { command: ["heddle-no-such-program"] });
    expect((await collect(missing)).error?.message).toMatch(/names heddle-no-such-program, which cannot be started/);
    const relative = await fixture.provider("", { command: ["./token"] });
    expect((await collect(relative)).error).toMatchObject({ code: "config.invalid" });
  });
});

/** It is no process any more, or one that only waits to be counted. */
async function gone(pid: number): Promise<void> {
  const state = async (): Promise<string> => {
    const text = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
    return text === "" ? "gone" : (/\) (\w)/.exec(text)?.[1] ?? "?");
  };
  await expect.poll(state, { timeout: 10_000 }).toMatch(/^(gone|Z)$/);
}
