/** The next turn knows what was said before, also after Heddle was started anew, and in a fork; images reach the model. */
import { expect, test } from "vitest";
import { eachSubject } from "./suite.ts";
import { eventsOf, expectClosed, expectCompleted, messagesOf, ofType, startTurn } from "./turns.ts";

/** One black pixel. */
const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

await eachSubject("continues", ({ can, scene, restart, server }) => {
  test.runIf(can.resume)("in the next turn, with what was said and done", async () => {
    const t = await scene({ runs: "echo forty-two" }, { says: "It is forty-two." }, { says: "As I said." });
    await expectCompleted(await t.start("remember the word ananas"));
    await expectCompleted(await t.start("and again"));
    const events = await t.closed();
    expect(ofType(events, "agent.connected").map(({ origin }) => origin)).toEqual(["new", "resumed"]);
    expect(new Set(ofType(events, "agent.connected").map(({ handle }) => handle)).size).toBe(1);
    expect(messagesOf(events)).toEqual(["It is forty-two.", "As I said."]);
    const last = t.model.requests.at(-1)?.source ?? "";
    for (const word of ["ananas", "echo forty-two", "It is forty-two.", "and again"]) expect(last).toContain(word);
  });

  test.runIf(can.resume)("after Heddle was started anew", async () => {
    const t = await scene({ says: "Noted." }, { says: "Ananas." });
    await expectCompleted(await t.start("remember the word ananas"));
    await server()[Symbol.asyncDispose]();
    await restart();
    await expectCompleted(await t.start("which word?"));
    const events = await t.closed();
    expect(ofType(events, "agent.connected").map(({ origin }) => origin)).toEqual(["new", "resumed"]);
    expect(messagesOf(events)).toEqual(["Noted.", "Ananas."]);
    expect(t.model.requests.at(-1)?.source).toContain("ananas");
  });

  test.runIf(can.fork)("in a fork, which leaves the first thread as it was", async () => {
    const t = await scene({ says: "Noted." }, { says: "In the fork." }, { says: "In the first." });
    await expectCompleted(await t.start("remember the word ananas"));
    const fork = await t.client.forkThread(t.threadId);
    const settings = { sandboxMode: "workspace-write", approvalPolicy: "never" } as const;
    await expectCompleted(await startTurn(t.client, fork.id, "the word of the fork is kiwi", settings));
    expect(t.model.requests.at(-1)?.source).toContain("ananas");
    const events = await eventsOf(t.client, fork.id);
    expectClosed(events);
    expect(ofType(events, "agent.connected").map(({ origin }) => origin)).toEqual(["forked"]);
    await expectCompleted(await t.start("go on in the first"));
    expect(t.model.requests.at(-1)?.source).toContain("ananas");
    expect(t.model.requests.at(-1)?.source).not.toContain("kiwi");
  });

  test.runIf(can.images)("with an image", async () => {
    const t = await scene({ says: "A pixel." });
    const input = [
      { type: "text", text: "what is this?" },
      { type: "image", mediaType: "image/png", base64: PIXEL },
    ] as const;
    await expectCompleted(await t.start([...input]));
    await t.closed();
    expect(t.model.requests[0]?.source).toMatch(/input_image|"type":"image"|image_url|inlineData/);
  });

  test.runIf(!can.images)("without images: they are refused", async () => {
    const t = await scene({ says: "Never asked." });
    const refused = t.start([{ type: "image", mediaType: "image/png", base64: PIXEL }]);
    await expect(refused).rejects.toMatchObject({ code: "runner.unsupported" });
  });

  test.runIf(can.outputSchema)("with an answer of the shape that was asked for", async () => {
    const t = await scene({ says: '{"answer":42}' });
    const outputSchema = {
      type: "object",
      properties: { answer: { type: "number" } },
      required: ["answer"],
      additionalProperties: false,
    };
    await expectCompleted(await t.start("answer", { outputSchema }));
    expect(messagesOf(await t.closed())).toEqual(['{"answer":42}']);
  });

  test.runIf(can.requests)("until the limit of its requests", async () => {
    const t = await scene(...Array.from({ length: 8 }, (_, nth) => ({ runs: `echo ${nth}; sleep 0.5` })));
    const turn = await t.start("run them", { limits: { maxRequests: 2 } });
    const failure = { code: "limit.reached", details: { limit: "turns", allowed: 2 } };
    expect(await turn.done).toMatchObject({ status: "failed", failure });
    expect(ofType(await t.closed(), "model.requested")).toHaveLength(2);
    // The program sends the next one while it is told to stop.
    expect(t.model.requests.length).toBeLessThan(5);
  });
});
