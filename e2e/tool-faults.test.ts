/** F26, F28 and F30 through `heddle exec`: commands that wait for nobody, MCP servers that misbehave, compactions that fail. */
import path from "node:path";
import { startModelServer, type ModelServer, type RecordedRequest } from "@heddle/models/testing";
import { describe, expect, test } from "vitest";
import { checkHome, NOTHING_FOUND } from "./checker.ts";
import { askServer, execArgs, jsonLines, openWorld, run, type Line, type Ran, type World } from "./world.ts";

async function expectWhole(world: World): Promise<void> {
  expect(await checkHome(world.home, { acknowledged: [], effects: [] })).toEqual(NOTHING_FOUND);
}

function itemsOf({ stdout }: Ran, type: string): readonly NonNullable<Line["item"]>[] {
  return jsonLines(stdout).flatMap((line) =>
    line.type === "item.completed" && line.item?.["type"] === type ? [line.item] : [],
  );
}

describe("F26 a command that waits for input", () => {
  test.each([
    ["reads standard input", "cat; echo end", 0, "end\n"],
    ["asks a question", "read -r answer; echo got:$answer", 0, "got:\n"],
    ["asks the terminal for a password", "read -r word < /dev/tty", 1, expect.stringContaining("/dev/tty")],
  ])("one that %s gets nothing and ends; the caller's own open pipe is not for it", async (_, cmd, exit, output) => {
    await using world = await openWorld();
    await using server = await startModelServer({
      script: [{ calls: [{ tool: "exec_command", args: { cmd } }] }, { text: "done" }],
    });
    // A pipe that nobody writes to and nobody closes.
    const wrapper = ["sh", "-c", 'exec 3<>"$0"; exec "$@" <&3', await fifo(world)];
    const ran = await run(execArgs(...askServer(server)), { world, wrapper });
    expect(ran).toMatchObject({ code: 0 });
    expect(itemsOf(ran, "command_execution")).toMatchObject([{ exit_code: exit, aggregated_output: output }]);
    await expectWhole(world);
  });
});

async function fifo(world: World): Promise<string> {
  const file = path.join(world.root, "pipe");
  const { spawnSync } = await import("node:child_process");
  expect(spawnSync("mkfifo", [file]).status).toBe(0);
  return file;
}

describe("F28 an MCP server", () => {
  const FIXTURE = path.join(import.meta.dirname, "..", "packages", "agent", "test", "mcp-stdio-in-child.ts");
  const misbehave = (how: string): object => ({ calls: [{ tool: "mcp__fix__misbehave", args: { how } }] });

  async function play(world: World, mode: string, script: readonly object[], more = ""): Promise<[Ran, ModelServer]> {
    const server = await startModelServer({ script: [...script, { text: "done" }] });
    const args = JSON.stringify([FIXTURE, mode]);
    const table = `mcp_servers.fix={command=${JSON.stringify(process.execPath)},args=${args}${more}}`;
    const ran = await run(execArgs(...askServer(server), "-c", table), { world });
    return [ran, server];
  }

  test("never answers: it costs its start-up time, the turn goes on without it and says so", async () => {
    await using world = await openWorld();
    const [ran, server] = await play(world, "silent", [], ",startup_timeout_sec=0.5");
    await using _server = server;
    expect(ran).toMatchObject({ code: 0 });
    expect(ran.ms).toBeLessThan(10_000);
    expect(itemsOf(ran, "error")).toMatchObject([{ code: "mcp.failed", message: expect.stringContaining("fix") }]);
    await expectWhole(world);
  });

  test("dies in a call: that call fails, and the next one finds it started again", async () => {
    await using world = await openWorld();
    const echo = { calls: [{ tool: "mcp__fix__echo", args: { text: "hello" } }] };
    const [ran, server] = await play(world, "good", [misbehave("die"), echo]);
    await using _server = server;
    expect(ran).toMatchObject({ code: 0 });
    expect(itemsOf(ran, "mcp_tool_call")).toMatchObject([
      { status: "failed", error: { message: expect.stringContaining("out of memory") } },
      { status: "completed", result: { content: [{ text: "hello" }] } },
    ]);
    await expectWhole(world);
  });

  test.each([
    ["closes its output but lives", "close"],
    ["does not answer a call", "hang"],
  ])("%s: the call ends at its limit", async (_, how) => {
    await using world = await openWorld();
    const [ran, server] = await play(world, "good", [misbehave(how)], ",tool_timeout_sec=1");
    await using _server = server;
    expect(ran).toMatchObject({ code: 0 });
    expect(itemsOf(ran, "mcp_tool_call")).toMatchObject([{ status: "failed", error: { message: expect.any(String) } }]);
    await expectWhole(world);
  });

  test("answers with 50 MB: the call fails, and memory and record stay small", async () => {
    await using world = await openWorld();
    const [ran, server] = await play(world, "good", [misbehave("huge")]);
    await using _server = server;
    expect(ran).toMatchObject({ code: 0 });
    expect(itemsOf(ran, "mcp_tool_call")).toMatchObject([{ status: "failed" }]);
    expect(ran.stdout.length).toBeLessThan(100_000);
    await expectWhole(world);
  });

  test("floods Heddle with notifications: it is ended, and the turn goes on without it", async () => {
    await using world = await openWorld();
    const [ran, server] = await play(world, "floods", []);
    await using _server = server;
    expect(ran).toMatchObject({ code: 0 });
    await expectWhole(world);
  });
});

describe("F30 a compaction", () => {
  const SMALL = ["-c", "model_context_window=8000", "-c", "model_auto_compact_token_limit=6000"];
  const TOO_LARGE = {
    kind: "status" as const,
    status: 400,
    body: { error: { code: "context_length_exceeded", message: "maximum context length exceeded" } },
  };
  const isForSummary = ({ body }: RecordedRequest): boolean =>
    JSON.stringify(body).includes("Write the summary it will continue from");
  const long = `answer ${"a".repeat(12_000)}`;

  async function turns(world: World, server: ModelServer, count: number, env = {}): Promise<readonly Ran[]> {
    const runs: Ran[] = [];
    for (let turn = 1; turn <= count; turn += 1) {
      const resume = turn === 1 ? [] : ["resume", "--last"];
      const more = turn === count ? { env } : {};
      runs.push(
        await run(["exec", "--json", ...askServer(server), ...SMALL, ...resume, `turn ${turn}`], { world, ...more }),
      );
    }
    return runs;
  }

  test("makes room when the settings of the run say so, and the thread continues", async () => {
    await using world = await openWorld();
    await using server = await startModelServer({
      respond: (request) => ({ text: isForSummary(request) ? "SUMMARY of it all" : long }),
    });
    const runs = await turns(world, server, 4);
    expect(runs.map(({ code }) => code)).toEqual([0, 0, 0, 0]);
    expect(server.requests.some(isForSummary)).toBe(true);
    expect(JSON.stringify(server.requests.at(-1)?.body)).toContain("SUMMARY of it all");
    await expectWhole(world);
  });

  test("that fails keeps the old context, is told, and the turn still ends", async () => {
    await using world = await openWorld();
    await using server = await startModelServer({
      respond: () => ({ text: long }),
      faults: (request) => (isForSummary(request) ? { kind: "status", status: 401 } : undefined),
    });
    const runs = await turns(world, server, 3);
    const last = runs.at(-1);
    expect(last).toMatchObject({ code: 0 });
    expect(server.requests.some(isForSummary)).toBe(true);
    expect(JSON.stringify(server.requests.at(-1)?.body)).toMatch(/turn 1.*turn 2.*turn 3/);
    expect(last === undefined ? [] : itemsOf(last, "error")).toMatchObject([
      { message: expect.stringContaining("stays as it was") },
    ]);
    expect(jsonLines(last?.stdout ?? "").at(-1)).toMatchObject({ type: "turn.completed" });
    await expectWhole(world);
  });

  test("that overflows too ends the turn with its code", async () => {
    await using world = await openWorld();
    await using server = await startModelServer({
      respond: () => ({ text: long }),
      faults: ({ body }) => (JSON.stringify(body).includes("turn 2") ? TOO_LARGE : undefined),
    });
    const [, last] = await turns(world, server, 2);
    expect(last).toMatchObject({ code: 4 });
    expect(jsonLines(last?.stdout ?? "").at(-1)).toMatchObject({
      type: "turn.failed",
      error: { code: "provider.context-exceeded" },
    });
    await expectWhole(world);
  });

  test("in which Heddle is killed leaves the old context and one end of the turn", async () => {
    await using world = await openWorld();
    await using server = await startModelServer({
      respond: (request) => ({ text: isForSummary(request) ? "SUMMARY of it all" : long }),
    });
    const failpoint = { HEDDLE_FAILPOINT: "turn.after-response=kill" };
    const runs = await turns(world, server, 2, failpoint);
    expect(runs.map(({ code, signal }) => code ?? signal)).toEqual([0, "SIGKILL"]);
    expect(server.requests.map(isForSummary).at(-1)).toBe(true);
    const next = await run(["exec", "--json", ...askServer(server), "resume", "--last", "go on"], { world });
    expect(next).toMatchObject({ code: 0 });
    const sent = JSON.stringify(server.requests.at(-1)?.body);
    expect(sent).toMatch(/turn 1.*turn 2.*go on/);
    expect(sent).not.toContain("SUMMARY");
    await expectWhole(world);
  });
});
