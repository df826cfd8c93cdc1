import { readFile } from "node:fs/promises";
import path from "node:path";
import { startModelServer, type ModelServer } from "@heddle/models/testing";
import { RunResult } from "@heddle/protocol/run-result";
import { expect, test } from "vitest";
import { openWorld, run, type Ran, type World } from "../../test/heddle-process.ts";

const KEY = { MOCK_KEY: "test-key-of-the-mock" };

async function ask(world: World, server: ModelServer, ...flags: readonly string[]): Promise<Ran> {
  await world.file(
    "home/config.toml",
    `model = "m"\nmodel_provider = "mock"\n[model_providers.mock]\nbase_url = "${server.url}/v1"\nenv_key = "MOCK_KEY"\nrequest_max_retries = 0\nstream_max_retries = 0\n`,
  );
  const result = path.join(world.root, "result.json");
  return run(["exec", "--json", "-s", "workspace-write", "--result-json", result, ...flags, "go"], { world, env: KEY });
}

const resultIn = async (world: World): Promise<RunResult> =>
  RunResult.parse(JSON.parse(await readFile(path.join(world.root, "result.json"), "utf8")));

const types = ({ stdout }: Ran): readonly string[] =>
  stdout
    .trimEnd()
    .split("\n")
    .map((line) => String(JSON.parse(line).type));

const OVERLOADED = { kind: "status", status: 503 } as const;

test("R4: a failure before anything was done begins the run again, in a new thread, and both attempts are told", async () => {
  await using world = await openWorld();
  await using server = await startModelServer({ script: [{ text: "second time" }], faults: [OVERLOADED] });
  const ran = await ask(world, server, "--retry", "1");
  expect(ran.code).toBe(0);
  const result = await resultIn(world);
  expect(result).toMatchObject({
    status: "completed",
    response: "second time",
    num_turns: 2,
    attempts: [
      { attempt: 1, mode: "first", status: "failed", reason: "provider.overloaded" },
      { attempt: 2, mode: "restart", status: "completed" },
    ],
  });
  expect(result.attempts[0]?.thread_id).not.toBe(result.attempts[1]?.thread_id);
  expect(types(ran)).toContain("heddle.run.retried");
  // The failed attempt is not the end of the run, so no line says that a turn has failed.
  expect(types(ran)).not.toContain("turn.failed");
  expect(types(ran).at(-1)).toBe("heddle.run.finished");
});

test("R4: after something was done the same thread goes on, and nothing is done twice", async () => {
  await using world = await openWorld();
  await using server = await startModelServer({
    script: [{ calls: [{ tool: "exec_command", args: { cmd: "echo once >> done.txt" } }] }, { text: "and finished" }],
    faults: [undefined, OVERLOADED],
  });
  const ran = await ask(world, server, "--retry", "2", "-c", "model=gpt-x");
  expect(ran.code).toBe(0);
  const result = await resultIn(world);
  expect(result.attempts.map(({ mode, status }) => [mode, status])).toEqual([
    ["first", "failed"],
    ["resume", "completed"],
  ]);
  expect(new Set(result.attempts.map(({ thread_id }) => thread_id)).size).toBe(1);
  expect(await readFile(path.join(world.workspace, "done.txt"), "utf8")).toBe("once\n");
  // The turn's own figures are one answer's, the thread's are both.
  const end = ran.stdout.split("\n").find((line) => line.includes('"turn.completed"')) ?? "{}";
  expect(JSON.parse(end)).toMatchObject({ usage: { input_tokens: 100 }, thread_usage: { input_tokens: 200 } });
  expect(JSON.stringify(server.requests.at(-1)?.body)).toContain("provider.overloaded");
});

test("a failure that waiting cannot clear is not tried again, and retries end with the last failure", async () => {
  await using world = await openWorld();
  await using refusing = await startModelServer({ faults: () => ({ kind: "status", status: 400 }) });
  expect(await ask(world, refusing, "--retry", "3")).toMatchObject({ code: 4 });
  expect(refusing.requests).toHaveLength(1);
  await using busy = await startModelServer({ faults: () => OVERLOADED });
  const ran = await ask(world, busy, "--retry", "1");
  expect(ran.code).toBe(4);
  expect(busy.requests).toHaveLength(2);
  expect(types(ran).slice(-2)).toEqual(["turn.failed", "heddle.run.finished"]);
  expect(await resultIn(world)).toMatchObject({ status: "failed", retryable: true, attempts: [{}, {}] });
});

test("the attempts of a run share its limits", async () => {
  await using world = await openWorld();
  await using server = await startModelServer({ script: [{ text: "never" }], faults: () => OVERLOADED });
  expect(await ask(world, server, "--retry", "5", "--max-turns", "2")).toMatchObject({ code: 4 });
  expect(server.requests).toHaveLength(2);
});
