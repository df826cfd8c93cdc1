import { access, readFile, rm } from "node:fs/promises";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { openWorld, run, type World } from "../../test/heddle-process.ts";

async function runOnce(world: World): Promise<string> {
  const script = await world.file("script.json", JSON.stringify([{ text: "It is done." }]));
  const ran = await run(["exec", "--json", "--script", script, "say it"], { world });
  expect(ran.code).toBe(0);
  const first: { readonly thread_id: string } = JSON.parse(ran.stdout.split("\n")[0] ?? "");
  return first.thread_id;
}

test("threads list and show tell what was recorded, readable and raw", async () => {
  await using world = await openWorld();
  const id = await runOnce(world);
  const list = await run(["threads", "list"], { world });
  expect(list).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(new RegExp(`^${id}  .* 1 turn +say it\n$`)),
  });
  // 14: in another folder the list leads to them.
  const elsewhere = await run(["threads", "list"], { world, cwd: world.root });
  const lines = elsewhere.stdout.split("\n");
  expect(lines[0]).toBe(`no threads in ${world.root}; the latest of other folders:`);
  expect(lines[1]).toMatch(new RegExp(`^${id}  .* 1 turn +${world.workspace} +say it$`));
  expect(lines[2]).toContain("heddle threads list --all");
  const show = await run(["threads", "show", id.slice(0, 20)], { world });
  for (const text of ["thread.created", "turn.admitted", "say it", "It is done.", "turn.completed"]) {
    expect(show.stdout).toContain(text);
  }
  const raw = await run(["threads", "show", id, "--json"], { world });
  const events = raw.stdout
    .trimEnd()
    .split("\n")
    .map((line): { version: number; stream: string; body: { type: string } } => JSON.parse(line));
  expect(events.map(({ version }) => version)).toEqual(events.map((_, index) => index + 1));
  expect(events.every(({ stream }) => stream === id)).toBe(true);
  expect(events.at(-1)?.body.type).toBe("turn.completed");
});

test("an empty home has no threads, and looking does not make one", async () => {
  await using world = await openWorld();
  expect(await run(["threads", "list"], { world })).toMatchObject({
    code: 0,
    stdout: expect.stringContaining("no threads yet"),
  });
  expect(await run(["threads", "show", "01a1"], { world })).toMatchObject({
    code: 2,
    stderr: `heddle: there is no thread 01a1: ${world.home} has no record\n`,
  });
  await expect(access(world.home)).rejects.toThrow("ENOENT");
});

test("verify says clean with what it examined, for all and for one thread", async () => {
  await using world = await openWorld();
  const id = await runOnce(world);
  const all = await run(["verify"], { world });
  expect(all).toMatchObject({ code: 0, stdout: expect.stringMatching(/^clean: [1-9]\d* events in 1 stream, [1-9]/) });
  const one = await run(["verify", id, "--json"], { world });
  expect(one.code).toBe(0);
  expect(JSON.parse(one.stdout)).toMatchObject({ result: "clean", report: { streams: 1, damage: [] }, violations: [] });
});

test("14: Verify: file_corrupt: an export is verified by its file or from standard input, without a home; a changed one is not", async () => {
  await using world = await openWorld();
  const id = await runOnce(world);
  const file = `${world.workspace}/thread.jsonl`;
  expect(await run(["threads", "export", id.slice(0, 8), "-o", file], { world })).toMatchObject({ code: 0 });
  await using elsewhere = await openWorld();
  const good = await run(["verify", file, "--json"], { world: elsewhere });
  expect(good.code).toBe(0);
  const { report } = JSON.parse(good.stdout);
  expect(report).toMatchObject({ thread: id, damage: [], keyId: expect.stringMatching(/./) });
  const plain = await run(["verify", file, "--key", report.keyId], { world: elsewhere });
  expect(plain).toMatchObject({ code: 0, stdout: expect.stringContaining(`signed by key ${report.keyId}`) });
  expect(await run(["verify", file, "--key", "another"], { world: elsewhere })).toMatchObject({ code: 2 });
  const text = await readFile(file, "utf8");
  expect(await run(["verify", "-"], { world: elsewhere, stdin: text })).toMatchObject({ code: 0 });
  const changed = text.replace("item.completed", "item.complete_");
  expect(await run(["verify", "-"], { world: elsewhere, stdin: changed })).toMatchObject({
    code: 2,
    stdout: expect.stringMatching(/^tampered: /),
  });
  expect(await run(["verify", "-"], { world: elsewhere, stdin: "hello\n" })).toMatchObject({
    code: 3,
    stdout:
      "cannot verify: this is not a bundle of heddle evidence export or heddle threads export\n" +
      '  file_corrupt: line 1 is not a line of an export: it is not JSON (column 1: expected a value, found "h")\n' +
      "  head_mismatch: lines of the export are missing, or its end is\n",
  });
});

test("Verify: wrong arguments are exit code 64, which is no verdict", async () => {
  await using world = await openWorld();
  const wrong = [["--key", "x"], ["--level", "7"], ["--no-such-option"], ["a", "b"], ["a", "--all"]];
  for (const args of wrong)
    expect(await run(["verify", ...args], { world }), args.join(" ")).toMatchObject({
      code: 64,
      stdout: "",
      stderr: expect.stringMatching(/^heddle: ./),
    });
  expect(await run(["threads", "--no-such-option"], { world })).toMatchObject({ code: 2 });
});

test("14: verify takes a short id like every other command, and one that fits two threads lists them", async () => {
  await using world = await openWorld();
  const id = await runOnce(world);
  expect(await run(["verify", id.slice(0, 8)], { world })).toMatchObject({ code: 0 });
  await run(["threads", "name", id, "twice"], { world });
  await run(["threads", "name", await runOnce(world), "twice"], { world });
  const listed = /: twice fits more than one thread; name one by its id:\n\| +[0-9a-f-]{36} .*\n\| +[0-9a-f-]{36} /;
  expect((await run(["threads", "show", "twice"], { world })).stderr).toMatch(listed);
  expect((await run(["verify", "twice"], { world })).stdout).toMatch(listed);
});

test("nothing examined is no proof: no record, or no such thread, is exit code 3", async () => {
  await using world = await openWorld();
  expect(await run(["verify"], { world })).toMatchObject({
    code: 3,
    stdout: expect.stringMatching(/^cannot verify: /),
  });
  await runOnce(world);
  expect(await run(["verify", "01a1ddef-0000-7000-8000-000000000000"], { world })).toMatchObject({ code: 3 });
});

test("a changed event is found and named, exit code 2", async () => {
  await using world = await openWorld();
  const id = await runOnce(world);
  alterOneBody(path.join(world.home, "heddle.db"));
  const ran = await run(["verify", "--json"], { world });
  expect(ran.code).toBe(2);
  const verdict: { report?: { damage: { stream?: string }[] } } = JSON.parse(ran.stdout);
  expect(verdict).toMatchObject({ result: "tampered" });
  expect(verdict.report?.damage[0]?.stream).toBe(id);
});

test("12.14: a record whose witness or checkpoints are gone cannot be verified, exit code 3", async () => {
  await using world = await openWorld();
  const ids = [await runOnce(world), await runOnce(world)];
  await rm(path.join(world.home, "checkpoints"), { recursive: true });
  expect(await run(["verify"], { world })).toMatchObject({
    code: 3,
    stdout: expect.stringMatching(
      /^cannot verify: evidence outside the database is missing\n  \S+: checkpoint_missing: /,
    ),
  });
  await rm(path.join(world.home, "witness.log"));
  const both = await run(["verify", "--json"], { world });
  expect(both.code).toBe(3);
  expect(JSON.parse(both.stdout)).toMatchObject({
    result: "cannotVerify",
    report: { damage: [], missing: [{ kind: "witness" }, ...ids.map((stream) => ({ kind: "checkpoint", stream }))] },
  });
  alterOneBody(path.join(world.home, "heddle.db"));
  expect(await run(["verify"], { world })).toMatchObject({ code: 2 });
});

/** As somebody with the file and a tool for it would. */
function alterOneBody(file: string): void {
  using database = new DatabaseSync(file);
  const tables = database.prepare("select name from sqlite_master where type = 'table'").all();
  for (const table of tables) {
    const name = String(table["name"]);
    for (const column of database.prepare(`pragma table_info("${name}")`).all()) {
      const field = String(column["name"]);
      const found = database
        .prepare(`select rowid as id, "${field}" as value from "${name}" where "${field}" like '%It is done.%' limit 1`)
        .get();
      if (found === undefined || typeof found["value"] !== "string") continue;
      for (const trigger of database.prepare("select name from sqlite_master where type = 'trigger'").all()) {
        database.exec(`drop trigger "${String(trigger["name"])}"`);
      }
      database
        .prepare(`update "${name}" set "${field}" = ? where rowid = ?`)
        .run(found["value"].replace("It is done.", "It is dune."), Number(found["id"]));
      return;
    }
  }
  throw new Error("no stored body holds the message");
}

test("doctor names what is missing with the command that fixes it, and makes nothing", async () => {
  await using world = await openWorld();
  const poor = await run(["doctor"], { world });
  expect(poor.code).toBe(1);
  expect(poor.stdout).toMatch(/problem +providers .*\n +fix: export OPENAI_API_KEY=/);
  expect(poor.stdout).toMatch(/ok +node +v\d+/);
  const rich = await run(["doctor", "--json"], { world, env: { ANTHROPIC_API_KEY: "k" } });
  const findings = rich.stdout
    .trimEnd()
    .split("\n")
    .map((line): { name: string; state: string } => JSON.parse(line));
  expect(findings.find(({ name }) => name === "provider anthropic")).toMatchObject({ state: "ok" });
  expect(findings.some(({ name, state }) => name === "providers" && state === "problem")).toBe(false);
  expect(rich.stdout).not.toContain(`"k"`);
  await expect(access(world.home)).rejects.toThrow("ENOENT");
});

test("help has examples for every command, and the version is the package's", async () => {
  await using world = await openWorld();
  const help = await run(["--help"], { world });
  expect(help).toMatchObject({ code: 0, stderr: "" });
  for (const command of ["exec", "threads", "verify", "doctor"]) {
    expect(help.stdout).toMatch(new RegExp(`^ +${command} `, "m"));
    const own = await run([command, "--help"], { world });
    expect(own).toMatchObject({ code: 0, stdout: expect.stringMatching(/Usage: heddle [^]*Examples:\n {2}\S/) });
    expect((await run(["help", command], { world })).stdout).toBe(own.stdout);
  }
  // Callers of Codex also ask exec for it.
  for (const words of [["--version"], ["-V"], ["exec", "--version"], ["exec", "-V"], ["exec", "-V", "a prompt"]]) {
    expect(await run(words, { world })).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^heddle \d+\.\d+\.\d+\n$/),
    });
  }
  expect((await run(["exec", "--help"], { world })).stdout).toMatch(/^ {2}-V, --version /m);
});
