/** Agents of three kinds at once, each in an envelope of its own, in one workspace and one store. */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { examine } from "@heddle/journal/verification";
import type { TurnSettings } from "@heddle/protocol";
import { expect, inject, test } from "vitest";
import { playedOptions } from "../../test/played-subject.ts";
import { openTestHeddle } from "../../test/test-heddle.ts";

const wait = (file: string) => `until test -e ${file}; do sleep 0.05; done`;

test("V19: Heddle's own loop, an agent program and an outside agent at once: three envelopes, three clean chains, right authors, and each finding is found by the others", async () => {
  const program = [
    { runs: `echo the parser drops tabs; ${wait("go")}` },
    { runs: "echo by-the-program > program.txt" },
    { says: "tabs are lost" },
  ];
  const { runners, settings: ofProgram } = playedOptions("codex", program, inject("children"));
  const note = { claim: "conclusion", text: "the cache is never cleared", tags: ["cache"] };
  const script = [
    { calls: [{ tool: "evidence_note", args: note }] },
    { calls: [{ tool: "exec_command", args: { cmd: `${wait("go")}; echo x > loop.txt`, yield_time_ms: 30_000 } }] },
    { calls: [{ tool: "evidence_search", args: { text: "lock twice" } }] },
    { calls: [{ tool: "evidence_search", args: { text: "parser tabs" } }] },
    { text: "done" },
  ];
  await using t = await openTestHeddle({ script, ...(runners && { runners }), hasEvidenceTools: true });
  const start = (envelope: string, more: Partial<TurnSettings> = {}) =>
    t.heddle.as("user:owner").startTurn({
      thread: { workspace: t.workspace, origin: "test" },
      input: [{ type: "text", text: "share what you find" }],
      settings: { ...t.settings, ...more, envelope },
    });
  const outside = await t.heddle.as("user:dan").outside();
  const [loop, played, session] = await Promise.all([
    start("explore"),
    start("edit", ofProgram),
    outside.enter({
      thread: { workspace: t.workspace, origin: "test" },
      workspace: t.workspace,
      settings: { ...t.settings, envelope: "test" },
      onDisconnect: "stop",
      agentName: "dan",
    }),
  ]);
  let calls = 0;
  const call = async (tool: string, args: unknown): Promise<string> => {
    calls += 1;
    const { output } = await outside.call(session.turnId, { callId: `c${calls}`, tool, arguments: args });
    return output.map((part) => (part.type === "text" ? part.text : "")).join("\n");
  };
  expect(await call("evidence_note", { claim: "conclusion", text: "the lock is taken twice" })).toContain("Noted");
  expect(await call("bash", { command: "echo y > session.txt" })).toMatch(/read-only/i);
  // All three are in the middle of their turns here: two of them wait for the file.
  const ofLoop = await t.next(loop.threadId, "evidence.noted");
  await t.next(played.threadId, "item.started");
  expect(await call("evidence_search", { text: "cache cleared" })).toContain(`by agent:embedded`);
  await writeFile(join(t.workspace, "go"), "");
  const ends = await Promise.all([loop.done, played.done]);
  expect(ends.map(({ body }) => body.status)).toEqual(["completed", "completed"]);
  expect(await call("evidence_search", { text: "parser tabs" })).toContain("by agent:codex");
  expect(await outside.leave(session.turnId)).toBe(true);

  const heard = (await t.events(loop.threadId)).flatMap(({ body }) =>
    body.type === "tool.settled" ? [JSON.stringify(body.output)] : [],
  );
  expect(heard[2]).toContain("by agent:outside");
  expect(heard[3]).toContain("by agent:codex");
  expect(ofLoop.text).toBe(note.text);

  const threads = [loop, played, session].map(({ threadId }) => threadId);
  const { journal } = t.heddle;
  const made = [];
  for (const thread of threads) {
    const events = await t.events(thread);
    const entered = events.flatMap(({ body }) => (body.type === "envelope.entered" ? [body.envelope.id] : []));
    made.push([entered, [...new Set(events.map(({ author }) => author))].toSorted()]);
    const { entries } = await journal.evidence.query({ thread, limit: 500 });
    expect(entries.every((entry) => entry.thread === thread)).toBe(true);
    const { findings } = await examine(journal, { home: t.home, level: 5, streams: [thread] });
    // What the others write while a turn runs that may not is told as such, and is nobody's fault.
    expect(findings.filter(({ code }) => code !== "changed_meanwhile")).toEqual([]);
  }
  expect(made).toEqual([
    [["explore"], ["agent:embedded", "system", "user:owner"]],
    [["edit"], ["agent:codex", "system", "user:owner"]],
    [["test"], ["agent:outside", "system", "user:dan"]],
  ]);
  const contentOf = (name: string) => readFile(join(t.workspace, name), "utf8").catch(() => "none");
  expect(await Promise.all(["loop.txt", "program.txt", "session.txt"].map(contentOf))).toEqual([
    "none",
    "by-the-program\n",
    "none",
  ]);
});
