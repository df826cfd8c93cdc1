import { expect, test } from "vitest";
import { at, list, refused, text } from "../../test/chat-client.ts";
import { codexClient, openChatWorld } from "../../test/chat-world.ts";

const input = (words: string) => [{ type: "text", text: words }];

test("what waits in a queue is changed, moved, deleted and, behind an interrupt, started by its client", async () => {
  await using world = await openChatWorld({
    respond: ({ answers }) =>
      answers === 0
        ? { calls: [{ tool: "exec_command", args: { cmd: "sleep 60", yield_time_ms: 60_000 } }] }
        : { text: `answer ${answers}` },
  });
  const client = await codexClient(world);
  const threadId = text(await client.call("thread/start", { cwd: world.workspace }), "thread.id");
  const turnId = text(await client.call("turn/start", { threadId, input: input("one") }), "turn.id");
  await client.waitFor(({ params }) => at(params, "item.type") === "commandExecution");
  const add = async (words: string): Promise<string> => {
    const added = await client.call("thread/queue/add", { threadId, input: input(words), clientUserMessageId: words });
    return text(added, "queuedSubmission.id");
  };
  const waiting = async (): Promise<readonly unknown[]> =>
    list(await client.call("thread/queue/list", { threadId }), "data").map((entry) => at(entry, "input.0.text"));
  const [b, c, d] = [await add("b"), await add("c"), await add("d")];
  const update = { threadId, queuedSubmissionId: b, input: input("b changed") };
  expect(await client.call("thread/queue/update", update)).toMatchObject({
    queuedSubmission: { id: b, clientUserMessageId: "b", input: [{ type: "text", text: "b changed" }] },
  });
  expect(await waiting()).toEqual(["b changed", "c", "d"]);
  expect(await client.call("thread/queue/reorder", { threadId, queuedSubmissionIds: [d, c, b] })).toEqual({});
  expect(await waiting()).toEqual(["d", "c", "b changed"]);
  const wrong = "-32600 queue reorder must include every queued submission exactly once";
  for (const queuedSubmissionIds of [[d], [d, d, b], [d, c, "x"], [d, c, b, b]]) {
    expect(await refused(client, "thread/queue/reorder", { threadId, queuedSubmissionIds })).toBe(wrong);
  }
  expect(await refused(client, "thread/queue/update", { ...update, queuedSubmissionId: "x" })).toBe(
    "-32600 queued submission not found: x",
  );
  for (const method of ["thread/queue/update", "thread/queue/add"]) {
    expect(await refused(client, method, { ...update, input: [], clientUserMessageId: "e" })).toBe(
      "-32600 only user input can be added to the user-message queue",
    );
  }
  const busy = "-32600 thread already has an active or pending turn";
  expect(await refused(client, "thread/queue/start", { threadId, queuedSubmissionId: c })).toBe(busy);
  await client.call("turn/interrupt", { threadId, turnId });
  await client.topic("turn/completed");
  expect(await waiting()).toEqual(["d", "c", "b changed"]);
  const begun = await client.call("thread/queue/start", { threadId, queuedSubmissionId: c });
  expect(begun).toMatchObject({ turn: { id: c, status: "inProgress" } });
  for (const id of [c, d, b]) {
    await client.waitFor(({ method, params }) => method === "turn/completed" && at(params, "turn.id") === id);
  }
  expect(await refused(client, "thread/queue/start", { threadId })).toBe("-32600 queue is empty");
  expect(await refused(client, "thread/queue/start", { threadId, queuedSubmissionId: c })).toBe(
    `-32600 queued submission not found: ${c}`,
  );
});
