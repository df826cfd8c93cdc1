/** An editor in front of other agents: what it sees is the same, whoever carries out the turn. */
import { stat } from "node:fs/promises";
import path from "node:path";
import { expect, inject, test } from "vitest";
import { allow, newSession, serveAcp, textPrompt } from "../../test/acp-client.ts";
import { at, text } from "../../test/app-server-client.ts";
import { openWorld } from "../../test/heddle-process.ts";

const children = inject("children");

async function openPlayed(protocol: string, steps: readonly object[]) {
  const ends = new AsyncDisposableStack();
  const world = ends.use(await openWorld());
  const args = [path.join(children, "agent-play-in-child.mjs"), protocol, JSON.stringify(steps)];
  await world.file(
    "home/config.toml",
    `[runners.played]\nprotocol = "${protocol}"\ncommand = ${JSON.stringify(process.execPath)}\nargs = ${JSON.stringify(args)}\nhosts = []\nfolders = []\n`,
  );
  const options = ["--runner", "played", "--envelope", "edit", "-c", "approval_policy=untrusted"];
  const { client } = ends.use(serveAcp(options, { world, env: {} }));
  await client.initialize();
  const sessionId = await newSession(client, world.workspace);
  return { world, client, sessionId, [Symbol.asyncDispose]: () => ends.disposeAsync() };
}

test.each(["codex", "claude", "acp"])(
  "a command of an agent that speaks %s is shown, asked about, run, and its text comes after it",
  async (protocol) => {
    await using opened = await openPlayed(protocol, [{ runs: "echo one; touch made" }, { says: "All done." }]);
    const { client, sessionId, world } = opened;
    client.answer = allow("allow");
    expect(await client.call("session/prompt", { sessionId, prompt: textPrompt("go") })).toMatchObject({
      stopReason: "end_turn",
    });
    const asked = client.received.find(({ method }) => method === "session/request_permission");
    const id = text(asked, "params.toolCall.toolCallId");
    const states = client.updates().filter((one) => at(one, "toolCallId") === id);
    expect(states[0]).toMatchObject({ sessionUpdate: "tool_call", kind: "execute" });
    expect(states.at(-1)).toMatchObject({ sessionUpdate: "tool_call_update", status: "completed" });
    expect(JSON.stringify(states.at(-1))).toContain("one");
    expect(client.said()).toBe("All done.");
    await stat(path.join(world.workspace, "made"));
    expect(client.malformed).toEqual([]);
  },
);

test.each(["codex", "claude", "acp"])(
  "a rejected command of an agent that speaks %s has failed at the editor, and did not run",
  async (protocol) => {
    await using opened = await openPlayed(protocol, [{ runs: "touch made" }, { says: "Then not." }]);
    const { client, sessionId, world } = opened;
    client.answer = allow("reject");
    await client.call("session/prompt", { sessionId, prompt: textPrompt("go") });
    expect(client.updates("tool_call_update").at(-1)).toMatchObject({ status: "failed" });
    await expect(stat(path.join(world.workspace, "made"))).rejects.toThrow();
  },
);

test("a cancel ends the command of another agent", async () => {
  await using opened = await openPlayed("claude", [{ runs: "echo begun; sleep 30" }, { says: "Never." }]);
  const { client, sessionId } = opened;
  client.answer = allow("allow");
  const id = client.request("session/prompt", { sessionId, prompt: textPrompt("go") });
  await client.waitFor((wire) => at(wire, "params.update.status") === "in_progress");
  client.note("session/cancel", { sessionId });
  expect((await client.answerTo(id)).result).toMatchObject({ stopReason: "cancelled" });
  expect(client.said()).toBe("");
});

test("what the program of a runner is not found for is an error with its code", async () => {
  await using world = await openWorld();
  await world.file("home/config.toml", `[runners.played]\nprotocol = "acp"\ncommand = "/nowhere/agent"\n`);
  await using served = serveAcp(["--runner", "played"], { world, env: {} });
  const { client } = served;
  await client.initialize();
  const begun = await client.ask("session/new", { cwd: world.workspace, mcpServers: [] });
  const sessionId = at(begun, "result.sessionId");
  const { error } =
    begun.error === undefined ? await client.ask("session/prompt", { sessionId, prompt: textPrompt("go") }) : begun;
  expect(error).toMatchObject({ data: { code: "runner.missing" } });
});
