/** A program that uses the Codex SDK drives whichever agent its owner has chosen, and sees the items that it sees of Codex. */
import { readFile } from "node:fs/promises";
import path from "node:path";
import { Codex } from "@openai/codex-sdk";
import { expect, test } from "vitest";
import { heddle } from "../program.ts";
import { collect } from "../sdk-thread.ts";
import { eachSubject } from "./suite.ts";

await eachSubject("behind the Codex SDK", ({ subject, can, world }) => {
  test("a command, an answer, and a second turn in the same thread", async () => {
    const { model, workspace, env } = world();
    const folder = await workspace();
    model.play({ runs: "echo made > made.txt; echo from the command" }, { says: "It ran." });
    const codex = new Codex({ codexPathOverride: heddle.file, env: { ...env } });
    const thread = codex.startThread({ workingDirectory: folder, sandboxMode: "workspace-write" });
    const events = await collect((await thread.runStreamed("run it")).events);
    const items = events.flatMap((event) => (event.type === "item.completed" ? [event.item] : []));
    const exit = subject.tellsNoExitCode === true ? {} : { exit_code: 0 };
    expect(items).toMatchObject([
      {
        type: "command_execution",
        command: expect.stringContaining("echo made > made.txt"),
        aggregated_output: expect.stringContaining("from the command"),
        status: "completed",
        ...exit,
      },
      { type: "agent_message", text: "It ran." },
    ]);
    expect(events.at(0)).toMatchObject({ type: "thread.started", thread_id: thread.id });
    expect(events.at(-1)).toMatchObject({ type: "turn.completed" });
    expect(await readFile(path.join(folder, "made.txt"), "utf8")).toBe("made\n");

    model.play({ says: "Again." });
    const again = await thread.run("go on");
    expect(again.finalResponse).toBe("Again.");
    // The agent knows what was said, or is told.
    expect(model.requests[0]?.source).toContain("It ran.");
    if (can.resume) expect(again.items).toMatchObject([{ type: "agent_message" }]);
  });
});
