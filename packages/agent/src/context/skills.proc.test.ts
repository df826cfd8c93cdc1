import { mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { ScriptCall } from "@heddle/models";
import { startModelServer } from "@heddle/models/testing";
import type { EventBody } from "@heddle/protocol";
import { expect, test } from "vitest";
import { openTestHeddle, type TestHeddle } from "../../test/test-heddle.ts";

async function writeSkill(folder: string, name: string, description: string, body = "Do it well."): Promise<string> {
  await mkdir(join(folder, name), { recursive: true });
  const path = join(folder, name, "SKILL.md");
  await writeFile(path, `---\nname: ${name}\ndescription: ${description}\n---\n${body}\n`);
  return path;
}

async function bodies(t: TestHeddle, threadId: string): Promise<EventBody[]> {
  return (await t.events(threadId)).map(({ body }) => body);
}

const settings = { provider: "test", model: "gpt-x" };

test("skills of workspace, repository, home and person are offered by name and line, the nearest of a name", async () => {
  await using server = await startModelServer({ respond: () => ({ text: "ok" }) });
  await using base = await openTestHeddle();
  const repo = base.workspace;
  const inner = join(repo, "packages", "one");
  await mkdir(join(repo, ".git"), { recursive: true });
  await writeFile(join(repo, ".git/HEAD"), "ref: refs/heads/main\n");
  await mkdir(inner, { recursive: true });
  const person = join(base.folder, "person");
  const near = await writeSkill(join(inner, ".claude", "skills"), "deploy", "ships this package");
  await writeSkill(join(repo, ".agents", "skills"), "deploy", "ships everything");
  const review = await writeSkill(join(repo, ".agents", "skills"), "review", "reads a change");
  await writeSkill(join(base.home, "skills"), "notes", "keeps notes", "SECRET OF THE HOME");
  const users = await writeSkill(join(person, ".agents", "skills"), "mail", "writes mail");
  await using t = await openTestHeddle({
    folder: base.folder,
    providers: [server.provider("openai-responses")],
    settings,
    env: { HOME: person },
  });
  const thread = await t.heddle.as("user:owner").createThread({ workspace: inner, origin: "test" });
  const turn = await t.start("hello", { thread });
  await turn.done;
  const loaded = (await bodies(t, turn.threadId)).find(({ type }) => type === "context.loaded");
  expect(loaded?.type === "context.loaded" && loaded.text).toContain(
    [
      `- deploy: ships this package (${near})`,
      `- mail: writes mail (${users})`,
      "- notes: keeps notes (call skill)",
      `- review: reads a change (${review})`,
      "</skills>",
    ].join("\n"),
  );
  expect(JSON.stringify(server.requests[0]?.body)).not.toContain("SECRET OF THE HOME");
});

test("a skill named as $name is read into the turn, recorded with its hash, and told again when resumed", async () => {
  await using server = await startModelServer({ respond: () => ({ text: "ok" }) });
  await using t = await openTestHeddle({ providers: [server.provider("openai-responses")], settings });
  const path = await writeSkill(
    join(t.workspace, ".agents", "skills"),
    "deploy",
    "ships it",
    "Step one: count to ten.",
  );
  const turn = await t.start("please $deploy this");
  await turn.done;
  const added = (await bodies(t, turn.threadId)).filter(({ type }) => type === "context.added");
  expect(added).toMatchObject([
    {
      source: "skill",
      name: "deploy",
      file: { path, truncatedBytes: 0, sha256: expect.stringMatching(/^[0-9a-f]{64}$/) },
    },
  ]);
  expect(JSON.stringify(server.requests[0]?.body)).toContain("Step one: count to ten.");
  await writeFile(path, "---\nname: deploy\ndescription: ships it\n---\nchanged");
  await (
    await t.start("and now?", { thread: turn.threadId })
  ).done;
  expect(JSON.stringify(server.requests[1]?.body)).toContain("Step one: count to ten.");
});

test("the model reads an offered skill with its own tools", async () => {
  await using server = await startModelServer({
    respond: ({ answers, body }) => {
      const path = /deploy: ships it \((.*?SKILL\.md)\)/.exec(JSON.stringify(body))?.[1];
      return answers > 0 ? { text: "done" } : { calls: [{ tool: "exec_command", args: { cmd: `cat '${path}'` } }] };
    },
  });
  await using t = await openTestHeddle({ providers: [server.provider("openai-responses")], settings });
  await writeSkill(join(t.workspace, ".agents", "skills"), "deploy", "ships it", "Step one: count to ten.");
  const turn = await t.start("ship it");
  await turn.done;
  expect(JSON.stringify(server.requests[1]?.body)).toContain("Step one: count to ten.");
});

test("a broken skill is named to the user and offered to nobody; a link to a secret shows nothing", async () => {
  await using server = await startModelServer({ respond: () => ({ text: "ok" }) });
  await using t = await openTestHeddle({ providers: [server.provider("openai-responses")], settings });
  const folder = join(t.workspace, ".agents", "skills");
  await mkdir(join(folder, "bomb"), { recursive: true });
  await writeFile(join(folder, "bomb", "SKILL.md"), "---\nname: &a bomb\ndescription: *a\n---\n");
  await mkdir(join(folder, "thief"), { recursive: true });
  await writeFile(join(t.home, "secret"), "---\nname: thief\ndescription: STOLEN\n---\n");
  await symlink(join(t.home, "secret"), join(folder, "thief", "SKILL.md"));
  const turn = await t.start("hello");
  expect((await turn.done).body.status).toBe("completed");
  const events = await bodies(t, turn.threadId);
  const notice = events.find((body) => body.type === "item.completed" && body.item.type === "notice");
  expect(notice).toMatchObject({
    item: { message: expect.stringContaining("bomb/SKILL.md: its name is not plain text") },
  });
  expect(JSON.stringify(notice)).toContain("thief");
  expect(JSON.stringify(server.requests[0]?.body)).not.toMatch(/bomb|STOLEN/);
});

test("a skill of Heddle's own home is read with the skill tool, which reaches nothing else and exists only with it", async () => {
  const read = (args: Record<string, string>): ScriptCall => ({ tool: "skill", args });
  await using server = await startModelServer({
    script: [
      {
        calls: [
          read({ name: "notes" }),
          read({ name: "notes", file: "more/list.md" }),
          read({ name: "notes", file: "../../secret" }),
          read({ name: "../notes" }),
        ],
      },
      { text: "ok" },
    ],
  });
  await using t = await openTestHeddle({ providers: [server.provider("openai-responses")], settings });
  const first = await t.start("hello");
  await first.done;
  expect(JSON.stringify(server.requests[0]?.body)).not.toContain('"skill"');
  await writeSkill(join(t.home, "skills"), "notes", "keeps notes", "Step one: sharpen the pencil.");
  await mkdir(join(t.home, "skills", "notes", "more"));
  await writeFile(join(t.home, "skills", "notes", "more", "list.md"), "pencils, paper");
  await writeFile(join(t.home, "secret"), "TOP SECRET");
  const turn = await t.start("take a note");
  await turn.done;
  const events = await bodies(t, turn.threadId);
  const calls = events.flatMap((body) => (body.type === "model.responded" ? body.output : []));
  const settled = calls.flatMap((call) =>
    events.flatMap((body) =>
      call.kind === "toolCall" && body.type === "tool.settled" && body.callId === call.callId ? [body] : [],
    ),
  );
  expect(settled).toMatchObject([
    { outcome: "ok", output: [{ text: expect.stringContaining("sharpen the pencil") }] },
    { outcome: "ok", output: [{ text: "pencils, paper" }] },
    { outcome: "failed", failure: { code: "path.outside" } },
    { outcome: "failed", failure: { code: "tool.failed" } },
  ]);
  expect(JSON.stringify(server.requests)).not.toContain("TOP SECRET");
});
