import { expect, test } from "vitest";
import { start } from "../../test/heddle-process.ts";
import { MOCK_KEY, openMockWorld } from "../../test/mock-model.ts";

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

test("a pipe that stays open and silent holds up nobody for longer than a moment, and is said", async () => {
  await using mock = await openMockWorld({ script: [{ text: "ok" }] });
  const ran = await mock.exec(["--json", "go"], { stdin: null });
  expect(ran).toMatchObject({ code: 0 });
  expect(ran.stderr).toBe("heddle: standard input is open but silent: going on without it; `PROMPT -` waits for it\n");
  expect(mock.lastRequest()).not.toContain("<stdin>");
});

test("what comes after that moment is not read, and a pipe that began to speak is read to its end", async () => {
  await using mock = await openMockWorld({ script: [{ text: "ok" }] });
  await using late = start(["exec", "go"], { world: mock.world, env: MOCK_KEY, stdin: null });
  await late.sees("open but silent");
  late.child.stdin?.end("too late");
  expect(await late.ended).toMatchObject({ code: 0 });
  expect(mock.lastRequest()).not.toContain("too late");

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
