import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { expect, test } from "vitest";
import { openWorld, run, start, type World } from "../../test/heddle-process.ts";

interface Exported {
  readonly thread: string;
  readonly file: string;
  readonly key: string;
}

/** A thread that notes a conclusion and prints much, exported with its outputs. */
async function exported(world: World): Promise<Exported> {
  const steps = [{ calls: [{ tool: "bash", args: { command: "seq 1 20000" } }] }, { text: "the cache is cold" }];
  const script = await world.file("script.json", JSON.stringify(steps));
  const ran = await run(["exec", "--json", "-s", "workspace-write", "--script", script, "look"], { world });
  const thread: string = JSON.parse(ran.stdout.split("\n")[0] ?? "").thread_id;
  await run(["evidence", "note", thread, "the flaky test needs a free port", "--tag", "tests"], { world });
  const file = path.join(world.root, "thread.jsonl");
  expect(await run(["evidence", "export", thread, "--outputs", "-o", file], { world })).toMatchObject({ code: 0 });
  const [header = ""] = (await readFile(file, "utf8")).split("\n");
  const pem: string = JSON.parse(header).publicKey;
  return { thread, file, key: createHash("sha256").update(pem).digest("hex").slice(0, 16) };
}

const lines = (stdout: string): readonly Record<string, unknown>[] =>
  stdout
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));

test("a bundle of another home is imported once its key is trusted, found as foreign evidence, and purged again", async () => {
  await using there = await openWorld();
  const { thread, file, key } = await exported(there);
  await using here = await openWorld();
  const words = ["evidence", "import", file];
  expect(await run(words, { world: here })).toMatchObject({
    code: 7,
    stdout: "",
    stderr: expect.stringContaining(`it with --trust-key ${key}`),
  });
  const other = await run([...words, "--trust-key", "0000000000000000"], { world: here });
  expect(other).toMatchObject({ code: 7, stderr: expect.stringContaining("not by the one that --trust-key names") });
  const first = await run([...words, "--trust-key", key, "--json"], { world: here });
  expect(first.code, first.stderr).toBe(0);
  const [report] = lines(first.stdout);
  const stream = `import_${key}_${thread}`;
  expect(report).toMatchObject({ keyId: key, streams: [stream], known: 0, unread: 0, outputs: 1 });
  // The key is known from now on, and nothing is taken over twice.
  const [again] = lines((await run([...words, "--json"], { world: here })).stdout);
  expect(again).toMatchObject({ imported: 0, known: report?.["imported"], streams: [stream] });

  // It is in no answer that does not ask for it.
  expect((await run(["evidence", "count"], { world: here })).stdout).toBe("0\n");
  const note = await run(["evidence", "query", "free port", "--origin", "imported", "--json"], { world: here });
  const [found] = lines(note.stdout);
  expect(found).toMatchObject({
    stream,
    author: "user:owner",
    type: "evidence.imported",
    claim: "conclusion",
    tags: ["tests", "imported"],
    imported: { keyId: key, stream: thread, author: "user:owner", type: "evidence.noted" },
  });
  expect(found).not.toHaveProperty("thread");
  const text = (await run(["evidence", "query", "--ref", "author:agent:embedded", "--origin", "any"], { world: here }))
    .stdout;
  expect(text).toContain(`imported from key ${key}: agent:embedded`);
  expect((await run(["evidence", "show", String(found?.["id"])], { world: here })).stdout).toContain("free port");
  // No thread: nothing lists it, and no turn runs there.
  expect((await run(["threads", "list", "--all", "--json"], { world: here })).stdout).toBe("");
  expect(await run(["exec", "resume", stream, "go on"], { world: here, env: { OPENAI_API_KEY: "k" } })).toMatchObject({
    code: 2,
  });
  expect(await run(["verify"], { world: here })).toMatchObject({ code: 0 });

  expect(await run(["evidence", "purge", stream], { world: here })).toMatchObject({ code: 0 });
  expect((await run(["evidence", "count", "--origin", "any"], { world: here })).stdout).toBe("0\n");
  expect(await readdir(path.join(here.home, "blobs"))).toEqual([]);
  expect(await run(["verify"], { world: here })).toMatchObject({ code: 0 });
  expect(await run(["evidence", "purge", stream], { world: here })).toMatchObject({ code: 2 });
  const [back] = lines((await run([...words, "--json"], { world: here })).stdout);
  expect(back).toMatchObject({ imported: report?.["imported"], streams: [`${stream}~1`] });
  // What was left of the copies that were verified.
  expect((await readdir(here.home)).filter((name) => name.startsWith("import-"))).toEqual([]);
});

test("a bundle that was changed or cut is not imported, whoever's key is trusted, and nothing of it stays", async () => {
  await using there = await openWorld();
  const { file, key } = await exported(there);
  const text = await readFile(file, "utf8");
  await using here = await openWorld();
  const cases: readonly (readonly [what: string, content: string, code: string])[] = [
    ["a note", text.replace("a free port", "no free port"), "was changed after it was signed"],
    ["an output", text.replace('"data":"MQoyCj', '"data":"MgoyCj'), "was changed after it was signed"],
    ["no end", `${text.trimEnd().split("\n").slice(0, -1).join("\n")}\n`, "was changed after it was signed"],
    ["another file", "hello\n", "this is not a bundle"],
  ];
  for (const [what, content, said] of cases) {
    expect(content, what).not.toBe(text);
    const changed = await here.file("changed.jsonl", content);
    const ran = await run(["evidence", "import", changed, "--trust-key", key], { world: here });
    expect(ran, what).toMatchObject({ stdout: "", stderr: expect.stringContaining(said) });
    expect(ran.code, what).not.toBe(0);
  }
  expect((await run(["evidence", "count", "--origin", "any"], { world: here })).stdout).toBe("0\n");
  await expect(readFile(path.join(here.home, "known-keys"))).rejects.toMatchObject({ code: "ENOENT" });
});

test("an import that is killed while it reads leaves no copy of the bundle", async () => {
  await using here = await openWorld();
  await using importing = start(["evidence", "import", "-"], { world: here, stdin: null });
  const { child, ended } = importing;
  // More than a pipe holds: it is being copied.
  await new Promise((resolve) => child.stdin?.write(Buffer.alloc(4 * 1024 * 1024, "x\n"), resolve));
  child.kill("SIGKILL");
  expect(await ended).toMatchObject({ signal: "SIGKILL", stderr: "" });
  expect(await readdir(here.home)).toContain("heddle.db");
  expect((await readdir(here.home)).filter((name) => name.startsWith("import-"))).toEqual([]);
});
