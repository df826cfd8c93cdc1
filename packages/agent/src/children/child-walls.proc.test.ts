/** S7: nothing that a child brings or is given leads out of its parent's envelope. */
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { withinCeiling } from "@heddle/tools/envelopes";
import { expect, test } from "vitest";
import { call, ofType, openChildWorld, settled, type ChildWorld, type Scripts } from "../../test/child-world.ts";
import { fixture } from "../../test/mcp-play.ts";

const started = [
  call("spawn_agent", { message: "be the child" }),
  (ids: readonly string[]) => call("wait_agent", { targets: ids }),
  { text: "done" },
];

test("S7: a child cannot hop beyond its parent, whoever would allow it", async () => {
  await using world = await openChildWorld(
    {
      parent: started,
      "be the child": [
        call("exec_command", {
          cmd: "touch out",
          sandbox_permissions: "require_escalated",
          justification: "I want to",
        }),
        { text: "refused" },
      ],
    },
    { isUnattended: false, settings: { approvalPolicy: "on-request", sandboxMode: "workspace-write" } },
  );
  const { t } = world;
  const turn = await t.start("parent");
  expect((await turn.done).body).toMatchObject({ status: "completed" });
  const [child] = await t.heddle.journal.threads.childrenOf(turn.threadId, { limit: 9 });
  const own = await t.events(child?.id ?? "");
  expect(settled(own)).toMatchObject([{ outcome: "denied", failure: { code: "ceiling.exceeded" } }]);
  expect(ofType(own, "hop.refused")).toMatchObject([{ failure: { code: "ceiling.exceeded" } }]);
  expect(ofType(own, "approval.requested")).toEqual([]);
});

/** Looks only, and leads everywhere. */
const NARROW = `
extends: explore
exits:
  - { to: edit, by: [model, user], approval: auto }
  - { to: full, by: [model, user], approval: auto }
`;

async function openNarrowWorld(scripts: Scripts): Promise<ChildWorld & { readonly folder: string }> {
  const folder = await mkdtemp(join(tmpdir(), "heddle-children-"));
  await mkdir(join(folder, "home", "envelopes"), { recursive: true, mode: 0o700 });
  await writeFile(join(folder, "home", "envelopes", "narrow.yaml"), NARROW);
  const world = await openChildWorld(scripts, { folder, settings: { envelope: "narrow" } });
  return {
    ...world,
    folder,
    async [Symbol.asyncDispose]() {
      await world[Symbol.asyncDispose]();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

const write = call("exec_command", { cmd: "touch here" });

test("S7: where a child hops by name it has no more than its parent, whether it, its user or its settings do it", async () => {
  await using world = await openNarrowWorld({
    parent: started,
    "be the child": [call("hop", { to: "full", reason: "wider" }), write, { text: "tried" }, write, { text: "again" }],
  });
  const { t } = world;
  const turn = await t.start("parent");
  expect((await turn.done).body).toMatchObject({ status: "completed" });
  const [child] = await t.heddle.journal.threads.childrenOf(turn.threadId, { limit: 9 });
  const threadId = child?.id ?? "";
  const owner = t.heddle.as("user:owner");
  await owner.hopThread({ threadId, to: "back", reason: "narrow again" });
  await owner.hopThread({ threadId, to: "edit", reason: "the user hops" });
  const settings = { ...t.settings, envelope: "full" };
  await (
    await owner.startTurn({ thread: threadId, input: [{ type: "text", text: "write" }], settings })
  ).done;
  const own = await t.events(threadId);
  const entered = ofType(own, "envelope.entered");
  expect(entered.map(({ envelope, cause }) => [envelope.id, cause])).toEqual([
    ["narrow", "start"],
    ["full", "hop"],
    ["narrow", "back"],
    ["edit", "hop"],
    ["full", "settings"],
  ]);
  const most = ofType(own, "thread.created")[0]?.parent?.envelope;
  expect(most).toMatchObject({ id: "narrow", writeRoots: [], network: "none", sandbox: "required" });
  const above = entered.map(({ envelope }) => most && withinCeiling(envelope, most));
  expect(above).toEqual(entered.map(() => undefined));
  expect(entered[0]?.ceiling).toEqual(most);
  expect(existsSync(join(t.workspace, "here"))).toBe(false);
});

test("S7: a child that is started with the name of a wider envelope has what its parent has, and is told", async () => {
  await using world = await openNarrowWorld({
    parent: [call("spawn_agent", { message: "be the child", envelope: "full" }), ...started.slice(1)],
    "be the child": [write, { text: "tried" }],
  });
  const { t } = world;
  const turn = await t.start("parent");
  expect((await turn.done).body).toMatchObject({ status: "completed" });
  const [child] = await t.heddle.journal.threads.childrenOf(turn.threadId, { limit: 9 });
  const own = await t.events(child?.id ?? "");
  expect(ofType(own, "turn.admitted")[0]?.settings).toMatchObject({ envelope: "full" });
  expect(ofType(own, "turn.started")[0]?.envelope).toMatchObject({
    id: "full",
    writeRoots: [],
    network: "none",
    sandbox: "required",
  });
  expect(ofType(own, "item.completed").map(({ item }) => item)).toContainEqual(
    expect.objectContaining({ type: "notice", code: "ceiling.exceeded" }),
  );
  expect(existsSync(join(t.workspace, "here"))).toBe(false);
});

test("S7: a parent that has hopped to less gives its children less", async () => {
  await using world = await openChildWorld(
    {
      parent: [
        call("hop", { to: "plan", reason: "think first" }),
        call("spawn_agent", { message: "be the child" }),
        ...started.slice(1),
      ],
      "be the child": [write, { text: "tried" }],
    },
    { settings: { envelope: "edit" } },
  );
  const { t } = world;
  const turn = await t.start("parent");
  expect((await turn.done).body).toMatchObject({ status: "completed" });
  const [child] = await t.heddle.journal.threads.childrenOf(turn.threadId, { limit: 9 });
  const [begun] = ofType(await t.events(child?.id ?? ""), "turn.started");
  expect(begun?.envelope).toMatchObject({ id: "plan", writeRoots: [] });
  expect(existsSync(join(t.workspace, "here"))).toBe(false);
});

test("S7: MCP servers and hooks of the configuration run for a child too, in its own sandbox", async () => {
  await using world = await openChildWorld(
    {
      parent: started,
      "be the child": [
        call("mcp__fix__write", { path: "written-by-server", text: "x" }),
        call("exec_command", { cmd: "true" }),
        { text: "tried" },
      ],
    },
    {
      settings: { sandboxMode: "read-only" },
      mcpServers: [fixture("good", { approval: "auto" })],
      hooks: [{ event: "PreToolUse", command: "touch written-by-hook || true" }],
    },
  );
  const { t } = world;
  const turn = await t.start("parent");
  expect((await turn.done).body).toMatchObject({ status: "completed" });
  const [child] = await t.heddle.journal.threads.childrenOf(turn.threadId, { limit: 9 });
  const own = await t.events(child?.id ?? "");
  expect(ofType(own, "mcp.listed")).toMatchObject([{ server: "fix" }]);
  expect(ofType(own, "hook.ran").length).toBeGreaterThan(0);
  expect(["written-by-server", "written-by-hook"].filter((name) => existsSync(join(t.workspace, name)))).toEqual([]);
});

test("S7: a child of an envelope with few tools has no others", async () => {
  const allowedTools = ["spawn_agent", "wait_agent", "update_plan"];
  await using world = await openChildWorld(
    {
      parent: started,
      "be the child": [call("exec_command", { cmd: "touch here" }), { text: "refused" }],
    },
    { settings: { allowedTools } },
  );
  const { t } = world;
  const turn = await t.start("parent");
  expect((await turn.done).body).toMatchObject({ status: "completed" });
  const [child] = await t.heddle.journal.threads.childrenOf(turn.threadId, { limit: 9 });
  const own = await t.events(child?.id ?? "");
  expect(ofType(own, "turn.started")[0]?.envelope.tools.toSorted()).toEqual(allowedTools.toSorted());
  expect(settled(own)).toMatchObject([{ outcome: "denied", failure: { code: "policy.denied" } }]);
});

test("a thread that is deleted takes its children along, and an ephemeral one has ephemeral children", async () => {
  await using world = await openChildWorld({ parent: started, "be the child": [{ text: "ok" }] });
  const { t } = world;
  const acts = t.heddle.as("user:owner");
  const turn = await acts.startTurn({
    thread: { workspace: t.workspace, origin: "test", isEphemeral: true },
    input: [{ type: "text", text: "parent" }],
    settings: t.settings,
  });
  await turn.done;
  const { threads } = t.heddle.journal;
  const [child] = await threads.childrenOf(turn.threadId, { limit: 9 });
  expect(child).toMatchObject({ isEphemeral: true });
  await acts.deleteThread({ threadId: turn.threadId });
  expect(await threads.isDeleted(child?.id ?? "")).toBe(true);
});
