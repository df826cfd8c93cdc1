import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { openFixture, textOf } from "../../test/fixture.ts";

/** Command lines of processes that carry the marker. */
async function alive(marker: string): Promise<string[]> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name) && name !== String(process.pid));
  const lines = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "")));
  return lines.filter((line) => line.includes(marker));
}

function sessionOf(text: string): number {
  return Number(/Process running with session ID (\d+)/.exec(text)?.[1]);
}

test("a command's output comes back in the shape the models know, and as a finished item", async () => {
  await using fixture = await openFixture();
  const outcome = await fixture.call("exec_command", { cmd: "printf 'hello\\n'; printf 'oops\\n' >&2" });
  expect(textOf(outcome)).toMatch(
    /^Chunk ID: [0-9a-f]{6}\nWall time: \d+\.\d{4} seconds\nProcess exited with code 0\nOutput:\n(hello\noops|oops\nhello)\n$/,
  );
  expect(outcome).toMatchObject({
    kind: "ok",
    item: {
      type: "commandExecution",
      status: "completed",
      exitCode: 0,
      cwd: fixture.workspace,
      durationMs: expect.any(Number),
    },
  });
  expect(fixture.live.get(outcome.item.id)).toBe(outcome.item.type === "commandExecution" ? outcome.item.output : "");
  expect(fixture.started[0]?.intent).toMatchObject({ tool: "exec_command", isReadOnly: false });
  expect(fixture.state.processes.size).toBe(0);
});

test("a command that fails is a failed call with its exit code", async () => {
  await using fixture = await openFixture();
  expect(await fixture.call("exec_command", { cmd: "echo no; exit 3" })).toMatchObject({
    kind: "failed",
    failure: { code: "tool.failed", message: "Process exited with code 3", details: { exitCode: 3 } },
    item: { status: "failed", exitCode: 3, output: "no\n" },
  });
});

test.each([
  ["KILL", 137],
  ["TERM", 143],
])("a command that ends by SIG%s has its number as exit code, and no words but its own", async (signal, exitCode) => {
  await using fixture = await openFixture();
  const outcome = await fixture.call("exec_command", { cmd: `echo mine; kill -${signal} $$` });
  expect(outcome).toMatchObject({ kind: "failed", item: { status: "failed", exitCode, output: "mine\n" } });
  expect(textOf(outcome)).toContain(`Process exited with code ${exitCode}\nOutput:\nmine\n`);
});

test("without a sandbox the exit code of a command that ends by a signal is the same", async () => {
  await using fixture = await openFixture({ mode: "danger-full-access" });
  expect(await fixture.call("exec_command", { cmd: "echo mine; kill -KILL $$" })).toMatchObject({
    kind: "failed",
    item: { status: "failed", exitCode: 137, signal: "SIGKILL", output: "mine\n" },
  });
});

test("a command in a folder that is not there is told so", async () => {
  await using fixture = await openFixture();
  const outcome = await fixture.call("exec_command", { cmd: "ls", workdir: "nowhere" });
  expect(textOf(outcome)).toContain("nowhere does not exist");
  expect(textOf(await fixture.call("exec_command", { cmd: "pwd", workdir: "/usr" }))).toContain("\n/usr\n");
});

test("a command that asks for input gets an end of file, not a hang", async () => {
  await using fixture = await openFixture();
  const startedAt = performance.now();
  const outcome = await fixture.call("exec_command", { cmd: "cat; read -r x; echo end $?" });
  expect(textOf(outcome)).toContain("Output:\nend 1\n");
  expect(performance.now() - startedAt).toBeLessThan(5000);
});

test("a shell stays open between calls and takes what is typed", async () => {
  await using fixture = await openFixture();
  const first = await fixture.call("exec_command", {
    cmd: "echo ready; while read -r x; do echo got $x; done",
    tty: true,
    yield_time_ms: 1000,
  });
  expect(first).toMatchObject({
    kind: "ok",
    item: { status: "inProgress", output: "ready\n" },
    ongoing: { processId: expect.any(String), isRunning: true },
  });
  const session_id = sessionOf(textOf(first));
  expect(fixture.state.processes.size).toBe(1);
  const second = await fixture.call("write_stdin", { session_id, chars: "one\n" });
  expect(textOf(second)).toContain("Output:\ngot one\n");
  expect(fixture.live.get(first.item.id)).toBe("ready\ngot one\n");
  const last = await fixture.call("write_stdin", { session_id, chars: "two\n\u0004", yield_time_ms: 10_000 });
  expect(textOf(last)).toMatch(/Process exited with code 0\nOutput:\ngot two\n$/);
  expect(fixture.state.processes.size).toBe(0);
  expect(await first.ongoing?.ended).toMatchObject({
    id: first.item.id,
    status: "completed",
    exitCode: 0,
    output: "ready\ngot one\ngot two\n",
  });
  expect(await fixture.call("write_stdin", { session_id })).toMatchObject({ kind: "failed" });
});

test("a command whose item was left with its turn shows what comes later in the call that reads it", async () => {
  await using fixture = await openFixture();
  const first = await fixture.call("exec_command", {
    cmd: "echo ready; read -r x; echo got $x; exit 5",
    tty: true,
    yield_time_ms: 1000,
  });
  const session_id = sessionOf(textOf(first));
  expect(first.ongoing?.leave()).toMatchObject({ status: "completed", processId: `${session_id}`, output: "ready\n" });
  const second = await fixture.call("write_stdin", { session_id, chars: "one\n", yield_time_ms: 10_000 });
  expect(second).toMatchObject({
    kind: "failed",
    item: { status: "failed", output: "got one\n", error: "Process exited with code 5" },
  });
  expect(fixture.live.get(second.item.id)).toBe("got one\n");
  expect(fixture.live.get(first.item.id)).toBe("ready\n");
});

test("the failure of a command whose item is open is the command's, not that of the call that sees it", async () => {
  await using fixture = await openFixture();
  const first = await fixture.call("exec_command", { cmd: "read -r x; exit 5", tty: true, yield_time_ms: 1000 });
  const session_id = sessionOf(textOf(first));
  const second = await fixture.call("write_stdin", { session_id, chars: "one\n", yield_time_ms: 10_000 });
  // The model is told of it all the same.
  expect(second).toMatchObject({
    kind: "failed",
    failure: { details: { exitCode: 5 } },
    item: { status: "completed" },
  });
  expect(await first.ongoing?.ended).toMatchObject({ status: "failed", exitCode: 5 });
});

test("output that came between two calls is in the next, and only there", async () => {
  await using fixture = await openFixture();
  const go = join(fixture.workspace, "go");
  const first = await fixture.call("exec_command", {
    cmd: "echo a; until [ -e go ]; do sleep 0.05; done; echo b; echo $$ >done; sleep 60",
    yield_time_ms: 300,
  });
  const session_id = sessionOf(textOf(first));
  await fixture.call("exec_command", { cmd: `touch ${go}` });
  await vi.waitFor(() => expect(existsSync(join(fixture.workspace, "done"))).toBe(true), { timeout: 5000 });
  const second = await fixture.call("write_stdin", { session_id, yield_time_ms: 300 });
  expect(textOf(first)).toContain("Output:\na\n");
  expect(textOf(second)).toMatch(/Output:\nb\n$/);
});

test("Ctrl-C reaches the command, which may answer it", async () => {
  await using fixture = await openFixture();
  const first = await fixture.call("exec_command", {
    cmd: "trap 'echo stopping; exit 7' INT; echo up; while :; do sleep 0.05; done",
    yield_time_ms: 1000,
  });
  const outcome = await fixture.call("write_stdin", {
    session_id: sessionOf(textOf(first)),
    chars: "\u0003",
    yield_time_ms: 10_000,
  });
  expect(textOf(outcome)).toMatch(/Process exited with code 7\nOutput:\n(\^C)?stopping\n$/);
  expect(outcome.kind).toBe("ok");
});

test("text for a command without an input is refused with what to do", async () => {
  await using fixture = await openFixture();
  const first = await fixture.call("exec_command", { cmd: "sleep 60", yield_time_ms: 250 });
  const outcome = await fixture.call("write_stdin", { session_id: sessionOf(textOf(first)), chars: "hi\n" });
  expect(textOf(outcome)).toContain("input kept open");
});

test("a command that does not read what it is sent holds nobody up", async () => {
  await using fixture = await openFixture();
  const first = await fixture.call("exec_command", { cmd: "sleep 60", tty: true, yield_time_ms: 250 });
  const startedAt = performance.now();
  const outcome = await fixture.call("write_stdin", {
    session_id: sessionOf(textOf(first)),
    chars: "x".repeat(500_000),
    yield_time_ms: 250,
  });
  expect(outcome.kind).toBe("ok");
  expect(performance.now() - startedAt).toBeLessThan(8000);
});

test("a command that has closed its input says so and still shows its output", async () => {
  await using fixture = await openFixture();
  const first = await fixture.call("exec_command", {
    cmd: "exec <&-; until [ -e go ]; do sleep 0.05; done; echo late; touch done; sleep 60",
    tty: true,
    yield_time_ms: 500,
  });
  await fixture.call("exec_command", { cmd: "touch go; until [ -e done ]; do sleep 0.05; done" });
  const outcome = await fixture.call("write_stdin", { session_id: sessionOf(textOf(first)), chars: "x\n" });
  expect(outcome).toMatchObject({ item: { output: "late\n" } });
  expect(textOf(outcome)).toContain("late\n");
});

test("the first bytes are seen live, long before the command ends", async () => {
  await using fixture = await openFixture();
  const controller = new AbortController();
  const seen: string[] = [];
  const running = fixture.call(
    "exec_command",
    { cmd: "echo first; sleep 60", yield_time_ms: 60_000 },
    {
      signal: controller.signal,
      onDelta: (text) => {
        seen.push(text);
        controller.abort();
      },
    },
  );
  expect(await running).toMatchObject({
    kind: "cancelled",
    item: { status: "interrupted", output: expect.stringMatching(/^first\n/) },
  });
  expect(seen[0]).toBe("first\n");
});

/** In the command lines of this run and of nothing else on the machine. */
const OWN = `4711.${process.pid}`;

test.each([
  ["ignores every signal it may", "trap '' TERM INT HUP; echo up; while :; do sleep 1; done"],
  ["stops itself", "echo up; kill -STOP $$"],
  ["hides in sessions of its own", `setsid sh -c 'setsid sleep ${OWN} & sleep ${OWN}' & echo up; wait; sleep ${OWN}`],
])("a command that %s is gone soon after the turn ends, and what it printed stays", async (_name, cmd) => {
  await using fixture = await openFixture();
  const controller = new AbortController();
  let abortedAt = 0;
  const outcome = await fixture.call(
    "exec_command",
    { cmd: `${cmd} # marker-${OWN}` },
    {
      signal: controller.signal,
      onDelta: () => {
        abortedAt = performance.now();
        controller.abort();
      },
    },
  );
  expect(performance.now() - abortedAt).toBeLessThan(5000);
  expect(outcome).toMatchObject({
    kind: "cancelled",
    failure: { code: "tool.cancelled" },
    item: { status: "interrupted", output: expect.stringMatching(/^up\n/) },
  });
  await vi.waitFor(async () => expect(await alive(OWN)).toEqual([]), { timeout: 2000 });
});

test("a grandchild that holds the output open does not hold the result", async () => {
  await using fixture = await openFixture();
  const startedAt = performance.now();
  const outcome = await fixture.call("exec_command", {
    cmd: `sleep ${OWN} & setsid sleep ${OWN} & echo done`,
    yield_time_ms: 30_000,
  });
  expect(performance.now() - startedAt).toBeLessThan(5000);
  expect(outcome).toMatchObject({ kind: "ok", item: { output: "done\n", exitCode: 0 } });
  await vi.waitFor(async () => expect(await alive(OWN)).toEqual([]), { timeout: 2000 });
});

test("a flood is shown in part, with a mark, and kept whole in a file", async () => {
  await using fixture = await openFixture();
  const outcome = await fixture.call("exec_command", {
    cmd: "head -c 5000000 /dev/zero | tr '\\0' 'x'; echo; echo the end",
  });
  const text = textOf(outcome);
  expect(Buffer.byteLength(text)).toBeLessThanOrEqual(33 * 1024);
  expect(text).toMatch(/\[\.\.\. \d+ bytes left out \.\.\.\]/);
  expect(text).toContain("the end\n");
  const { item } = outcome;
  if (item.type !== "commandExecution") throw new Error(item.type);
  expect(item.truncatedBytes).toBeGreaterThan(4_900_000);
  const whole = await readFile(join(fixture.home, "outputs", item.outputBlob ?? ""));
  expect(whole.length).toBe(5_000_009);
  expect(createHash("sha256").update(whole).digest("hex")).toBe(item.outputBlob);
});

test("a model may ask for less", async () => {
  await using fixture = await openFixture();
  const outcome = await fixture.call("exec_command", { cmd: "seq 1 5000", max_output_tokens: 100 });
  expect(Buffer.byteLength(textOf(outcome))).toBeLessThan(700);
  expect(textOf(outcome)).toMatch(/Output:\n1\n2\n[\s\S]*bytes left out[\s\S]*\n5000\n$/);
});

test("bytes that are not text do no harm", async () => {
  await using fixture = await openFixture();
  const outcome = await fixture.call("exec_command", { cmd: "head -c 3000 /dev/urandom; printf '\\377\\376ok'" });
  expect(textOf(outcome).isWellFormed()).toBe(true);
  expect(textOf(outcome)).toContain("ok");
});

test("a command past its time limit is killed and says so", async () => {
  await using fixture = await openFixture({ family: "anthropic" });
  expect(await fixture.call("bash", { command: "echo before; sleep 60", timeout: 500 })).toMatchObject({
    kind: "failed",
    failure: { code: "tool.timeout" },
    item: {
      status: "failed",
      output: expect.stringMatching(/^before\n/),
      error: expect.stringContaining("time limit"),
    },
  });
});

test("the other families have a shell that stays open too", async () => {
  await using fixture = await openFixture({ family: "anthropic" });
  const first = await fixture.call("bash", { command: "read -r x; echo got $x", run_in_background: true });
  expect(first).toMatchObject({ kind: "ok", ongoing: { processId: expect.any(String) } });
  const second = await fixture.call("bash_input", {
    session_id: sessionOf(textOf(first)),
    chars: "it\n",
    yield_time_ms: 10_000,
  });
  expect(textOf(second)).toMatch(/exited with code 0\nOutput:\ngot it\n$/);
});

test("the number of open commands is bounded, and closing the thread ends them all", async () => {
  const fixture = await openFixture();
  // Of this run alone: others may run the same test on this machine.
  const nap = `4713.${process.pid}`;
  try {
    for (let count = 0; count < 16; count += 1) {
      expect((await fixture.call("exec_command", { cmd: `sleep ${nap}`, yield_time_ms: 250 })).kind).toBe("ok");
    }
    const refused = await fixture.call("exec_command", { cmd: "touch one-more" });
    expect(refused).toMatchObject({ kind: "failed", failure: { code: "limit.reached" } });
    expect(textOf(refused)).toContain("1000, 1001");
    expect(existsSync(join(fixture.workspace, "one-more"))).toBe(false);
  } finally {
    await fixture[Symbol.asyncDispose]();
  }
  expect(await alive(nap)).toEqual([]);
});
