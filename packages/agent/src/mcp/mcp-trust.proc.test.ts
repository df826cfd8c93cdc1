import { startModelServer } from "@heddle/models/testing";
import { expect, test } from "vitest";
import { fixture, mcpCall, mcpItems, notices, play } from "../../test/mcp-play.ts";
import { startModernHttp } from "../../test/mcp-modern.ts";
import { openTestHeddle } from "../../test/test-heddle.ts";

interface Offered {
  readonly name: string;
  readonly description: string;
  readonly parameters: unknown;
}

const offeredIn = (body: unknown): readonly Offered[] => (body as { tools: Offered[] }).tools;

test("a tool that needs a person is declined where nobody can be asked, in words that say what to do", async () => {
  await using t = await openTestHeddle({
    script: [{ calls: [mcpCall("write", { path: "x" }), mcpCall("echo", { text: "read-only" })] }, { text: "done" }],
    mcpServers: [fixture("good", { approval: "prompt" })],
  });
  const { status, bodies } = await play(t);
  expect(status).toBe("completed");
  expect(mcpItems(bodies).map((item) => item.status)).toEqual(["declined", "completed"]);
  const settled = bodies.find((body) => body.type === "tool.settled");
  expect(settled).toMatchObject({ outcome: "denied", failure: { code: "policy.denied" } });
  expect(JSON.stringify(settled)).toContain("--allow-tool mcp.fix.write");
  expect(bodies.filter(({ type }) => type === "tool.intended")).toHaveLength(1);
});

test.each(["mcp__fix__write", "mcp.fix.write", "mcp.fix.*"])(
  "the same tool runs unattended when the run allows %s",
  async (allowed) => {
    await using t = await openTestHeddle({
      script: [{ calls: [mcpCall("write", { path: "x" })] }, { text: "done" }],
      settings: { allowedTools: ["exec_command", allowed] },
      mcpServers: [fixture("good", { approval: "prompt" })],
    });
    const { bodies } = await play(t);
    expect(mcpItems(bodies).map((item) => item.status)).toEqual(["completed"]);
  },
);

test("a run that allows only some tools has no MCP tools but those", async () => {
  await using t = await openTestHeddle({
    script: [{ calls: [mcpCall("write", { path: "x" }), mcpCall("echo", { text: "here" })] }, { text: "done" }],
    settings: { allowedTools: ["mcp.fix.echo"] },
    mcpServers: [fixture()],
  });
  const { bodies } = await play(t);
  const outcomes = bodies.flatMap((body) => (body.type === "tool.settled" ? [body.outcome] : []));
  expect(outcomes).toEqual(["denied", "ok"]);
});

test("tools are denied, enabled and disabled one by one", async () => {
  await using model = await startModelServer({ script: [{ text: "done" }] });
  await using t = await openTestHeddle({
    providers: [model.provider("openai-responses")],
    settings: { provider: "test", model: "gpt-5.5" },
    mcpServers: [
      fixture("good", {
        enabledTools: ["echo", "write", "dial"],
        disabledTools: ["dial"],
        toolApproval: { write: "deny" },
      }),
    ],
  });
  await play(t);
  const names = offeredIn(model.requests[0]?.body).map(({ name }) => name);
  expect(names.filter((name) => name.startsWith("mcp__"))).toEqual(["mcp__fix__echo"]);
});

test("a person is asked, and an answer for the thread does not cover another definition of the tool", async () => {
  await using t = await openTestHeddle({
    script: [
      { calls: [mcpCall("misbehave", { how: "change" })] },
      { calls: [mcpCall("misbehave", { how: "change" })] },
      { text: "done" },
    ],
    isUnattended: false,
    settings: { approvalPolicy: "on-request" },
    mcpServers: [fixture("good", { approval: "prompt" })],
  });
  const turn = await t.start("go");
  const first = await t.next(turn.threadId, "approval.requested");
  expect(first.question).toMatchObject({ kind: "tool", tool: "mcp.fix.misbehave", definition: expect.any(String) });
  await t.heddle
    .as("user:owner")
    .answer({ threadId: turn.threadId, approvalId: first.approvalId, decision: "acceptForThread" });
  // The same act again, but the server has changed what the tool is: it is listed again and asked about again.
  const second = await nextQuestion(t, turn.threadId, 2);
  await t.heddle
    .as("user:owner")
    .answer({ threadId: turn.threadId, approvalId: second.approvalId, decision: "decline" });
  await turn.done;
  const bodies = (await t.events(turn.threadId)).map(({ body }) => body);
  const lists = bodies.flatMap((body) => (body.type === "mcp.listed" ? [body.changed] : []));
  expect(lists).toEqual([[], ["misbehave"]]);
  expect(mcpItems(bodies).map((item) => item.status)).toEqual(["completed", "declined"]);
});

async function nextQuestion(
  t: Awaited<ReturnType<typeof openTestHeddle>>,
  threadId: string,
  number: number,
): Promise<{ readonly approvalId: string }> {
  let seen = 0;
  const signal = AbortSignal.timeout(60_000);
  for await (const { body } of t.heddle.journal.tail({ stream: threadId, after: 0, signal })) {
    if (body.type === "approval.requested" && (seen += 1) === number) return body;
  }
  throw new Error(`question ${number} never came`);
}

test("a server of the stateless era that announces a change is listed again before the next request", async () => {
  await using http = await startModernHttp();
  let lists = 0;
  const countLists = (): number => http.requests.filter((headers) => headers["mcp-method"] === "tools/list").length;
  await using model = await startModelServer({
    respond: async (request) => {
      if (request.answers === 0) {
        lists = countLists();
        http.announceChange();
        return { calls: [mcpCall("add", { a: 1, b: 1 })] };
      }
      return { text: "done" };
    },
  });
  await using t = await openTestHeddle({
    providers: [model.provider("openai-responses")],
    settings: { provider: "test", model: "gpt-5.5" },
    mcpServers: [{ name: "fix", url: http.url }],
  });
  const { status } = await play(t);
  expect(status).toBe("completed");
  expect(countLists()).toBeGreaterThan(lists);
});

test("a hostile list neither breaks the turn nor reaches the model unbounded", async () => {
  await using model = await startModelServer({ script: [{ text: "done" }] });
  await using t = await openTestHeddle({
    providers: [model.provider("openai-responses")],
    settings: { provider: "test", model: "gpt-5.5" },
    mcpServers: [fixture("hostile")],
  });
  const { status, bodies } = await play(t);
  expect(status).toBe("completed");
  const offered = offeredIn(model.requests[0]?.body);
  const brought = offered.filter(({ name }) => name.startsWith("mcp__"));
  expect(brought).toHaveLength(100);
  expect(Buffer.byteLength(JSON.stringify(brought))).toBeLessThan(140 * 1024);
  for (const { name } of offered) expect(name).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
  expect(new Set(offered.map(({ name }) => name)).size).toBe(offered.length);
  // Not instead of a built-in one.
  const own = offered.filter(({ name }) => name === "exec_command");
  expect(own).toHaveLength(1);
  expect(own[0]?.description).not.toContain("evil");
  const evil = brought.find(({ name }) => name === "mcp__fix__exec_command");
  expect(evil?.description).toBe("<b>bold</b>\\x1b[2J\\u{202e}evil");
  const long = brought.find(({ name }) => name === "mcp__fix__long");
  expect(Buffer.byteLength(long?.description ?? "")).toBeLessThanOrEqual(4096);
  // Two names that would be the same are told apart.
  expect(brought.filter(({ name }) => name.startsWith("mcp__fix__a_b_"))).toHaveLength(2);
  const said = notices(bodies).map(({ level, code, message }) => [level, code, message]);
  expect(said).toEqual([["warning", "mcp.left-out", expect.stringMatching(/^\d+ MCP tools are not offered/)]]);
  expect(JSON.stringify(said)).toContain("a schema of");
  expect(JSON.stringify(bodies).length).toBeLessThan(200_000);
});

test("two servers of one name part keep their tools apart", async () => {
  await using model = await startModelServer({ script: [{ text: "done" }] });
  await using t = await openTestHeddle({
    providers: [model.provider("anthropic")],
    settings: { provider: "test", model: "claude-sonnet-5-5" },
    mcpServers: [fixture("good", { name: "a.b" }), fixture("good", { name: "a b" })],
  });
  await play(t);
  const names = offeredIn(model.requests[0]?.body).map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
  expect(names.filter((name) => name.startsWith("mcp__a_b__echo_"))).toHaveLength(2);
});

test("a server named in the configuration is not started by a turn that is refused", async () => {
  await using t = await openTestHeddle({
    script: [{ text: "done" }],
    settings: { provider: "no-such-provider" },
    mcpServers: [fixture()],
  });
  await expect(t.start("go")).rejects.toMatchObject({ code: "provider.unknown" });
});
