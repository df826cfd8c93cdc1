/** A thread of Heddle's own loop at a terminal: what is typed, what is printed, and how it ends. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { expect, test } from "vitest";
import { LAUNCHER, run, type World } from "../../test/heddle-process.ts";
import { MOCK_KEY, openMockWorld, threadOf } from "../../test/mock-model.ts";

/** Gives a command a terminal. */
const SCRIPT = "/usr/bin/script";
const hasTerminal = existsSync(SCRIPT);

function openTerminal(world: World, args: readonly string[]) {
  const line = [process.execPath, LAUNCHER, ...args].join(" ");
  const child = spawn(SCRIPT, ["-qec", line, "/dev/null"], {
    cwd: world.workspace,
    env: { ...world.env, ...MOCK_KEY, TERM: "xterm" },
    stdio: ["pipe", "pipe", "inherit"],
  });
  let shown = "";
  let seen = 0;
  child.stdout.setEncoding("utf8").on("data", (text: string) => (shown += text));
  return {
    ended: once(child, "close").then(([code]: unknown[]) => ({ code, shown })),
    type: (text: string) => void child.stdin.write(text),
    /** Behind what was seen before. */
    async sees(text: string): Promise<void> {
      await expect.poll(() => shown.slice(seen), { timeout: 30_000 }).toContain(text);
      seen = shown.indexOf(text, seen) + text.length;
    },
  };
}

const CTRL_C = "\u0003";
const CTRL_D = "\u0004";
const shell = (cmd: string) => ({ calls: [{ tool: "exec_command", args: { cmd } }] });

test.runIf(hasTerminal)(
  "what is typed is the next input, questions are answered by a letter, and what is printed is on record (needs script)",
  async () => {
    await using mock = await openMockWorld({
      respond: ({ body }) => {
        const text = JSON.stringify(body);
        if (text.includes("call_") || !text.includes("make it"))
          return { text: `answer to ${text.includes("make it") ? "make" : "first"}` };
        return shell("echo made > made.txt");
      },
    });
    const { world } = mock;
    const config = await readFile(path.join(world.home, "config.toml"), "utf8");
    await world.file("home/config.toml", `approval_policy = "untrusted"\n${config}`);
    const threadId = threadOf(await mock.exec(["--json", "first"]));
    const terminal = openTerminal(world, ["attach", threadId.slice(0, 13), "-s", "workspace-write"]);
    await terminal.sees(`thread ${threadId}`);
    await terminal.sees("answer to first");
    await terminal.sees("> ");
    terminal.type("/no-such\r");
    await terminal.sees("there is no command /no-such");
    terminal.type("/help\r");
    await terminal.sees("declines");
    terminal.type("/status\r");
    await terminal.sees("mock/gpt-5.5");
    await terminal.sees("idle");
    terminal.type("make it \\\r");
    terminal.type("now\r");
    await terminal.sees("allow? y, n or a (always) >");
    terminal.type("maybe\r");
    await terminal.sees("n to decline");
    terminal.type("y\r");
    await terminal.sees("answer to make");
    expect(existsSync(path.join(world.workspace, "made.txt"))).toBe(true);
    terminal.type(CTRL_D);
    expect((await terminal.ended).code).toBe(0);
    const shown = await run(["threads", "show", threadId, "--json"], { world });
    expect(shown.stdout).toMatch(/"text":"make it \\nnow"/);
    expect(shown.stdout).toContain('"decision":"accept"');
    expect((await run(["verify", threadId], { world })).code).toBe(0);
  },
);

test.runIf(hasTerminal)(
  "Ctrl-C interrupts the turn, input meanwhile goes to it, and leaving ends what runs (needs script)",
  async () => {
    await using mock = await openMockWorld({
      respond: ({ answers }) => (answers === 0 ? { text: "hello" } : shell("echo begun; sleep 60")),
    });
    const { world } = mock;
    const threadId = threadOf(await mock.exec(["--json", "first"]));
    const terminal = openTerminal(world, ["attach", threadId]);
    await terminal.sees("/help shows");
    terminal.type("run it\r");
    await terminal.sees("begun");
    terminal.type("and more\r");
    await terminal.sees("more input was added");
    terminal.type(CTRL_C);
    await terminal.sees("stopping: interrupted by the user");
    await terminal.sees("> ");
    terminal.type("again\r");
    await terminal.sees("begun");
    terminal.type("/quit\r");
    expect((await terminal.ended).code).toBe(0);
    const shown = await run(["threads", "show", threadId, "--json"], { world });
    const bodies = shown.stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line).body);
    const ends = bodies.filter(({ type }) => type === "turn.completed").map(({ status }) => status);
    expect(ends).toEqual(["completed", "interrupted", "interrupted"]);
    expect((await run(["verify", threadId], { world })).code).toBe(0);
  },
);
