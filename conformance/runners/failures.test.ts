/** What goes wrong behind an agent is a failed turn with a code, and the thread can be used again. */
import { expect, test } from "vitest";
import { eachSubject, until, type Scene } from "./suite.ts";
import { commandStart, expectCompleted, itemsOf, messagesOf, ofType } from "./turns.ts";
import { marked } from "../../e2e/processes.ts";

async function expectUsable(t: Scene): Promise<void> {
  t.model.play({ says: "Here again." });
  await expectCompleted(await t.start("go on"));
  expect(messagesOf(await t.closed()).at(-1)).toBe("Here again.");
}

const BROKEN = [
  ["breaks off", { kind: "cut", at: "mid-delta" }],
  ["is no stream of events", { kind: "body", body: "<html>a proxy's own page</html>", contentType: "text/html" }],
] as const;

await eachSubject("fails", ({ scene }) => {
  test("when the provider refuses the request", async () => {
    const refusal = { type: "error", error: { type: "invalid_request_error", message: "the prompt is not wanted" } };
    const t = await scene({ fault: { kind: "status", status: 400, body: refusal } });
    const turn = await t.start("say hello");
    expect(await turn.done).toMatchObject({
      status: "failed",
      failure: { code: "provider.rejected", message: expect.stringContaining("the prompt is not wanted") },
    });
    await t.closed();
    await expectUsable(t);
  });

  test("when the key is refused", async () => {
    const refusal = { type: "error", error: { type: "authentication_error", message: "invalid x-api-key" } };
    const t = await scene({ fault: { kind: "status", status: 401, body: refusal } });
    const turn = await t.start("say hello");
    expect(await turn.done).toMatchObject({ status: "failed", failure: { code: "auth.rejected" } });
    await t.closed();
  });

  test("when the model calls a tool with what is no JSON, and the turn continues", async () => {
    const t = await scene();
    t.model.play({ garbles: "echo never" }, { says: "Understood." });
    const turn = await t.start("run it");
    expect(["completed", "failed"]).toContain((await turn.done).status);
    const events = await t.closed();
    expect(itemsOf(events, "commandExecution").filter(({ status }) => status === "completed")).toEqual([]);
    await expectUsable(t);
  });

  for (const [what, fault] of BROKEN) {
    test(`when the answer of the model ${what}, every time`, async () => {
      const t = await scene({ fault, before: { says: "Half of what it says." } });
      const turn = await t.start("tell me");
      const { status, failure } = await turn.done;
      expect({ status, code: failure?.code }).toEqual({
        status: "failed",
        code: expect.stringMatching(/^(?:provider|runner)\./),
      });
      await t.closed();
      await expectUsable(t);
    });
  }

  test("when the program is killed while it speaks", async () => {
    const t = await scene({ fault: { kind: "stall", at: "after-last-delta" }, before: { says: "Half of it." } });
    const turn = await t.start("tell me");
    await t.model.asked(1);
    process.kill(await programOf(t), "SIGKILL");
    expect(await turn.done).toMatchObject({ status: "failed", failure: { code: "runner.exited" } });
    expect(ofType(await t.closed(), "agent.ended")).toMatchObject([{ end: "exited", signal: "SIGKILL" }]);
    await expectUsable(t);
  });

  test("when the program is killed in a command, which ends with it", async () => {
    const mark = `300.${Math.floor(Math.random() * 1e9)}`;
    const t = await scene({ runs: `echo begun; sleep ${mark}` });
    const turn = await t.start("wait");
    await turn.sees(commandStart);
    await until(() => marked(mark).length > 0, "the command runs");
    process.kill(await programOf(t), "SIGKILL");
    expect(await turn.done).toMatchObject({ status: "failed", failure: { code: "runner.exited" } });
    expect(marked(mark)).toEqual([]);
    expect(itemsOf(await t.closed(), "commandExecution")).toHaveLength(1);
    await expectUsable(t);
  });
});

/** As it is on record: the process on this machine, not in its sandbox. */
async function programOf(t: Scene): Promise<number> {
  const [started] = ofType(await t.events(), "agent.started").slice(-1);
  // Zero would be everything that runs this test.
  if (started === undefined) throw new Error("the program has not started");
  return started.process.pid;
}
