/** Traces and metrics as an operator sees them: a real server and a real run, a real collector. */
import { expect, test } from "vitest";
import { openCollector } from "@heddle/runtime/testing";
import { openMockWorld } from "../../test/mock-model.ts";
import { isTurnEnd, newThread, startServe } from "../../test/serve-client.ts";

test("serve and exec send a trace for each turn, with its sandbox, requests, calls and appends", async () => {
  const answers = [
    { calls: [{ tool: "exec_command", args: { cmd: "echo said-by-a-command" } }] },
    { text: "said-by-it" },
  ];
  await using collector = await openCollector();
  await using mock = await openMockWorld({ script: [...answers, ...answers] });
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url };
  const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
  {
    await using served = await startServe(mock.world, { env, args: ["--log", "json"] });
    const threadId = await newThread(served);
    const answer = await fetch(`${served.url}/api/threads/${threadId}/turns`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${served.token}`,
        "content-type": "application/json",
        traceparent: `00-${traceId}-00f067aa0ba902b7-01`,
      },
      body: JSON.stringify({ input: "said-by-the-user" }),
    });
    expect(answer.status).toBe(202);
    const events = await served.events(threadId, isTurnEnd);
    expect(events.find(({ body }) => body.type === "turn.admitted")?.body).toMatchObject({
      traceparent: `00-${traceId}-00f067aa0ba902b7-01`,
    });
    await collector.has("turn", "model request", "tool call", "append", "sandbox");
    expect((await served.call("GET", "/livez")).status).toBe(200);
    const wrong = await fetch(`${served.url}/metrics`, { headers: { authorization: "Bearer guessed-by-somebody" } });
    expect(wrong.status).toBe(401);
    served.running.child.kill("SIGTERM");
    const { code, stderr } = await served.running.ended;
    const lines = stderr.trimEnd().split("\n");
    const logged = lines.map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>);
    const turnId = String(logged.find(({ event }) => event === "turn.admitted")?.["turnId"]);
    expect([code, logged]).toEqual([
      0,
      [
        expect.objectContaining({ level: "info", event: "listening", address: served.url }),
        expect.objectContaining({ level: "info", event: "listening", address: expect.stringContaining("serve.sock") }),
        expect.objectContaining({ level: "info", event: "turn.admitted", threadId, turnId }),
        expect.objectContaining({ level: "info", event: "turn.completed", threadId, turnId, status: "completed" }),
        expect.objectContaining({
          level: "warn",
          event: "login.refused",
          code: "door.unauthorized",
          address: "127.0.0.1",
        }),
        expect.objectContaining({ level: "info", event: "note", message: expect.stringContaining("drains") }),
      ],
    ]);
    expect(stderr).not.toMatch(/said-by|guessed/);
    expect(new Set(collector.spans.map((span) => span.traceId))).toEqual(new Set([traceId]));
  }
  const ran = await mock.exec(["go"], { env });
  expect(ran).toMatchObject({ code: 0, stderr: expect.not.stringContaining("trace") });
  const turns = collector.spans.filter(({ name }) => name === "turn");
  expect(turns).toHaveLength(2);
  expect(turns[1]?.traceId).not.toBe(traceId);
  expect(collector.bodies.join("")).not.toMatch(/said-by/);
  // Nobody answers there: the run is as it was.
  await using hanging = await openCollector({ hangs: true });
  await using again = await openMockWorld({ script: answers });
  const hung = await again.exec(["go"], { env: { OTEL_EXPORTER_OTLP_ENDPOINT: hanging.url } });
  expect(hung).toMatchObject({ code: 0, stdout: expect.stringContaining("said-by-it") });
}, 60_000);
