import { readFile } from "node:fs/promises";
import path from "node:path";
import { expect, test } from "vitest";
import { run, start } from "../../test/heddle-process.ts";
import { jsonLines, MOCK_KEY, openMockWorld, threadOf } from "../../test/mock-model.ts";

test("piped input is appended to a prompt argument in a block, with the notice Codex gives", async () => {
  await using mock = await openMockWorld({ script: [{ text: "ok" }] });
  const ran = await mock.exec(["look at this"], { stdin: "one\ntwo" });
  expect(ran).toMatchObject({ code: 0, stdout: "ok\n" });
  expect(ran.stderr).toMatch(/^Reading additional input from stdin\.\.\.\n/);
  expect(mock.lastRequest()).toContain(String.raw`look at this\n\n<stdin>\none\ntwo\n</stdin>`);
  await mock.exec(["--json", "and this"], { stdin: "ends\n" });
  expect(mock.lastRequest()).toContain(String.raw`and this\n\n<stdin>\nends\n</stdin>`);
});

test("empty and absent input add nothing", async () => {
  await using mock = await openMockWorld({ script: [{ text: "ok" }] });
  for (const stdin of ["", undefined]) {
    const ran = await mock.exec(["alone"], stdin === undefined ? {} : { stdin });
    expect(ran).toMatchObject({ code: 0, stderr: expect.not.stringContaining("stdin") });
    expect(mock.lastRequest()).not.toContain("<stdin>");
  }
});

test("12.8a: an input that a program leaves open holds up no run, and that is told in the stream, the result and the record", async () => {
  await using mock = await openMockWorld({ script: [{ text: "ok" }] });
  const result = path.join(mock.world.root, "result.json");
  const ran = await mock.exec(["--json", "--result-json", result, "go"], { stdin: null });
  expect(ran).toMatchObject({ code: 0 });
  expect(mock.lastRequest()).not.toContain("<stdin>");
  const told = { code: "input.abandoned", message: expect.stringContaining("socket on which nothing came for 5 s") };
  expect(jsonLines(ran).find(({ type }) => type === "item.completed")).toMatchObject({
    item: { type: "error", ...told },
  });
  expect(JSON.parse(await readFile(result, "utf8"))).toMatchObject({ notices: [{ level: "warning", ...told }] });
  const shown = await run(["threads", "show", threadOf(ran)], { world: mock.world });
  expect(shown.stdout).toContain("warning input.abandoned: standard input is a socket");
});

test("an input that began is read to its end", async () => {
  await using mock = await openMockWorld({ script: [{ text: "ok" }] });
  await using slow = start(["exec", "go"], { world: mock.world, env: MOCK_KEY, stdin: null });
  slow.child.stdin?.write("first, ");
  await slow.sees("Reading additional input");
  slow.child.stdin?.end("then more");
  expect(await slow.ended).toMatchObject({ code: 0 });
  expect(mock.lastRequest()).toContain("first, then more");
});

test("without an argument the prompt is all of standard input; a dash says the same in silence", async () => {
  await using mock = await openMockWorld({ script: [{ text: "ok" }] });
  const piped = await mock.exec([], { stdin: "from stdin" });
  expect(piped.stderr).toMatch(/^Reading prompt from stdin\.\.\.\n/);
  expect(mock.lastRequest()).toContain("from stdin");
  const dash = await mock.exec(["-"], { stdin: "by dash" });
  expect(dash.stderr).not.toContain("Reading");
  expect(mock.lastRequest()).toContain("by dash");
  const utf16 = Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from("grüße", "utf16le")]);
  expect(await mock.exec(["-"], { stdin: utf16 })).toMatchObject({ code: 0 });
  expect(mock.lastRequest()).toContain("grüße");
});

test("nothing at all on standard input is refused in Codex's words, 100 MB with the way out", async () => {
  await using mock = await openMockWorld({ script: [{ text: "ok" }] });
  expect(await mock.exec([], { stdin: "" })).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("No prompt provided via stdin"),
  });
  const much = await mock.exec(["look"], { stdin: Buffer.alloc(100 * 1024 * 1024, "x") });
  expect(much).toMatchObject({ code: 2, stderr: expect.stringContaining("over 8 MiB; put it in a file") });
  expect(mock.server.requests).toHaveLength(0);
});
