/** F18 to F21 through `heddle exec`: whatever a model server does, the run ends with a typed reason, in bounded time, whole. */
import { startModelServer, type Fault, type ModelServer } from "@heddle/models/testing";
import { describe, expect, test } from "vitest";
import { checkHome, NOTHING_FOUND } from "./checker.ts";
import { execArgs, figure, jsonLines, openWorld, run, start, type Line, type Ran, type World } from "./world.ts";

const SCRIPT = [
  { text: "I will look at it first, and then say what I saw.", calls: [shell("echo once >> effects.log")] },
  { text: "Seen, and this is what I have to say about it." },
];
/** The promise is 100 ms inside Heddle; a process that shares two cores needs some more to be woken. */
const ABORT_MS = 100 + 400;

function shell(cmd: string): { tool: string; args: { cmd: string } } {
  return { tool: "exec_command", args: { cmd } };
}

/** `base_url` of another address than the server, where a test needs one. */
function asking(
  server: ModelServer,
  settings = "request_max_retries=0,stream_max_retries=1",
  baseUrl = `${server.url}/v1`,
): string[] {
  const table = `model_providers.test={base_url="${baseUrl}",wire_api="responses",${settings}}`;
  return execArgs("-c", "model_provider=test", "-c", table, "-m", "gpt-5.5");
}

function codesOf({ stdout }: Ran, type: string): readonly (string | undefined)[] {
  return jsonLines(stdout)
    .filter((line) => line.type === type)
    .map(({ code, error }) => code ?? error?.code);
}

async function expectWhole(world: World): Promise<void> {
  const effects = await world.effects();
  expect(await checkHome(world.home, { acknowledged: [], effects })).toEqual(NOTHING_FOUND);
}

describe("F18 a provider that stalls", () => {
  const FAULT_POINTS = ["before-headers", "after-headers", "mid-delta", "mid-args", "after-last-delta"] as const;
  const SHORT = "request_max_retries=0,stream_max_retries=1,stream_idle_timeout_ms=300";

  test.each(FAULT_POINTS.slice(2))(
    "%s once: the silence ends it, it is asked again, and nothing is done twice",
    async (at) => {
      await using world = await openWorld();
      await using server = await startModelServer({ script: SCRIPT, faults: [{ kind: "stall", at }] });
      const ran = await run(asking(server, SHORT), { world });
      expect(ran).toMatchObject({ code: 0 });
      expect(codesOf(ran, "error")).toEqual(["provider.stalled"]);
      expect(jsonLines(ran.stdout).at(-1)).toMatchObject({ type: "turn.completed" });
      expect(server.requests).toHaveLength(3);
      expect(await world.effects()).toEqual(["once"]);
      await expectWhole(world);
    },
  );

  test("mid-delta for ever: the turn fails and says so, after all tries", async () => {
    await using world = await openWorld();
    await using server = await startModelServer({ script: SCRIPT, faults: () => ({ kind: "stall", at: "mid-delta" }) });
    const ran = await run(asking(server, SHORT), { world });
    expect(ran).toMatchObject({ code: 4 });
    expect(codesOf(ran, "turn.failed")).toEqual(["provider.stalled"]);
    expect(server.requests).toHaveLength(2);
    await expectWhole(world);
  });

  test.each(FAULT_POINTS)("%s: an interrupt meanwhile lets go of it at once and ends the turn", async (at) => {
    await using world = await openWorld();
    await using server = await startModelServer({ script: SCRIPT, faults: () => ({ kind: "stall", at }) });
    await using running = start(asking(server), { world });
    const request = await server.arrived(0);
    await running.sees(at === "before-headers" || at === "after-headers" ? "turn.started" : "thread.started");
    const from = performance.now();
    running.child.kill("SIGINT");
    await request.closed;
    const ms = performance.now() - from;
    figure(`F18: ${at}: let go after ${Math.round(ms)} ms`);
    expect(ms).toBeLessThan(ABORT_MS);
    const ran = await running.ended;
    expect(ran).toMatchObject({ code: 130 });
    expect(jsonLines(ran.stdout).at(-1)).toMatchObject({ type: "turn.failed", status: "interrupted" });
    await expectWhole(world);
  });
});

describe("F19 an answer that is no answer", () => {
  const HUGE = 10 * 1024 * 1024;
  test.each<[string, Fault, string]>([
    ["bytes that are not UTF-8", { kind: "bad-utf8" }, "provider.malformed"],
    ["an event of 10 MB", { kind: "huge-event", bytes: HUGE }, "provider.malformed"],
    ["a page with status 200", { kind: "body", body: "<html>hi", contentType: "text/html" }, "provider.malformed"],
    ["a document with status 200", { kind: "body", body: '{"id":1}' }, "provider.malformed"],
    ["no end mark", { kind: "no-end-mark" }, "provider.cut"],
  ])("%s: a typed failure with what came, and no crash", async (_, fault, code) => {
    await using world = await openWorld();
    await using server = await startModelServer({ script: SCRIPT, faults: () => fault });
    const ran = await run(asking(server), { world });
    expect(ran).toMatchObject({ code: 4, signal: null });
    const failed = jsonLines(ran.stdout).at(-1);
    expect(failed).toMatchObject({ type: "turn.failed", error: { code, details: { firstBytes: expect.any(String) } } });
    // A byte is one character at most.
    expect(detail(failed, "firstBytes").length).toBeLessThanOrEqual(200);
    await expectWhole(world);
  });

  test("comments for ever are signs of life, not an answer: stopping it needs no answer either", async () => {
    await using world = await openWorld();
    await using server = await startModelServer({ script: SCRIPT, faults: () => ({ kind: "comments", everyMs: 1 }) });
    const ran = await run([...asking(server), "--timeout", "1"], { world });
    expect(ran).toMatchObject({ code: 124 });
    await expectWhole(world);
  });

  test.each<[string, Fault]>([
    ["events nobody knows", { kind: "unknown-events" }],
    ["mixed line ends", { kind: "line-ends" }],
    ["characters cut between packets", { kind: "pieces", bytes: 1 }],
    ["a line that is not JSON in an answer that is whole", { kind: "malformed" }],
  ])("%s: the turn is the same as without", async (_, fault) => {
    await using world = await openWorld();
    const words = "Grüße, 世界 🌍.";
    await using server = await startModelServer({ script: [{ text: words }], faults: () => fault });
    const ran = await run(asking(server), { world });
    expect(ran).toMatchObject({ code: 0 });
    expect(jsonLines(ran.stdout).map(({ type }) => type)).toEqual([
      "thread.started",
      "turn.started",
      "item.completed",
      "turn.completed",
    ]);
    expect(jsonLines(ran.stdout)[2]?.item).toMatchObject({ type: "agent_message", text: words });
    expect(server.requests).toHaveLength(1);
    expect(ran.stderr.includes("could not be read")).toBe(fault.kind === "malformed");
  });
});

describe("F20 a provider that refuses", () => {
  test.each<[string, Fault, string, number, number]>([
    ["500", { kind: "status", status: 500 }, "provider.overloaded", 4, 2],
    ["502 with a page", { kind: "status", status: 502, body: "<html>" }, "provider.overloaded", 4, 2],
    ["503", { kind: "status", status: 503 }, "provider.overloaded", 4, 2],
    ["529", { kind: "status", status: 529 }, "provider.overloaded", 4, 2],
    ["429", { kind: "status", status: 429 }, "provider.rate-limited", 4, 2],
    ["a reset before the headers", { kind: "reset", at: "before-headers" }, "provider.unreachable", 4, 2],
    ["a reset inside a delta", { kind: "reset", at: "mid-delta" }, "provider.cut", 4, 2],
    ["429 for an hour", retryAfter("3600"), "provider.rate-limited", 4, 1],
    ["401", { kind: "status", status: 401 }, "auth.rejected", 3, 1],
    ["407", { kind: "status", status: 407 }, "provider.rejected", 4, 1],
    ["413", { kind: "status", status: 413 }, "provider.context-exceeded", 4, 1],
  ])("%s for ever: its code, its cause, and no request too many", async (_, fault, code, exit, requests) => {
    await using world = await openWorld();
    await using server = await startModelServer({ script: SCRIPT, faults: () => fault });
    const ran = await run(asking(server), { world });
    expect(ran).toMatchObject({ code: exit });
    expect(codesOf(ran, "turn.failed")).toEqual([code]);
    expect(server.requests).toHaveLength(requests);
    // Each retry is a line, and the failure itself is one.
    expect(codesOf(ran, "error")).toEqual(Array(requests).fill(code));
    await expectWhole(world);
  });

  test("four retries are five tries in all, each told with its pause", async () => {
    await using world = await openWorld();
    await using server = await startModelServer({ script: SCRIPT, faults: () => ({ kind: "status", status: 503 }) });
    const ran = await run(asking(server, 'name="Test",request_max_retries=0,stream_max_retries=4'), { world });
    expect(ran).toMatchObject({ code: 4 });
    expect(server.requests).toHaveLength(5);
    const pauses = jsonLines(ran.stdout).flatMap((line) =>
      line.type === "error" ? [Number(detail(line, "delay_ms"))] : [],
    );
    for (const [index, ms] of pauses.slice(0, 4).entries()) {
      expect(ms).toBeGreaterThanOrEqual(100 * 2 ** index);
      expect(ms).toBeLessThanOrEqual(200 * 2 ** index);
    }
  });

  test.each([
    ["seconds", () => "1"],
    ["a date", () => new Date(Date.now() + 2000).toUTCString()],
  ])("Retry-After in %s is obeyed", async (_, value) => {
    await using world = await openWorld();
    await using server = await startModelServer({ script: [{ text: "hi" }], faults: [retryAfter(value())] });
    const ran = await run(asking(server), { world });
    expect(ran).toMatchObject({ code: 0 });
    const [retry] = jsonLines(ran.stdout).filter(({ type }) => type === "error");
    expect(Number(detail(retry, "delay_ms"))).toBeGreaterThan(0);
    expect(Number(detail(retry, "delay_ms"))).toBeLessThanOrEqual(2000);
  });

  test("401 in the middle of a turn ends it, and what was done is kept and not done again", async () => {
    await using world = await openWorld();
    await using server = await startModelServer({
      script: SCRIPT,
      faults: [undefined, { kind: "status", status: 401 }],
    });
    const ran = await run(asking(server), { world });
    expect(ran).toMatchObject({ code: 3 });
    expect(await world.effects()).toEqual(["once"]);
    await expectWhole(world);
  });

  test.each([
    ["a host that cannot be found", `http://${"a".repeat(64)}.invalid/v1`],
    ["a server that does not speak TLS", "https"],
  ])("%s: a typed failure", async (_, address) => {
    await using world = await openWorld();
    await using server = await startModelServer({ script: SCRIPT });
    const baseUrl = address === "https" ? `${server.url.replace("http:", "https:")}/v1` : address;
    const ran = await run(asking(server, "request_max_retries=0,stream_max_retries=0", baseUrl), { world });
    expect(ran).toMatchObject({ code: 4 });
    expect(codesOf(ran, "turn.failed")).toEqual(["provider.unreachable"]);
    await expectWhole(world);
  });
});

describe("F21 calls that make no sense", () => {
  test("the same call twice is done once, another call of the same id under a name of its own", async () => {
    await using world = await openWorld();
    const call = (cmd: string): object => functionCall("c1", "exec_command", JSON.stringify({ cmd }));
    const [one, two] = ["echo one >> effects.log", "echo two >> effects.log"];
    await using server = await startModelServer({
      script: [{ text: "never played" }, { text: "done" }],
      faults: [{ kind: "body", body: answerOf([call(one), call(one), call(two)]) }],
    });
    const ran = await run(asking(server), { world });
    expect(ran).toMatchObject({ code: 0 });
    expect((await world.effects()).toSorted()).toEqual(["one", "two"]);
    await expectWhole(world);
  });

  test("arguments that are not JSON are an error for the model, and the turn continues", async () => {
    await using world = await openWorld();
    await using server = await startModelServer({
      script: [{ text: "never played" }, { text: "done" }],
      faults: [{ kind: "body", body: answerOf([functionCall("c1", "exec_command", "{cmd: echo}")]) }],
    });
    const ran = await run(asking(server), { world });
    expect(ran).toMatchObject({ code: 0 });
    expect(JSON.stringify(server.requests[1]?.body)).toMatch(/function_call_output.*not (valid )?JSON/i);
    await expectWhole(world);
  });

  test("of a thousand calls at once 32 are done, and the model is told of the rest", async () => {
    await using world = await openWorld();
    const calls = Array.from({ length: 1000 }, (_, index) => shell(`echo ${index} >> effects.log`));
    await using server = await startModelServer({ script: [{ calls }, { text: "done" }] });
    const ran = await run(asking(server), { world, deadlineMs: 60_000 });
    expect(ran).toMatchObject({ code: 0 });
    expect(new Set(await world.effects())).toEqual(new Set(Array.from({ length: 32 }, (_, index) => String(index))));
    expect(JSON.stringify(server.requests[1]?.body)).toMatch(/968/);
    await expectWhole(world);
  });
});

function retryAfter(value: string): Fault {
  return { kind: "status", status: 429, headers: { "retry-after": value } };
}

function functionCall(callId: string, name: string, args: string): object {
  return { type: "function_call", id: `fc_${callId}`, call_id: callId, name, arguments: args };
}

/** A whole answer of the Responses wire with these items. */
function answerOf(output: readonly object[]): string {
  const done = output.map((item, output_index) => ({ type: "response.output_item.done", output_index, item }));
  const usage = { input_tokens: 1, output_tokens: 1 };
  const events = [...done, { type: "response.completed", response: { id: "resp_1", output, usage } }];
  return events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("");
}

function detail(line: Line | undefined, name: string): string {
  const holder: unknown = line?.error ?? line;
  const details = typeof holder === "object" && holder !== null && "details" in holder ? holder.details : undefined;
  const found = typeof details === "object" && details !== null ? Reflect.get(details, name) : undefined;
  return String(found ?? "");
}
