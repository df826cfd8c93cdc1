/**
 * Heddle killed in the middle of a turn, alone and together with the program: what was open has one end soon after the next
 * start, nothing of it runs on, and the thread continues in the same conversation.
 */
import { existsSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { marked } from "../../e2e/processes.ts";
import { eachSubject, until, type Scene } from "./suite.ts";
import { commandStart, expectCompleted, itemsOf, messagesOf, ofType } from "./turns.ts";

/** After the next start, and after a kill. */
const SOON_MS = 2000;

await eachSubject("survives", ({ can, scene, restart, server }) => {
  for (const both of [false, true]) {
    const who = both ? "Heddle and the program" : "Heddle";

    test(`a kill of ${who} while it speaks`, async () => {
      const t = await scene(
        { says: "First." },
        { fault: { kind: "stall", at: "after-last-delta" }, before: { says: "Half." } },
      );
      await expectCompleted(await t.start("remember the word ananas"));
      const turn = await t.start("tell me");
      await t.model.asked(2);
      await strike(t, both);
      await expectEnded(t, turn.id);
      expect(messagesOf(await t.closed())[0]).toBe("First.");
      await expectGoesOn(t);
    });

    test(`a kill of ${who} in a command`, async () => {
      const mark = `300.${Math.floor(Math.random() * 1e9)}`;
      const t = await scene({ says: "First." }, { runs: `echo begun >> ran; sleep ${mark}` });
      await expectCompleted(await t.start("remember the word ananas"));
      const turn = await t.start("wait");
      await turn.sees(commandStart);
      await until(() => marked(mark).length > 0 && existsSync(`${t.workspace}/ran`), "the command runs");
      await strike(t, both);
      await until(() => marked(mark).length === 0, "the command has ended", SOON_MS);
      await expectEnded(t, turn.id);
      const events = await t.closed();
      expect(itemsOf(events, "commandExecution")).toMatchObject([{ status: "unknown" }]);
      await expectGoesOn(t);
      // Not once more.
      expect(readFileSync(`${t.workspace}/ran`, "utf8")).toBe("begun\n");
    });
  }

  test("a kill of Heddle in a command without a sandbox, which the next start ends", async () => {
    const mark = `300.${Math.floor(Math.random() * 1e9)}`;
    const t = await scene({ says: "First." }, { runs: `echo begun >> ran; sleep ${mark}` });
    const open = { sandboxMode: "danger-full-access" } as const;
    await expectCompleted(await t.start("remember the word ananas", open));
    const turn = await t.start("wait", open);
    await turn.sees(commandStart);
    await until(() => marked(mark).length > 0 && existsSync(`${t.workspace}/ran`), "the command runs");
    const [started] = ofType(await t.events(), "agent.started").slice(-1);
    await server().kill();
    await expectEnded(t, turn.id);
    await until(() => marked(mark).length === 0 && !isAlive(started?.process.pid ?? 0), "nothing runs on", SOON_MS);
    await t.closed();
    await expectGoesOn(t);
    expect(readFileSync(`${t.workspace}/ran`, "utf8")).toBe("begun\n");
  });

  async function strike(t: Scene, both: boolean): Promise<void> {
    const [started] = ofType(await t.events(), "agent.started").slice(-1);
    const pid = started?.process.pid;
    // Zero would be everything that runs this test.
    if (pid === undefined) throw new Error("the program has not started");
    if (both) process.kill(pid, "SIGKILL");
    await server().kill();
    await until(() => !isAlive(pid), "the program has ended", SOON_MS);
  }

  async function expectEnded(t: Scene, turnId: string): Promise<void> {
    await restart();
    const restartedAt = performance.now();
    const ends = async (): Promise<readonly string[]> =>
      ofType(await t.events(), "turn.completed").flatMap((end) => (end.turnId === turnId ? [end.status] : []));
    await until(async () => (await ends()).length > 0, "the turn has its end", SOON_MS);
    expect(performance.now() - restartedAt).toBeLessThan(SOON_MS);
    expect(await ends()).toHaveLength(1);
    expect(["interrupted", "failed"]).toContain((await ends())[0]);
  }

  async function expectGoesOn(t: Scene): Promise<void> {
    t.model.play({ says: "Here again." });
    await expectCompleted(await t.start("which word was it?"));
    const events = await t.closed();
    expect(messagesOf(events).at(-1)).toBe("Here again.");
    expect(t.model.requests.at(-1)?.source).toContain("ananas");
    const origins = ofType(events, "agent.connected").map(({ origin }) => origin);
    // One that cannot continue its conversation gets what was said as text.
    expect(origins.at(-1)).toEqual(can.resume ? "resumed" : expect.stringMatching(/^(?:new|retold)$/));
  }
});

/** A zombie has ended. */
function isAlive(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) [ZX]/s.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}
