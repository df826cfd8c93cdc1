/** What an agent says, runs and writes becomes items, once each, and the turn ends with what it used. */
import { readFile } from "node:fs/promises";
import path from "node:path";
import { expect, test } from "vitest";
import { eachSubject } from "./suite.ts";
import { expectCompleted, itemsOf, messagesOf, ofType } from "./turns.ts";

await eachSubject("says and does", ({ subject, can, scene }) => {
  const exit = (exitCode: number): object => (subject.tellsNoExitCode === true ? {} : { exitCode });

  test("text", async () => {
    const words = "Hello there, this is said in several pieces, one after the other.";
    const t = await scene({ says: words });
    const turn = await t.start("say hello");
    expect((await expectCompleted(turn)).native?.reason).toEqual(expect.any(String));
    const events = await t.closed();
    expect(messagesOf(events)).toEqual([words]);
    // As it is said, where the program tells it so: every piece once.
    const pieces = turn.heard.map((heard) =>
      heard.kind === "delta" && heard.delta.channel === "text" ? heard.delta.delta : "",
    );
    expect(["", words]).toContain(pieces.join(""));
    expect(ofType(events, "turn.started")).toMatchObject([{ runner: subject.name }]);
    expect(ofType(events, "agent.connected")).toMatchObject([{ runner: subject.name, origin: "new" }]);
    expect(ofType(events, "agent.ended")).toMatchObject([{ end: "stopped" }]);
    const [started] = ofType(events, "agent.started");
    expect((await readFile(path.join(t.world.home, started?.transcript ?? ""), "utf8")).length).toBeGreaterThan(0);
  });

  test.runIf(can.reasoning)("thoughts", async () => {
    const t = await scene({ says: "So it is.", thinks: "I think of the answer." });
    await expectCompleted(await t.start("think"));
    const thoughts = itemsOf(await t.closed(), "reasoning").flatMap(({ summary, text }) => [...summary, text ?? ""]);
    expect(thoughts.join("")).toContain("I think of the answer.");
  });

  test("a command", async () => {
    const t = await scene({ runs: "echo from the command" }, { says: "It ran." });
    const turn = await t.start("run it");
    await expectCompleted(turn);
    const events = await t.closed();
    expect(itemsOf(events, "commandExecution")).toMatchObject([
      { command: expect.stringContaining("echo from the command"), status: "completed", ...exit(0) },
    ]);
    expect(itemsOf(events, "commandExecution")[0]?.output).toContain("from the command");
    expect(messagesOf(events)).toEqual(["It ran."]);
    expect(t.model.requests[1]?.source).toContain("from the command");
  });

  test("a command that fails", async () => {
    const t = await scene({ runs: "echo it broke >&2; exit 3" }, { says: "It failed." });
    const turn = await t.start("run it");
    await expectCompleted(turn);
    const [item] = itemsOf(await t.closed(), "commandExecution");
    expect(item).toMatchObject(
      subject.tellsNoExitCode === true ? { status: "completed" } : { status: "failed", exitCode: 3 },
    );
    expect(item?.output).toContain("it broke");
  });

  test("a file change", async () => {
    const t = await scene();
    const name = subject.wantsWholePaths === true ? path.join(t.workspace, "made.txt") : "made.txt";
    t.model.play({ writes: name, content: "one\ntwo\n" }, { says: "Written." });
    const turn = await t.start("write it");
    await expectCompleted(turn);
    expect(await readFile(path.join(t.workspace, "made.txt"), "utf8")).toBe("one\ntwo\n");
    const changes = itemsOf(await t.closed(), "fileChange");
    expect(changes).toMatchObject([
      { status: "completed", changes: [{ kind: "add", path: expect.stringContaining("made.txt") }] },
    ]);
  });

  test.runIf(can.usage)("token usage", async () => {
    const t = await scene({ runs: "true" }, { says: "Used." });
    const turn = await t.start("use some");
    // The scripted server counts the same for each of the two answers.
    expect(await turn.done).toMatchObject({ usage: { inputTokens: 200, cachedInputTokens: 80, outputTokens: 40 } });
    expect(ofType(await t.closed(), "model.responded")).toHaveLength(2);
  });
});
