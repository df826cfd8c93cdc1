import { createHash } from "node:crypto";
import { readdir, readFile, rm, stat, utimes, writeFile } from "node:fs/promises";
import path from "node:path";
import { expect, test } from "vitest";
import { openWorld, run, type World } from "../../test/heddle-process.ts";

const WHOLE = Array.from({ length: 20_000 }, (_, index) => `${index + 1}\n`).join("");
const NAME = createHash("sha256").update(WHOLE).digest("hex");

interface Line {
  readonly type: string;
  readonly thread_id?: string;
  readonly item?: Readonly<Record<string, unknown>>;
}

interface Printed {
  readonly thread: string;
  readonly code: number | null;
  readonly lines: readonly Line[];
}

/** A turn whose command prints more than the record takes. */
async function print(world: World, env: Readonly<Record<string, string>> = {}): Promise<Printed> {
  const steps = [{ calls: [{ tool: "bash", args: { command: "seq 1 20000" } }] }, { text: "done" }];
  const script = await world.file("script.json", JSON.stringify(steps));
  const ran = await run(["exec", "--json", "-s", "workspace-write", "--script", script, "print"], { world, env });
  const lines = ran.stdout
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line): Line => JSON.parse(line));
  return { thread: lines.find(({ thread_id }) => thread_id !== undefined)?.thread_id ?? "", code: ran.code, lines };
}

const blobs = (world: World): Promise<string[]> => readdir(path.join(world.home, "blobs"));

test("an output that does not fit is kept whole, found by its hash, printed, saved, verified and purged", async () => {
  await using world = await openWorld();
  const { thread, code } = await print(world);
  expect(code).toBe(0);
  expect(await blobs(world)).toEqual([NAME]);
  const query = await run(["evidence", "query", "--ref", `blob:${NAME}`, "--json"], { world });
  expect(JSON.parse(query.stdout)).toMatchObject({ thread, refs: [{ type: "blob", id: NAME }] });
  expect((await run(["evidence", "show", `blob:${NAME}`], { world })).stdout).toBe(WHOLE);
  const file = path.join(world.root, "saved.txt");
  expect(await run(["evidence", "show", `blob:${NAME}`, "-o", file], { world })).toMatchObject({ code: 0, stdout: "" });
  expect(await readFile(file, "utf8")).toBe(WHOLE);
  expect(await run(["verify", thread, "--level", "5"], { world })).toMatchObject({
    code: 0,
    stdout: expect.stringContaining("1 whole output"),
  });
  expect((await run(["evidence", "collect"], { world })).stdout).toBe("0 outputs removed, 0 bytes\n");

  const kept = path.join(world.home, "blobs", NAME);
  const { atime, mtime } = await stat(kept);
  await writeFile(kept, "forged");
  await utimes(kept, atime, mtime);
  expect(await run(["verify", thread], { world })).toMatchObject({
    code: 1,
    stdout: expect.stringContaining("blob_altered"),
  });
  const forged = await run(["evidence", "show", `blob:${NAME}`], { world });
  expect(forged).toMatchObject({ code: 8, stdout: "", stderr: expect.stringContaining("was changed") });
  expect(await run(["evidence", "purge", thread], { world })).toMatchObject({ code: 0 });
  expect(await blobs(world)).toEqual([]);
});

test("heddle evidence collect removes by the rule of the configuration, and says so on record", async () => {
  await using world = await openWorld();
  const { thread } = await print(world);
  await world.file("home/config.toml", "[outputs]\nmax_days = 0.000000001\n");
  const seen = await run(["evidence", "collect", "--dry-run", "--json"], { world });
  expect(JSON.parse(seen.stdout)).toMatchObject({ sha256: NAME, why: "age", streams: [thread], isDryRun: true });
  expect(await blobs(world)).toEqual([NAME]);
  const done = await run(["evidence", "collect"], { world });
  expect(done.stdout).toBe(
    `${NAME}  ${WHOLE.length} bytes  it is older than outputs.max_days\n1 outputs removed, ${WHOLE.length} bytes\n`,
  );
  expect(await blobs(world)).toEqual([]);
  expect(await run(["verify", thread], { world })).toMatchObject({
    code: 0,
    stdout: expect.stringContaining("warning blob_collected"),
  });
  expect(await run(["evidence", "show", `blob:${NAME}`], { world })).toMatchObject({ code: 2, stdout: "" });
});

test("what a run keeps is held to the rule by itself", async () => {
  await using world = await openWorld();
  await world.file("home/config.toml", "[outputs]\nmax_days = 0.000000001\n");
  expect((await print(world)).code).toBe(0);
  expect(await blobs(world)).toEqual([]);
  expect(await run(["evidence", "count", "--tag", "collected"], { world })).toMatchObject({ stdout: "1\n" });
});

test("a full disk loses the whole output and nothing else, and the item says so", async () => {
  await using world = await openWorld();
  const { code, lines, thread } = await print(world, { HEDDLE_FAILPOINT: "blob.before-write=enospc" });
  expect(code).toBe(0);
  expect(lines.at(-1)?.type).toBe("turn.completed");
  expect(await blobs(world)).toEqual([]);
  const events = (await run(["threads", "show", thread, "--json"], { world })).stdout;
  expect(events).toContain('"outputError":"the whole output was not kept: the disk is full"');
  expect(await run(["verify", thread], { world })).toMatchObject({ code: 0 });
});

test("a crash before an output has its name leaves a part, which is collected, and a record that verifies", async () => {
  await using world = await openWorld();
  const { thread } = await print(world, { HEDDLE_FAILPOINT: "blob.before-rename=kill" });
  expect(await blobs(world)).toEqual([expect.stringMatching(/\.part$/)]);
  expect((await run(["threads", "list", "--all"], { world })).code).toBe(0);
  const again = await print(world);
  expect(again.code).toBe(0);
  expect(await run(["verify", thread], { world })).toMatchObject({ code: 0 });
  const kept = await blobs(world);
  expect(kept).toHaveLength(2);
  expect(kept).toEqual(expect.arrayContaining([NAME, expect.stringMatching(/\.part$/)]));
});

test("a crash between the record and the removal leaves the output, and the next collection removes it", async () => {
  await using world = await openWorld();
  const { thread } = await print(world);
  await world.file("home/config.toml", "[outputs]\nmax_days = 0.000000001\n");
  const env = { HEDDLE_FAILPOINT: "blob.before-remove=kill" };
  expect(await run(["evidence", "collect"], { world, env })).toMatchObject({ code: null });
  expect(await blobs(world)).toEqual([NAME]);
  expect(await run(["verify", thread], { world })).toMatchObject({ code: 0 });
  expect(await run(["evidence", "collect"], { world })).toMatchObject({ code: 0 });
  expect(await blobs(world)).toEqual([]);
});

test("a bundle carries whole outputs on request, and is checked with them on another machine", async () => {
  await using world = await openWorld();
  const { thread } = await print(world);
  const file = path.join(world.root, "thread.jsonl");
  expect(await run(["evidence", "export", thread, "--outputs", "-o", file], { world })).toMatchObject({ code: 0 });
  await using elsewhere = await openWorld();
  const verified = await run(["verify", file, "--level", "5", "--json"], { world: elsewhere });
  expect(verified.code, verified.stdout).toBe(0);
  expect(JSON.parse(verified.stdout)).toMatchObject({ report: { blobs: 1 }, findings: [] });
  await rm(path.join(world.home, "blobs", NAME));
  expect(await run(["evidence", "export", thread, "--outputs", "-o", file], { world })).toMatchObject({ code: 0 });
  expect(await run(["verify", file], { world: elsewhere })).toMatchObject({ code: 0 });
});
