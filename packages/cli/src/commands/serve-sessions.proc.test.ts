/** Sessions of outside agents over the WebSocket of `heddle serve`, by the typed client, through the death of either side. */
import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { connectSessions, HeddleApiError, type SessionConnection } from "@heddle/client";
import { startModelServer } from "@heddle/models/testing";
import { expect, test } from "vitest";
import { pointAt } from "../../test/app-server-client.ts";
import { openWorld, run, type World } from "../../test/heddle-process.ts";
import { startServe, type Served } from "../../test/serve-client.ts";

async function codeOf(refused: Promise<unknown>): Promise<string> {
  return refused.then(
    (answer) => `answered ${JSON.stringify(answer)}`,
    (error: unknown) => (error instanceof HeddleApiError ? error.code : String(error)),
  );
}

async function openServed(world: World): Promise<AsyncDisposable> {
  const model = await startModelServer({ script: [] });
  await pointAt(world, model.url);
  return model;
}

const connect = ({ url, token }: Pick<Served, "url" | "token">): Promise<SessionConnection> =>
  connectSessions({ url, token, name: "probe" });

const textOf = ({ output }: { readonly output: readonly object[] }): string =>
  output.map((part) => ("text" in part ? String(part.text) : "")).join("");

test("the typed client enters, calls with output as it comes, cancels, hops, lists and leaves; the thread verifies", async () => {
  await using world = await openWorld();
  await using _model = await openServed(world);
  await using served = await startServe(world);
  const heddle = await connect(served);
  const session = await heddle.enter({ envelope: "edit", agentName: "probe", approvalPolicy: "never" });
  const seen: string[] = [];
  const command = "echo one; until test -e go; do sleep 0.05; done; echo two";
  const ran = session.tool(
    "bash",
    { command },
    { onOutput: (text) => void (seen.push(text), writeFile(path.join(world.workspace, "go"), "")) },
  );
  expect(textOf(await ran)).toContain("one\ntwo");
  expect(seen.join("")).toBe("one\ntwo\n");
  const control = new AbortController();
  const stopped = session.tool(
    "bash",
    { command: "echo began; sleep 300" },
    { signal: control.signal, onOutput: () => control.abort() },
  );
  expect(await stopped).toMatchObject({ outcome: "cancelled" });
  expect(await session.hop("explore", "to look only")).toMatchObject({ outcome: "ok" });
  expect(session.envelope.id).toBe("explore");
  expect(session.tools.map(({ name }) => name)).not.toContain("write");
  expect(await session.tool("write", { file_path: "a.txt", content: "a" })).toMatchObject({ outcome: "denied" });
  expect(await heddle.sessions()).toMatchObject([{ turnId: session.turnId, agentName: "probe", envelope: "explore" }]);
  expect(await session.leave({ ok: true })).toMatchObject({ status: "left" });
  expect(await session.leave()).toMatchObject({ status: "gone" });
  expect(await codeOf(session.tool("list"))).toBe("turn.not-found");
  expect(await codeOf(connectSessions({ url: served.url, token: "wrong-token-0123456789" }))).toBe(
    "server.unreachable",
  );
  await heddle.close();
  await heddle.closed;
  expect(await run(["verify", session.threadId], { world })).toMatchObject({ code: 0 });
});

test.each([
  ["in a call", true],
  ["between calls", false],
])(
  "W4: killed %s, the server has closed the session when it is back: what had begun is unknown, and nothing runs twice",
  async (_when, isInCall) => {
    await using world = await openWorld();
    await using _model = await openServed(world);
    const first = await startServe(world);
    const heddle = await connect(first);
    const session = await heddle.enter({ envelope: "edit", onDisconnect: "keep" });
    const { turnId, threadId } = session;
    const ran = path.join(world.workspace, "ran");
    await session.tool("bash", { command: "echo one >> ran" }, { callId: "c1" });
    const command = "echo two >> ran; echo began; sleep 300";
    let pending: Promise<string> | undefined;
    if (isInCall) {
      await new Promise<void>((began) => {
        pending = codeOf(session.tool("bash", { command }, { callId: "c2", onOutput: () => began() }));
      });
    }
    first.running.child.kill("SIGKILL");
    await heddle.closed;
    if (pending !== undefined) expect(await pending).toBe("server.unreachable");
    await first.running.ended;

    await using second = await startServe(world);
    const again = await connect(second);
    expect(await again.attach({ turnId, after: 0 })).toMatchObject({
      state: "ended",
      threadId,
      end: { status: "interrupted", failure: { code: "turn.abandoned" } },
      results: [{ callId: "c1", outcome: "ok" }, ...(isInCall ? [{ callId: "c2", outcome: "unknown" }] : [])],
    });
    const call = (callId: string, words: string) =>
      again.call("tool/call", { turnId, callId, tool: "bash", arguments: { command: words } });
    expect(await call("c1", "echo one >> ran")).toMatchObject({ outcome: "ok" });
    if (isInCall)
      expect(await call("c2", command)).toMatchObject({ outcome: "unknown", failure: { code: "turn.abandoned" } });
    else expect(await codeOf(call("c2", command))).toBe("turn.not-found");
    expect(await readFile(ran, "utf8")).toBe(isInCall ? "one\ntwo\n" : "one\n");
    expect(await codeOf(again.resume(turnId))).toBe("turn.not-found");
    // The thread is free, and its next session enters an envelope.
    const next = await again.enter({ threadId, envelope: "explore" });
    await next.leave();
    await again.close();
    const verified = await run(["verify", threadId], { world });
    expect([verified.code, verified.stdout]).toEqual([0, expect.any(String)]);
  },
);
