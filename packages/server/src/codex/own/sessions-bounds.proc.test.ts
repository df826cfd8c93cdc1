/** What a session is held to: frames, paths, time, output and searches, each said to its agent. */
import { existsSync } from "node:fs";
import { mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openChatWorld } from "../../../test/chat-world.ts";
import { outputOf, sessionClient } from "../../../test/session-client.ts";

test("D5: frames that are none, or no calls, get a typed error with their id, and the connection stays", async () => {
  await using world = await openChatWorld();
  const agent = await sessionClient(world);
  const { turnId } = await agent.call("envelope/enter", { envelope: "explore" });
  const { client } = agent;
  const good = JSON.stringify({ id: "after", method: "tool/call", params: { turnId, callId: "a", tool: "list" } });
  const frames: readonly (readonly [string, unknown, number])[] = [
    [`:${good}`, null, -32700],
    ["{", null, -32700],
    ["[]", null, -32600],
    [`[${good}]`, null, -32600],
    ["null", null, -32600],
    ['"tool/call"', null, -32600],
    ['{"id":71}', 71, -32600],
    ['{"id":"b","method":7}', "b", -32600],
    ['{"id":{},"method":"tool/call"}', null, -32600],
    ['{"id":72,"method":""}', 72, -32600],
    ['{"id":73,"method":"tool/cal"}', 73, -32600],
    ['{"id":74,"method":"tool/call","params":[]}', 74, -32602],
    ['{"id":75,"method":"tool/call","params":{"turnId":" "}}', 75, -32602],
  ];
  for (const [frame, id, code] of frames) {
    const from = client.received.length;
    client.socket.write(`${frame}\n`);
    const { error, id: answered } = await client.waitFor((received) => received.error !== undefined, from);
    expect([frame, answered ?? null, error?.code]).toEqual([frame, id, code]);
  }
  const call = (params: object) => agent.refused("tool/call", { turnId, callId: "x", tool: "list", ...params });
  for (const params of [
    { callId: "" },
    { callId: "y".repeat(201) },
    { tool: "" },
    { arguments: [] },
    { arguments: "ls" },
    { arguments: null },
    { more: 1 },
  ]) {
    expect(await call(params)).toMatch(/^usage\.invalid invalid params: \S/);
  }
  // A tool that is none is no frame's fault: it is a result, and on record.
  for (const tool of [":bash", " ", "bash ", "no_such_tool", "__proto__"]) {
    const named = { turnId, callId: `t${tool}`, tool };
    expect(await agent.call("tool/call", named)).toMatchObject({
      outcome: "denied",
      failure: { code: "tool.unknown" },
    });
  }
  client.socket.write(`${good}\n`);
  expect(await client.waitFor(({ id }) => id === "after")).toMatchObject({ result: { outcome: "ok" } });
  await agent.call("envelope/leave", { turnId });
});

test("D6: paths are judged as what they lead to: up, absolute, dotted, through links, beside, below files, in other letters", async () => {
  await using world = await openChatWorld();
  const { workspace, root } = world;
  const outside = join(root, "outside");
  for (const folder of [join(workspace, "src"), outside, `${workspace}x`]) await mkdir(folder, { recursive: true });
  await writeFile(join(outside, "secret.txt"), "secret\n");
  await writeFile(join(workspace, "src", "in.txt"), "inside\n");
  await symlink(outside, join(workspace, "src", "out"));
  await symlink(join(workspace, "src"), join(workspace, "here"));
  await symlink("/etc", join(workspace, "etc"));
  const agent = await sessionClient(world);
  const { turnId } = await agent.call("envelope/enter", { envelope: "edit" });
  let count = 0;
  const write = async (file_path: string) => {
    const given = { file_path, content: "written\n" };
    const { outcome, failure } = await agent.call("tool/call", {
      turnId,
      callId: `w${count++}`,
      tool: "write",
      arguments: given,
    });
    return outcome === "ok" ? "ok" : (failure?.code ?? outcome);
  };
  const out = /^path\.|^policy\.denied$/;
  const refused = [
    "src/../../etc/passwd",
    "../outside/new.txt",
    join(outside, "new.txt"),
    "src/out/new.txt",
    "src/out/secret.txt",
    "etc/new.conf",
    `${workspace}x/new.txt`,
    `../${workspace.split("/").at(-1)}x/new.txt`,
    ".git/hooks/pre-commit",
  ];
  for (const path of refused) expect([path, await write(path)]).toEqual([path, expect.stringMatching(out)]);
  const allowed = [
    "./src/a.txt",
    "src/./b.txt",
    "src//c.txt",
    join(workspace, "src", "d.txt"),
    "here/e.txt",
    "new/folder/f.txt",
    "SRC/g.txt",
  ];
  for (const path of allowed) expect([path, await write(path)]).toEqual([path, "ok"]);
  expect(await write("src/in.txt/below.txt")).not.toBe("ok");
  // By its names: what a link leads to has no part in `..`.
  expect(await write("src/out/../h.txt")).toBe("ok");
  expect(await readFile(join(workspace, "src", "h.txt"), "utf8")).toBe("written\n");
  expect(existsSync(join(root, "h.txt"))).toBe(false);
  expect(await readFile(join(outside, "secret.txt"), "utf8")).toBe("secret\n");
  expect(await readFile(join(workspace, "src", "e.txt"), "utf8")).toBe("written\n");
  await agent.call("envelope/leave", { turnId });
});

test("D8, D9, D10: a limit of time ends a command with its grandchildren; what is cut from output and searches is said", async () => {
  await using world = await openChatWorld();
  const agent = await sessionClient(world);
  const { turnId } = await agent.call("envelope/enter", { envelope: "edit" });
  const late = await agent.run(turnId, "t", "(setsid sleep 307 & sleep 307 & wait) & echo began; sleep 307", {
    timeout: 1500,
  });
  expect(late.outcome).toBe("failed");
  expect(outputOf(late)).toMatch(/time|ms/i);
  const left = await agent.run(turnId, "left", "ps -e -o args | grep -c '[s]leep 307' || true");
  expect(outputOf(left)).toMatch(/^0$/m);
  const long = await agent.run(turnId, "long", "seq 1 400000");
  expect(outputOf(long).length).toBeLessThan(200_000);
  expect(outputOf(long)).toMatch(/omitted|truncated|cut|left out/i);
  await agent.run(turnId, "make", "seq -f 'line %g' 1 600 > many.txt");
  const found = await agent.call("tool/call", { turnId, callId: "g", tool: "grep", arguments: { pattern: "^line" } });
  expect(outputOf(found)).toMatch(/only the first 500 matches are shown|took more than \d+ ms|took too long/);
  await agent.call("envelope/leave", { turnId });
});

test("W5: a client that does not read harms only itself: its session works on, and it learns what came of its call", async () => {
  await using world = await openChatWorld();
  const [slow, other] = [await sessionClient(world), await sessionClient(world)];
  const { turnId } = await slow.call("envelope/enter", { envelope: "edit", onDisconnect: "keep" });
  slow.client.socket.pause();
  const command = "yes 0123456789012345678901234567890123456789 | head -c 6000000; touch done";
  const asked = slow.run(turnId, "loud", command);
  // Somebody else is served meanwhile.
  const mine = await other.call("envelope/enter", { envelope: "edit" });
  const done = await other.run(mine.turnId, "wait", "until test -e done; do sleep 0.1; done; echo seen");
  expect(outputOf(done)).toContain("seen");
  slow.client.socket.resume();
  expect(await asked).toMatchObject({ outcome: "ok" });
  await slow.call("envelope/leave", { turnId });
  await other.call("envelope/leave", { turnId: mine.turnId });
});
