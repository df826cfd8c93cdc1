/** The typed client and tasks: through a real server, from the order to the evidence. */
import { HeddleClient, login, type Task } from "@heddle/client";
import { startModelServer } from "@heddle/models/testing";
import { expect, test } from "vitest";
import { serve } from "./served-world.ts";
import { openWorld } from "./world.ts";

test("a client has a task carried out until its checks say so, and reads what happened and what it took", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({
    respond: async ({ answers }) =>
      answers === 1
        ? { calls: [{ tool: "exec_command", args: { cmd: "touch done.txt" } }] }
        : { text: answers === 0 ? "It is done." : "Now it is done." },
  });
  await using server = await serve(world, model);
  const { tasks } = server.client;
  const order = {
    spec: { goal: "make done.txt", checks: [{ "file-exists": "done.txt" }], labels: ["small"] },
    workspace: world.workspace,
    clientId: "one",
  };
  const types: string[] = [];
  const done = await tasks.run(order, {
    onEvent: (received) => void (received.kind === "event" && types.push(received.event.body.type)),
  });
  expect(done).toMatchObject({ state: "verified", hasEnded: true, attempt: 1, round: 2 });
  expect(types).toEqual(expect.arrayContaining(["task.prompted", "task.rejected", "task.verified"]));
  // The same client id is the same task, and it has ended already.
  expect((await tasks.run(order)).id).toBe(done.id);
  expect((await tasks.log(done.id, { limit: 100 })).data.map(({ body }) => body.type)).toEqual(
    expect.arrayContaining(types),
  );
  expect((await tasks.attempts(done.id)).data).toMatchObject([
    { attempt: 1, outcome: "verified", prompts: [{ why: "first" }, { why: "rejected" }] },
  ]);
  expect((await tasks.checks(done.id)).data.map(({ passed }) => passed)).toEqual([false, true]);
  expect((await tasks.list({ state: ["verified", "failed"], label: "small", limit: 5 })).data).toMatchObject([
    { id: done.id, state: "verified" },
  ]);
  expect((await server.client.usage({ by: ["task", "model"] })).data).toMatchObject([
    { of: { task: done.id }, requests: 3 },
  ]);
  expect(await server.client.state()).toMatchObject({ counts: { verified: 1 }, stalls: [] });
  expect((await server.client.recentWorkspaces()).data).toEqual([world.workspace]);
  await tasks.archive(done.id);
  expect((await tasks.list()).data).toEqual([]);
  expect((await tasks.list({ archived: true })).data).toMatchObject([{ id: done.id, state: "archived" }]);
  await tasks.unarchive(done.id);
  await tasks.delete(done.id);
  await expect(tasks.read(done.id)).rejects.toMatchObject({ code: "task.not-found", status: 404 });
});

test("a client pauses, resumes, cancels, retries and takes a person's word; what the machine refuses is told", async () => {
  await using world = await openWorld();
  // It never answers, so the task stays where it is put.
  await using model = await startModelServer({ faults: () => ({ kind: "stall", at: "before-headers" }) });
  await using server = await serve(world, model);
  const { tasks, notifications } = server.client;
  const spec = { goal: "wait", checks: [{ "file-exists": "never" }] };
  let pausing: Promise<Task> | undefined;
  const paused = await tasks.run(
    { spec, workspace: world.workspace },
    {
      onEvent: (received) => {
        if (received.kind !== "event" || received.event.body.type !== "task.prompted") return;
        pausing = tasks.pause(received.event.threadId, { reason: "not yet" });
      },
    },
  );
  const { id } = paused;
  expect(paused).toMatchObject({ state: "paused", hasEnded: false, reason: "not yet" });
  expect(await pausing).toMatchObject({ id, state: "paused" });
  expect(await tasks.resume(id, { budget: { turns: 2 } })).toMatchObject({ extraBudget: { turns: 2 } });
  expect(await tasks.cancel(id)).toMatchObject({ state: "cancelled", hasEnded: true });
  await expect(tasks.pause(id)).rejects.toMatchObject({ code: "task.illegal" });
  expect(await tasks.retry(id)).toMatchObject({ hasEnded: false });
  const word = await tasks.complete(id, { note: "seen by me" });
  expect(word).toMatchObject({ state: "claimed", claim: { by: "user", summary: "seen by me" } });
  expect(await tasks.clear({ states: ["claimed"] })).toEqual({ removed: 1, hasMore: false });
  expect(await tasks.send({ text: "look around", workspace: world.workspace })).toMatchObject({
    spec: { goal: "look around" },
  });
  expect([(await tasks.stalls()).data, (await notifications.sinks()).data]).toEqual([[], []]);
  expect((await notifications.list({ state: "dead", limit: 5 })).data).toEqual([]);
});

test("there is a method for every route", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({ respond: async () => ({ text: "done" }) });
  await using server = await serve(world, model);
  const answer = await fetch(`${server.url}/api/openapi.json`, {
    headers: { authorization: `Bearer ${server.token}` },
  });
  const { paths } = (await answer.json()) as { paths: Record<string, Record<string, unknown>> };
  const routes = Object.entries(paths).flatMap(([route, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${route}`),
  );
  const asked = await askEverything();
  expect(routes.filter((route) => !asked.has(route)).toSorted()).toEqual(NOT_FOR_CLIENTS);
  expect([...asked].filter((route) => !routes.includes(route))).toEqual([]);
});

/** Other words for the same, probes, the door of programs that sign, and that of MCP, whose clients are others. */
const NOT_FOR_CLIENTS = [
  "DELETE /mcp/envelopes/{envelope}",
  "GET /api/openapi.json",
  "GET /api/webhooks/sources",
  "GET /healthz",
  "GET /livez",
  "GET /metrics",
  "GET /readyz",
  "POST /api/inbox/trigger",
  "POST /api/tasks/clear-completed",
  "POST /api/tasks/{taskId}/abort",
  "POST /api/webhooks/{source}",
  "POST /mcp",
  "POST /mcp/envelopes/{envelope}",
];

const PID = 7;

/** Calls every method once; what is asked goes nowhere. */
async function askEverything(): Promise<ReadonlySet<string>> {
  const asked = new Set<string>();
  const where = {
    url: "http://127.0.0.1:1",
    fetch: async (input: string | URL | Request, init?: RequestInit) => {
      const path = decodeURIComponent(new URL(new Request(input).url).pathname);
      const route = path.replace(`/processes/${PID}/`, "/processes/{pid}/");
      asked.add(`${init?.method ?? "GET"} ${route}`);
      return new Response(route.endsWith("/events") ? 'event: end\ndata: {"reason":"end"}\n\n' : "{}");
    },
  };
  const client = new HeddleClient({ ...where, token: "t" });
  const { access, tasks, notifications } = client;
  const [thread, turn, task] = ["{threadId}", "{turnId}", "{taskId}"] as const;
  await Promise.all([
    login({ ...where, code: "c" }),
    access.createCode(),
    access.logout(),
    access.listTokens(),
    access.createToken({ name: "n", role: "viewer" }),
    access.revokeToken("{name}"),
    client.server(),
    client.doctor(),
    client.listConversations(),
    client.importConversation({ handle: "s" }),
    client.models(),
    client.accounts(),
    client.sandbox(),
    client.config(),
    client.state(),
    client.usage(),
    client.recentWorkspaces(),
    client.browse(),
    client.listThreads(),
    client.createThread(),
    client.readThread(thread),
    client.nameThread(thread, "n"),
    client.archiveThread(thread),
    client.unarchiveThread(thread),
    client.deleteThread(thread),
    client.forkThread(thread),
    client.hopThread(thread, { to: "explore", reason: "r" }),
    client.evidence.query(),
    client.evidence.count(),
    client.evidence.get("{entryId}"),
    client.evidence.chain("{entryId}"),
    client.evidence.note(thread, { claim: "step", text: "t" }),
    client.evidence.noteAbout({ claim: "step", text: "t", subject: { type: "file", id: "a.ts" } }),
    client.evidence.gate(thread, "{name}"),
    client.evidence.verify(),
    client.evidence.lastVerdict(),
    client.evidence.checkpoints({ threadId: thread }),
    client.evidence.checkpoints({ taskId: task }),
    client.evidence.export(thread),
    client.evidence.import(""),
    client.evidence.purge("{id}"),
    client.envelopes(),
    client.envelope("{name}"),
    client.agents.list(),
    client.agents.read("{agent}"),
    client.agents.change("{agent}", { name: "n" }),
    client.agents.messages("{agent}"),
    client.agents.message("{messageId}"),
    client.agents.tell("{agent}", { text: "t" }),
    client.agents.ask("{agent}", { text: "t", timeoutMs: 1 }),
    client.evidence.follow().next(),
    client.startTurn(thread, { input: "go" }),
    client.listTurns(thread),
    client.readTurn(thread, turn),
    client.interruptTurn(thread, turn),
    client.steerTurn(thread, turn, "on"),
    client.listItems(thread),
    client.listProcesses(thread),
    client.endProcess(thread, { pid: PID, startTicks: "1" }),
    client.writeInput(thread, { processId: "{processId}", end: true }),
    client.readOutput(thread, { sha256: "{sha256}" }),
    client.threadDiff(thread),
    client.listApprovals(),
    client.listApprovals(thread),
    client.answerApproval(thread, "{approvalId}", "accept"),
    client.follow().next(),
    client.follow({ threadId: thread }).next(),
    tasks.follow(task).next(),
    tasks.list(),
    tasks.create({ prompt: "go" }),
    tasks.plan({ prompt: "go" }),
    tasks.lint({ spec: "goal: go" }),
    tasks.send({ text: "go" }),
    tasks.read(task),
    tasks.log(task),
    tasks.attempts(task),
    tasks.checks(task),
    tasks.stalls(),
    tasks.pause(task),
    tasks.resume(task),
    tasks.cancel(task),
    tasks.retry(task),
    tasks.complete(task),
    tasks.accept(task),
    tasks.change(task, { name: "n" }),
    tasks.merge(task),
    tasks.undo(task),
    tasks.diff(task),
    tasks.verify(task),
    tasks.relieve(task, { action: "report" }),
    tasks.archive(task),
    tasks.unarchive(task),
    tasks.delete(task),
    tasks.clear(),
    notifications.list(),
    notifications.redeliver("{notificationId}"),
    notifications.sinks(),
    notifications.test("{sink}"),
  ]);
  return asked;
}
