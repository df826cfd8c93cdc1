/** Contests of played agent programs over HTTP, through the whole program; one of them lies, and the server is killed. */
import { chmod, readFile } from "node:fs/promises";
import path from "node:path";
import { expect, inject, test } from "vitest";
import { openWorld, run, type World } from "../../test/heddle-process.ts";
import { openMcpHttp } from "../../test/mcp-client.ts";
import { startServe, type Called, type Served } from "../../test/serve-client.ts";

const CLAIM = { says: "It is done.\nTASK COMPLETE" };

/** Programs by runner, each with what it does in every turn. */
async function withPrograms(world: World, programs: Readonly<Record<string, readonly object[]>>): Promise<void> {
  const program = await world.file("program/bin/agent", `#!/bin/sh\nexec '${process.execPath}' "$@"\n`);
  await chmod(program, 0o755);
  const tables = Object.entries(programs).map(([name, steps]) => {
    const protocol = name === "codex" ? "codex" : "claude";
    const args = [path.join(inject("children"), "agent-play-in-child.mjs"), protocol, JSON.stringify(steps)];
    return `[runners.${name}]\nprotocol = "${protocol}"\ncommand = "${program}"\nargs = ${JSON.stringify(args)}\nhosts = []\nfolders = []\n`;
  });
  await world.file("home/config.toml", tables.join(""));
}

const SPEC = {
  name: "make",
  goal: "make done.txt",
  checks: [{ "file-exists": "done.txt" }],
  max_nudges: 0,
};

interface Row {
  readonly name: string;
  readonly taskId: string;
  readonly state: string;
  readonly isVerified: boolean;
  readonly isPicked: boolean;
  readonly turns: number;
  readonly tokens: number;
}

const rowsOf = ({ json }: Called): readonly Row[] => (json["contest"] as { rows?: readonly Row[] })?.rows ?? [];

async function contestantsOf(served: Served, id: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const { json } = await served.call("GET", `/api/tasks?parentId=${id}`);
  return json["data"] as readonly Readonly<Record<string, unknown>>[];
}

test("a contest over HTTP: made, followed, shown, its contestants listed; Codex lies and Claude Code is picked", async () => {
  await using world = await openWorld();
  await withPrograms(world, { codex: [CLAIM], claude: [{ runs: "echo made > done.txt" }, CLAIM] });
  await using served = await startServe(world);
  const spec = { ...SPEC, workspace: world.workspace, agents: ["codex", "claude"], pick: "best" };
  const made = await served.call("POST", "/api/tasks", { spec });
  expect(made.status, JSON.stringify(made.json)).toBe(201);
  const id = String(made.json["id"]);
  await served.events(`tasks/${id}`, ({ body }) => body.type === "task.verified");
  const shown = await served.call("GET", `/api/tasks/${id}`);
  expect(shown.json).toMatchObject({ state: "verified", contest: { generation: 1, picked: { number: 2 } } });
  expect(rowsOf(shown).map(({ name, isVerified, isPicked }) => [name, isVerified, isPicked])).toEqual([
    ["codex", false, false],
    ["claude", true, true],
  ]);
  expect((await contestantsOf(served, id)).map(({ contestant }) => contestant).toReversed()).toEqual([1, 2]);
  expect(await readFile(path.join(world.workspace, "done.txt"), "utf8")).toBe("made\n");
  const none = await served.call("POST", "/api/tasks", { spec: { ...spec, agents: ["codex"] } });
  expect(none).toMatchObject({ status: 400, json: { error: { code: "task.invalid" } } });
});

test("first-verified, killed with its worker: each contestant once, the loser cancelled with what it took on record", async () => {
  await using world = await openWorld();
  const wait = `until [ -e '${world.root}/go' ]; do sleep 0.1; done`;
  await withPrograms(world, {
    codex: [CLAIM],
    claude: [{ says: "I wait." }, { runs: `${wait}; sleep 600` }],
    quick: [{ runs: `${wait}; echo made > done.txt` }, CLAIM],
  });
  const spec = { ...SPEC, workspace: world.workspace, agents: ["codex", "claude", "quick"] };
  let id = "";
  {
    await using first = await startServe(world);
    const made = await first.call("POST", "/api/tasks", { spec });
    expect(made.status, JSON.stringify(made.json)).toBe(201);
    id = String(made.json["id"]);
    await expect.poll(async () => (await contestantsOf(first, id)).length, { timeout: 30_000 }).toBe(3);
    const slow = (await contestantsOf(first, id)).find(({ contestant }) => contestant === 2);
    await first.events(`tasks/${String(slow?.["id"])}`, ({ body }) => body.type === "task.prompted");
    first.running.child.kill("SIGKILL");
    await first.running.ended;
  }
  await world.file("go", "");
  await using second = await startServe(world);
  await second.events(`tasks/${id}`, ({ body }) => body.type === "task.verified");
  const rows = rowsOf(await second.call("GET", `/api/tasks/${id}`));
  expect(rows.map(({ name, state, isVerified, isPicked }) => [name, state, isVerified, isPicked])).toEqual([
    ["codex", "cancelled", false, false],
    ["claude", "cancelled", false, false],
    ["quick", "verified", true, true],
  ]);
  // What a loser took is on record.
  expect(rows[1]?.tokens).toBeGreaterThan(0);
  for (const { turns, taskId } of rows) {
    expect(turns).toBeGreaterThan(0);
    const log = await run(["task", "log", taskId, "--json"], { world });
    const bodies = log.stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line).body);
    expect(bodies.filter(({ type }) => type === "task.created")).toHaveLength(1);
    expect(bodies.filter(({ type, why }) => type === "task.prompted" && why === "first")).toHaveLength(1);
  }
});

test("a task or contest whose runner, provider or model does not exist is refused at every door before it is stored", async () => {
  await using world = await openWorld();
  await using served = await startServe(world);
  const wrong = [
    { of: { runner: "cluade" }, code: "runner.unknown", says: 'there is no runner "cluade"; did you mean "claude"?' },
    { of: { agents: ["codex", "cluade"] }, code: "runner.unknown", says: "cluade" },
    { of: { provider: "opnai" }, code: "provider.unknown", says: 'there is no provider "opnai"' },
    {
      of: { agents: ["codex", { runner: "embedded", provider: "opnai", model: "m" }] },
      code: "provider.unknown",
      says: "opnai",
    },
  ];
  await using mcp = await openMcpHttp(served);
  for (const { of, code, says } of wrong) {
    const spec = { ...SPEC, ...of, workspace: world.workspace };
    const refused = { status: 400, json: { error: { code, message: expect.stringContaining(says) } } };
    expect(await served.call("POST", "/api/tasks", { spec })).toMatchObject(refused);
    expect(await served.call("POST", "/api/inbox", { text: JSON.stringify(spec), format: "json" })).toMatchObject(
      refused,
    );
    const [key = ""] = code.split(".");
    expect((await served.call("POST", "/api/tasks/lint", { spec })).json).toMatchObject({
      isValid: false,
      problems: [{ key, message: expect.stringContaining(says) }],
    });
    expect(await mcp.refused("task_add", { spec })).toEqual({ code, message: expect.stringContaining(says) });
    await world.file("workspace/t.json", JSON.stringify(spec));
    const added = await run(["task", "add", "t.json"], { world });
    expect(added).toMatchObject({ code: 2, stderr: expect.stringContaining(says) });
  }
  expect((await served.call("GET", "/api/tasks")).json).toMatchObject({ data: [] });
});
