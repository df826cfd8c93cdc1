import { existsSync } from "node:fs";
import { mkdir, readFile, symlink } from "node:fs/promises";
import { join } from "node:path";
import { HeddleError } from "@heddle/protocol";
import { expect, test } from "vitest";
import { openFixture, textOf, type Fixture } from "../../test/fixture.ts";

const NEW_FILE = "*** Begin Patch\n*** Add File: made.txt\n+x\n*** End Patch";

/** The call was refused before anything could happen. */
function expectUnrun(fixture: Fixture): void {
  expect(fixture.started).toEqual([]);
  expect(existsSync(join(fixture.workspace, "made.txt"))).toBe(false);
}

test("a call is announced with its intent before its effect, and settled with its finished item", async () => {
  const seen: boolean[] = [];
  let path = "";
  await using fixture = await openFixture({
    sandbox: "none",
    onStarted: async () => {
      seen.push(existsSync(path));
    },
  });
  path = join(fixture.workspace, "made.txt");
  const outcome = await fixture.call("apply_patch", NEW_FILE);
  expect(seen).toEqual([false]);
  expect(fixture.started).toEqual([
    {
      item: {
        type: "fileChange",
        id: "item_call_1",
        callId: "call_1",
        status: "inProgress",
        changes: [{ path, kind: "add", diff: "@@ -0,0 +1 @@\n+x\n" }],
      },
      intent: { callId: "call_1", itemId: "item_call_1", tool: "apply_patch", arguments: NEW_FILE, isReadOnly: false },
    },
  ]);
  expect(outcome).toEqual({
    kind: "ok",
    tool: "apply_patch",
    bytesWritten: 2,
    isStarted: true,
    item: { ...fixture.started[0]?.item, status: "completed" },
    output: [{ type: "text", text: "Success. Updated the following files:\nA made.txt" }],
  });
  expect(await readFile(path, "utf8")).toBe("x\n");
});

test("an intent that cannot be stored stops the call before its effect", async () => {
  await using fixture = await openFixture({
    sandbox: "none",
    onStarted: async () => {
      throw new HeddleError("store.full", "no space");
    },
  });
  await expect(fixture.call("apply_patch", NEW_FILE)).rejects.toMatchObject({ code: "store.full" });
  expectUnrun(fixture);
});

test("a cancelled turn starts nothing", async () => {
  await using fixture = await openFixture({ sandbox: "none" });
  const outcome = await fixture.call("apply_patch", NEW_FILE, { signal: AbortSignal.abort() });
  expect(outcome).toMatchObject({ kind: "cancelled", isStarted: false, item: { status: "interrupted" } });
  expectUnrun(fixture);
});

test("a tool nobody has is unknown, a tool of another envelope is denied, and both are items", async () => {
  await using fixture = await openFixture({ sandbox: "none", mode: "read-only" });
  const unknown = await fixture.call("launch_rocket", { to: "moon" });
  expect(unknown).toMatchObject({
    kind: "denied",
    failure: { code: "tool.unknown", message: expect.stringContaining("exec_command") },
    item: { type: "toolCall", tool: "launch_rocket", status: "declined", arguments: '{"to":"moon"}' },
  });
  const denied = await fixture.call("apply_patch", NEW_FILE);
  expect(denied).toMatchObject({
    kind: "denied",
    failure: { code: "policy.denied" },
    item: {
      type: "fileChange",
      status: "declined",
      changes: [{ path: join(fixture.workspace, "made.txt"), kind: "add" }],
      error: expect.stringContaining("not available"),
    },
  });
  expect(await fixture.call("apply_patch", "not a patch")).toMatchObject({
    kind: "denied",
    failure: { code: "policy.denied" },
    item: { type: "toolCall", tool: "apply_patch", status: "declined", arguments: "not a patch" },
  });
  expectUnrun(fixture);
});

test("a patch typed into a shell where nothing may be written is denied like the tool itself", async () => {
  await using fixture = await openFixture({ sandbox: "none", mode: "read-only" });
  const outcome = await fixture.call("exec_command", { cmd: `apply_patch <<'EOF'\n${NEW_FILE}\nEOF` });
  expect(outcome).toMatchObject({
    kind: "denied",
    tool: "apply_patch",
    failure: { code: "policy.denied" },
    item: { type: "fileChange", status: "declined" },
  });
  expectUnrun(fixture);
});

test("a patch typed into a shell is applied as a patch, in the folder it says", async () => {
  await using fixture = await openFixture({ sandbox: "none", files: { "sub/a.txt": "one\n" } });
  const patch = "*** Begin Patch\n*** Update File: a.txt\n-one\n+two\n*** End Patch";
  const outcome = await fixture.call("exec_command", { cmd: `cd sub && apply_patch <<'EOF'\n${patch}\nEOF` });
  expect(outcome).toMatchObject({ kind: "ok", tool: "apply_patch", item: { type: "fileChange", status: "completed" } });
  expect(fixture.started[0]?.intent).toMatchObject({ tool: "apply_patch", arguments: { patch, folders: ["sub"] } });
  expect(await readFile(join(fixture.workspace, "sub/a.txt"), "utf8")).toBe("two\n");
});

test.each([
  ["no JSON", "{cmd: ls", /not valid JSON/],
  ["a wrong type", '{"cmd":5}', /cmd: .*string/],
  ["a missing field", "{}", /cmd: /],
  ["a list", "[1]", /object/],
  ["a NUL byte", '{"cmd":"ls\\u0000"}', /NUL/],
  ["a negative size", '{"cmd":"ls","max_output_tokens":-1}', /max_output_tokens/],
  ["a command longer than the kernel takes", JSON.stringify({ cmd: "x".repeat(200_000) }), /use a file/],
  ["1,000 levels", `{"cmd":${"[".repeat(1000)}${"]".repeat(1000)}}`, /deeper/],
  ["a prototype key", '{"cmd":"ls","__proto__":{}}', /__proto__/],
])("D4: arguments with %s fail the call and tell the model what was expected", async (_name, input, message) => {
  await using fixture = await openFixture({ sandbox: "none" });
  const outcome = await fixture.callRaw("exec_command", input);
  expect(outcome).toMatchObject({
    kind: "failed",
    isStarted: false,
    failure: { code: "tool.invalid-arguments" },
    item: { type: "toolCall", status: "failed", tool: "exec_command" },
  });
  expect(textOf(outcome)).toMatch(message);
  expect(JSON.stringify(outcome.item).length).toBeLessThan(20_000);
  expectUnrun(fixture);
});

test.each([
  ["a parent", "../made.txt", "path.outside"],
  ["an absolute path", "/etc/made.txt", "path.outside"],
  ["a home", "~/made.txt", "path.invalid"],
  ["a URL", "file:///tmp/made.txt", "path.invalid"],
  ["a backslash", "..\\made.txt", "path.invalid"],
  ["a drive", "C:/made.txt", "path.invalid"],
  ["a NUL", "made.txt\0.png", "path.invalid"],
  ["4,096 characters and more", `${"a/".repeat(3000)}x`, "path.invalid"],
])("writing to %s is denied before it runs", async (_name, file, code) => {
  await using fixture = await openFixture({ sandbox: "none", family: "anthropic" });
  const outcome = await fixture.call("write", { file_path: file, content: "x" });
  expect(outcome).toMatchObject({
    kind: "denied",
    failure: { code },
    item: { type: "fileChange", status: "declined" },
  });
  const patch = `*** Begin Patch\n*** Add File: ${file}\n+x\n*** End Patch`;
  await using other = await openFixture({ sandbox: "none" });
  expect(await other.call("apply_patch", patch)).toMatchObject({ kind: "denied", failure: { code } });
  expectUnrun(fixture);
  expectUnrun(other);
});

test("what is masked can be neither read nor listed nor searched", async () => {
  await using fixture = await openFixture({ sandbox: "none", family: "anthropic" });
  const secret = join(fixture.home, "secret.txt");
  for (const outcome of [
    await fixture.call("read", { file_path: secret }),
    await fixture.call("read", { file_path: "../home/secret.txt" }),
    await fixture.call("list", { path: fixture.home }),
    await fixture.call("glob", { pattern: "*", path: fixture.home }),
    await fixture.call("view_image", { path: secret }),
  ]) {
    expect(outcome).toMatchObject({ kind: "denied", failure: { code: "path.outside" } });
    expect(textOf(outcome)).not.toContain("a key");
  }
  expect(fixture.started).toEqual([]);
});

test.each(["/proc/self/root/etc/passwd", "/proc/self/environ", "/dev/stdin", "/dev/zero", "/sys/kernel/notes"])(
  "%s is not a file to read",
  async (file_path) => {
    await using fixture = await openFixture({ sandbox: "none", family: "anthropic" });
    for (const [name, args] of [
      ["read", { file_path }],
      ["view_image", { path: file_path }],
      ["grep", { pattern: "a", path: file_path }],
    ] as const) {
      expect(await fixture.call(name, args)).toMatchObject({ kind: "denied", failure: { code: "path.invalid" } });
    }
  },
);

test("a link that leads out of the workspace is not written through", async () => {
  await using fixture = await openFixture({ sandbox: "none", family: "anthropic" });
  await mkdir(join(fixture.root, "outside"));
  await symlink(join(fixture.root, "outside"), join(fixture.workspace, "link"));
  const outcome = await fixture.call("write", { file_path: "link/made.txt", content: "x" });
  expect(["failed", "denied"]).toContain(outcome.kind);
  expect(existsSync(join(fixture.root, "outside", "made.txt"))).toBe(false);
});

test("where no hop is possible a call that wants to leave the sandbox is denied, not asked", async () => {
  await using fixture = await openFixture({ sandbox: "none", approval: "on-request", answer: () => "accept" });
  const outcome = await fixture.call("exec_command", {
    cmd: "touch made.txt",
    sandbox_permissions: "require_escalated",
  });
  expect(outcome).toMatchObject({
    kind: "denied",
    failure: { code: "policy.denied" },
    item: { type: "commandExecution" },
  });
  expect(fixture.questions).toEqual([]);
  expectUnrun(fixture);
});

test("a declined question runs nothing and says so to the model", async () => {
  await using fixture = await openFixture({ sandbox: "none", approval: "untrusted", answer: () => "decline" });
  const outcome = await fixture.call("apply_patch", NEW_FILE);
  expect(outcome).toMatchObject({ kind: "denied", failure: { code: "policy.denied" }, item: { status: "declined" } });
  expect(textOf(outcome)).toContain("declined");
  expect(fixture.questions).toEqual([
    {
      kind: "fileChange",
      callId: "call_1",
      itemId: "item_call_1",
      paths: [join(fixture.workspace, "made.txt")],
      reason: "it is not known to be read-only",
    },
  ]);
  expectUnrun(fixture);
});

test("an answer that cancels declines the call and stops the turn", async () => {
  await using fixture = await openFixture({ sandbox: "none", approval: "untrusted", answer: () => "cancel" });
  const outcome = await fixture.call("apply_patch", NEW_FILE);
  expect(outcome).toMatchObject({
    kind: "cancelled",
    failure: { code: "turn.interrupted" },
    item: { status: "declined" },
  });
  expectUnrun(fixture);
});

test("an acceptance for the thread is asked for once", async () => {
  await using fixture = await openFixture({
    sandbox: "none",
    approval: "untrusted",
    family: "other",
    answer: () => "acceptForThread",
  });
  await fixture.call("write", { file_path: "a.txt", content: "1" });
  await fixture.call("write", { file_path: "a.txt", content: "2" });
  expect(fixture.questions).toHaveLength(1);
  await fixture.call("write", { file_path: "b.txt", content: "1" });
  expect(fixture.questions).toHaveLength(2);
  expect(await readFile(join(fixture.workspace, "a.txt"), "utf8")).toBe("2");
});

test("a question that ends with the turn cancels the call", async () => {
  const controller = new AbortController();
  await using fixture = await openFixture({
    sandbox: "none",
    approval: "untrusted",
    answer: () => {
      controller.abort();
      throw controller.signal.reason;
    },
  });
  const outcome = await fixture.call("apply_patch", NEW_FILE, { signal: controller.signal });
  expect(outcome).toMatchObject({ kind: "cancelled", isStarted: false, failure: { code: "tool.cancelled" } });
  expectUnrun(fixture);
});

test("D7: a tool that throws fails its call with a code, not the turn", async () => {
  await using fixture = await openFixture({ sandbox: "none" });
  const outcome = await fixture.call("write_stdin", { session_id: 4711, chars: "x" });
  expect(outcome).toMatchObject({
    kind: "failed",
    isStarted: true,
    failure: { code: "tool.failed", message: "no command is open as session 4711" },
    item: { status: "failed", error: "no command is open as session 4711" },
  });
});
