import { mkdir, mkdtemp, readFile, rm, stat, symlink, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { examine } from "@heddle/journal/verification";
import type { Envelope, EventOf, StoredEvent } from "@heddle/protocol";
import { expect, test } from "vitest";
import { openTestHeddle, type TestHeddle } from "../../test/test-heddle.ts";
import type { BareIo } from "../runners/runner.ts";
import { compareFiles } from "./compared-files.ts";
import type { ListLimits } from "./file-lists.ts";

const bash = (command: string) => ({ calls: [{ tool: "exec_command", args: { cmd: command } }] });
const say = (text: string) => ({ text });
/** Until another process has made the file. */
const untilThere = (file: string): string => `for i in $(seq 600); do [ -e ${file} ] && break; sleep 0.05; done`;

const start = (t: TestHeddle, envelope: string, thread?: string) =>
  t.heddle.as("user:owner").startTurn({
    thread: thread ?? { workspace: t.workspace, origin: "test" },
    input: [{ type: "text", text: "go" }],
    settings: { ...t.settings, envelope },
  });

async function run(t: TestHeddle, envelope: string, thread?: string): Promise<string> {
  const { threadId, done } = await start(t, envelope, thread);
  await done;
  return threadId;
}

const comparedIn = (events: readonly StoredEvent[]): readonly EventOf<"files.compared">[] =>
  events.flatMap(({ body }) => (body.type === "files.compared" ? [body] : []));

async function look(t: TestHeddle, threadId: string) {
  const { levels, findings } = await examine(t.heddle.journal, { home: t.home, level: 5, streams: [threadId] });
  return { examined: levels.at(-1)?.examined, findings };
}

test("L5: a turn in explore is verified for what it did to files, without being asked for it", async () => {
  await using t = await openTestHeddle({ script: [bash("cat a.txt; touch b.txt"), say("done")] });
  await writeFile(join(t.workspace, "a.txt"), "a");
  const threadId = await run(t, "explore");
  expect(comparedIn(await t.events(threadId))).toMatchObject([{ folder: t.workspace, files: 2, changed: [] }]);
  expect(await look(t, threadId)).toEqual({ examined: 1, findings: [] });
});

test("Verify: changed_meanwhile: a file that somebody else changes during a turn in explore is found, and is evidence", async () => {
  await using t = await openTestHeddle({ script: [bash(untilThere("z-go")), say("done")] });
  for (const name of ["kept", "changed", "removed"]) await writeFile(join(t.workspace, name), "before");
  const { threadId, done } = await start(t, "explore");
  await t.next(threadId, "tool.intended");
  const { atime, mtime } = await stat(join(t.workspace, "changed"));
  await writeFile(join(t.workspace, "changed"), "behind");
  await utimes(join(t.workspace, "changed"), atime, mtime);
  await rm(join(t.workspace, "removed"));
  await writeFile(join(t.workspace, "z-go"), "");
  await done;
  const [compared] = comparedIn(await t.events(threadId));
  expect(compared).toMatchObject({
    files: 4,
    changed: [
      { path: join(t.workspace, "changed"), change: "changed" },
      { path: join(t.workspace, "removed"), change: "removed" },
      { path: join(t.workspace, "z-go"), change: "added" },
    ],
  });
  const { findings } = await look(t, threadId);
  expect(findings.map(({ code, weight }) => [code, weight])).toEqual(Array(3).fill(["changed_meanwhile", "warning"]));
  const found = await t.heddle.journal.evidence.query({ ref: { type: "file", id: join(t.workspace, "changed") } });
  expect(found.entries).toMatchObject([{ type: "files.compared", tags: ["meanwhile"] }]);
});

test("L5: between turns the files are the user's, where they may be written nothing is compared, and a turn without calls has none", async () => {
  await using t = await openTestHeddle({
    script: [bash("true"), say("one"), bash("touch new"), say("two"), say("three")],
  });
  const threadId = await run(t, "explore");
  await writeFile(join(t.workspace, "mine.txt"), "the user's");
  await run(t, "edit", threadId);
  await run(t, "explore", threadId);
  expect(comparedIn(await t.events(threadId)).map(({ changed }) => changed)).toEqual([[]]);
  expect(await look(t, threadId)).toEqual({ examined: 1, findings: [] });
});

test("L5: what was there before a hop into an envelope that writes is compared in front of it", async () => {
  await using t = await openTestHeddle({
    script: [
      bash("true"),
      { calls: [{ tool: "hop", args: { to: "edit", reason: "write" } }] },
      bash("echo new > new.txt"),
      say("done"),
    ],
  });
  await mkdir(join(t.home, "envelopes"), { recursive: true });
  const exits = "exits:\n  - { to: edit, by: [model], approval: auto }\n";
  await writeFile(join(t.home, "envelopes", "look.yaml"), `extends: explore\n${exits}`);
  const threadId = await run(t, "look");
  expect(await readFile(join(t.workspace, "new.txt"), "utf8")).toBe("new\n");
  const events = await t.events(threadId);
  const types = events.map(({ body }) => body.type);
  expect(comparedIn(events)).toMatchObject([{ changed: [] }]);
  expect(types[types.indexOf("files.compared") + 1]).toBe("envelope.left");
  expect(await look(t, threadId)).toEqual({ examined: 1, findings: [] });
});

const CLOSED: Envelope = {
  id: "closed",
  tools: [],
  effects: [],
  writeRoots: [],
  masked: [],
  network: "none",
  sandbox: "required",
  approval: "never",
};

async function compareIn(
  workspace: string,
  { change, limits, envelope = CLOSED }: { change: () => Promise<void>; limits?: ListLimits; envelope?: Envelope },
) {
  using files = compareFiles({ turnId: "turn_1", workspace, envelope }, limits);
  const bare = { record: (events: readonly unknown[]) => Promise.resolve(events) } as unknown as BareIo;
  const call = { turnId: "turn_1", callId: "c", itemId: "i", tool: "bash", arguments: {}, isReadOnly: true };
  await files.watching(bare).record([{ type: "tool.intended", v: 1, ...call }]);
  await change();
  const { changed, files: count, notExamined } = (await files.end()) ?? {};
  return {
    changed: changed?.map(({ path, change: how }) => `${how} ${path.slice(workspace.length + 1)}`),
    count,
    notExamined,
  };
}

async function inFolder(body: (folder: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "heddle-compared-"));
  try {
    await body(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

test("Verify: not_examined: what is beyond the bound is said to be not examined, and nothing is concluded from what it leaves out", async () => {
  await inFolder(async (folder) => {
    for (let at = 0; at < 30; at += 1) {
      await mkdir(join(folder, `d${at}`));
      await writeFile(join(folder, `d${at}`, "file"), "x");
    }
    const change = async (): Promise<void> => {
      await writeFile(join(folder, "a-new"), "x");
      await writeFile(join(folder, "d0", "file"), "changed");
      await rm(join(folder, "d29"), { recursive: true });
    };
    const bounded = await compareIn(folder, { change, limits: { maxFiles: 40, maxMs: 10_000 } });
    expect(bounded).toEqual({
      changed: ["added a-new", "changed d0/file", "removed d29"],
      count: 40,
      notExamined: "files",
    });
    expect(
      await compareIn(folder, { change: async () => undefined, limits: { maxFiles: 40, maxMs: 0 } }),
    ).toMatchObject({
      changed: [],
      notExamined: "time",
    });
  });
});

test("folders that may be written or do not exist for the agent are left out, links are not followed, and a removed tree is named whole", async () => {
  await inFolder(async (folder) => {
    for (const name of ["build", "hidden", "tree/deep"]) await mkdir(join(folder, name), { recursive: true });
    await writeFile(join(folder, "tree", "deep", "leaf"), "x");
    await symlink("/etc", join(folder, "link"));
    const envelope = { ...CLOSED, writeRoots: [join(folder, "build")], masked: [join(folder, "hidden")] };
    const change = async (): Promise<void> => {
      for (const name of ["build", "hidden"]) await writeFile(join(folder, name, "new"), "x");
      await rm(join(folder, "tree"), { recursive: true });
    };
    expect(await compareIn(folder, { change, envelope })).toEqual({
      changed: ["removed tree", "removed tree/deep", "removed tree/deep/leaf"],
      count: 5,
      notExamined: undefined,
    });
    const open = { ...CLOSED, writeRoots: [folder] };
    expect((await compareIn(folder, { change: async () => undefined, envelope: open })).count).toBeUndefined();
  });
});
