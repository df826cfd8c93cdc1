/** `read` of an envelope, through every way by which a thread runs something: what is not listed does not exist. */
import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { examine } from "@heddle/journal/verification";
import type { EventOf } from "@heddle/protocol";
import { expect, test } from "vitest";
import { call, ofType, openChildWorld, settled } from "../../test/child-world.ts";
import { fixture } from "../../test/mcp-play.ts";

async function put(file: string, text: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, text);
}

const codes = (rows: readonly EventOf<"tool.settled">[]) =>
  rows.map(({ outcome, failure }) => failure?.code ?? outcome);

test("shell, file tools, MCP servers, hooks and child threads see the roots of the envelope and nothing else", async () => {
  const outside = await realpath(await mkdtemp(join(tmpdir(), "heddle-hidden-")));
  await put(join(outside, "file"), "NOT-FOR-AGENTS\n");
  const look = `cat ${outside}/file; cat link; ls ${outside}; cat ${outside}/file > seen-$0 2>&1; cat plan.md; true`;
  const started = [
    call("exec_command", { cmd: look }),
    call("view_image", { path: join(outside, "file") }),
    call("exec_command", { cmd: "true", workdir: outside }),
    call("mcp__fix__misbehave", { how: `read ${outside}/file` }),
    call("spawn_agent", { message: "be the child" }),
    (ids: readonly string[]) => call("wait_agent", { targets: ids }),
    { text: "done" },
  ];
  const child = [
    call("exec_command", { cmd: look }),
    call("mcp__fix__misbehave", { how: `read ${outside}/file` }),
    { text: "tried" },
  ];
  await using world = await openChildWorld(
    { parent: started, "be the child": child },
    {
      settings: { envelope: "narrow" },
      mcpServers: [fixture("good", { approval: "auto" })],
      hooks: [{ event: "PreToolUse", command: `cat ${outside}/file > seen-by-hook 2>&1; true` }],
    },
  );
  const { t } = world;
  const modules = join(import.meta.dirname, "../../../../node_modules");
  const programs = [join(import.meta.dirname, "../../test"), modules];
  await put(join(t.home, "envelopes", "narrow.yaml"), `extends: edit\nread: [system, ${programs.join(", ")}]\n`);
  await put(join(t.workspace, "plan.md"), "the plan\n");
  await symlink(join(outside, "file"), join(t.workspace, "link"));
  const turn = await t.start("parent");
  expect((await turn.done).body).toMatchObject({ status: "completed" });
  const [own] = await t.heddle.journal.threads.childrenOf(turn.threadId, { limit: 9 });
  const events = [...(await t.events(turn.threadId)), ...(await t.events(own?.id ?? ""))];
  expect(JSON.stringify(events)).not.toContain("NOT-FOR-AGENTS");
  expect(JSON.stringify(settled(events))).toContain("the plan");
  expect(codes(settled(events)).filter((code) => code === "path.outside")).toHaveLength(2);
  expect(ofType(events, "hook.ran").length).toBeGreaterThan(3);
  expect(ofType(events, "mcp.listed").length).toBeGreaterThan(0);
  // Every attempt is on record, and what was let through is within the envelope by the other evaluator as well.
  for (const threadId of [turn.threadId, own?.id ?? ""]) {
    const { findings } = await examine(t.heddle.journal, { home: t.home, level: 4, streams: [threadId] });
    expect(findings).toEqual([]);
  }
  await rm(outside, { recursive: true });
});
