/**
 * Secrets stay where they are. The provider's key and tokens that a command prints are in no file of Heddle's home, cut
 * or whole, and no command finds the key in its environment or anywhere in /proc.
 */
import { randomBytes } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { startModelServer, type ModelServer } from "@heddle/models/testing";
import { describe, expect, test } from "vitest";
import { reopen } from "./checker.ts";
import { execArgs, openWorld, run, type Ran, type World } from "./world.ts";

const KEY = `key-${randomBytes(16).toString("hex")}`;
const TOKEN = `ghp_${randomBytes(18).toString("hex")}`;

describe("the provider's key", () => {
  test("does not reach a command: not its environment, not that of any process it can see", async () => {
    await using world = await openWorld();
    const look =
      "env; cat /proc/self/environ; for p in /proc/[0-9]*; do cat $p/environ $p/cmdline; done 2>/dev/null; true";
    await using server = await serverRunning([look]);
    const ran = await exec(world, server);
    expect(ran).toMatchObject({ code: 0 });
    expect(server.requests[0]?.headers.authorization).toBe(`Bearer ${KEY}`);
    const told = JSON.stringify(server.requests.at(-1)?.body);
    expect(told).toContain("PATH=");
    expect(told).not.toContain(KEY);
    expect(ran.stdout + ran.stderr).not.toContain(KEY);
    await expectNowhere(world, KEY);
  });

  test("is not stored when a command prints it, when the provider repeats it, or when the prompt holds it", async () => {
    await using world = await openWorld();
    await world.file("workspace/.env", `PROVIDER_KEY=${KEY}\n`);
    await using server = await serverRunning(["cat .env"], `the key is ${KEY}`);
    expect(await exec(world, server, `what is ${KEY}?`)).toMatchObject({ code: 0 });
    await using refusing = await startModelServer({
      faults: () => ({ kind: "status", status: 401, body: { error: { message: `bad key ${KEY}` } } }),
    });
    const refused = await exec(world, refusing);
    expect(refused).toMatchObject({ code: 3 });
    expect(refused.stdout + refused.stderr).not.toContain(KEY);
    await expectNowhere(world, KEY);
  });
});

describe("a token in the output of a command", () => {
  test.each([
    ["in one piece", `echo ${split(TOKEN)}`],
    ["in two pieces with a pause between them", `${halves(TOKEN)}`],
    [
      "in more output than memory keeps",
      `yes filler | head -c 40000; echo; echo ${split(TOKEN)}; yes filler | head -c 40000`,
    ],
    ["at the end of megabytes", `yes filler | head -c 3000000; echo; ${halves(TOKEN)}`],
  ])("%s is in no file of the home", async (_how, command) => {
    await using world = await openWorld();
    await using server = await serverRunning([command]);
    const ran = await exec(world, server);
    expect(ran).toMatchObject({ code: 0 });
    // The command did print it, and what was stored shows where.
    expect(await everythingIn(world)).toContain("[redacted:github-token]");
    await expectNowhere(world, TOKEN);
  });

  test("is in no file either when Heddle is killed while the command runs", async () => {
    await using world = await openWorld();
    await using server = await serverRunning([`${halves(TOKEN)}; sleep 1.2; echo more; sleep 600`]);
    const ran = await exec(world, server, "do it", { HEDDLE_FAILPOINT: "journal.append.after-commit@8=kill" });
    expect(ran.signal).toBe("SIGKILL");
    // What had been printed was kept by a checkpoint, so there was something to give away.
    expect(await everythingIn(world)).toMatch(/item\.checkpointed.*\[redacted:github-token\]/);
    await expectNowhere(world, TOKEN);
  });
});

/** Written so that the command line itself does not hold the token. */
function split(secret: string): string {
  return `${secret.slice(0, 20)}""${secret.slice(20)}`;
}

function halves(secret: string): string {
  return `printf ${secret.slice(0, 20)}; sleep 0.3; printf '%s\\n' ${secret.slice(20)}`;
}

function serverRunning(commands: readonly string[], text = "done"): Promise<ModelServer> {
  const steps = commands.map((cmd) => ({ calls: [{ tool: "exec_command", args: { cmd } }] }));
  return startModelServer({ script: [...steps, { text }] });
}

function exec(world: World, server: ModelServer, prompt = "do it", env: Record<string, string> = {}): Promise<Ran> {
  const table = `model_providers.test={base_url="${server.url}/v1",wire_api="responses",env_key="E2E_PROVIDER_KEY"}`;
  const args = execArgs("-c", "model_provider=test", "-c", table, "-m", "gpt-5.5").slice(0, -1);
  return run([...args, prompt], { world, env: { E2E_PROVIDER_KEY: KEY, ...env } });
}

async function expectNowhere(world: World, secret: string): Promise<void> {
  const holding: string[] = [];
  let looked = 0;
  for (const entry of await readdir(world.home, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const file = path.join(entry.parentPath, entry.name);
    const bytes = await readFile(file);
    looked += 1;
    if (bytes.includes(secret) || bytes.includes(Buffer.from(secret).toString("base64"))) {
      holding.push(path.relative(world.home, file));
    }
  }
  expect(looked).toBeGreaterThan(3);
  expect(holding).toEqual([]);
}

/** Stored events and whole outputs. */
async function everythingIn(world: World): Promise<string> {
  await using heddle = await reopen(world.home);
  const events = JSON.stringify(await heddle.journal.read({ after: 0 }));
  // Their folders are made with the first output that is too long for the record.
  const outputs = ["blobs", "outputs"].map((folder) => path.join(world.home, folder));
  const entries = await readdir(world.home, { recursive: true, withFileTypes: true });
  const files = entries
    .filter((entry) => entry.isFile() && outputs.some((folder) => entry.parentPath.startsWith(folder)))
    .map(({ parentPath, name }) => path.join(parentPath, name));
  return [events, ...(await Promise.all(files.map((file) => readFile(file, "utf8"))))].join("\n");
}
