/** Tasks over HTTP through the whole program: made, followed, verified, paid for. */
import { readFile } from "node:fs/promises";
import path from "node:path";
import { expect, test } from "vitest";
import { run } from "../../test/heddle-process.ts";
import { MOCK_KEY, openMockWorld } from "../../test/mock-model.ts";
import { startServe, type StreamEvent } from "../../test/serve-client.ts";

const shell = (cmd: string) => ({ calls: [{ tool: "exec_command", args: { cmd } }] });

test("the example has a task carried out over HTTP and follows it to verified; the ledger knows what it took", async () => {
  await using mock = await openMockWorld({
    script: [{ text: "It is done." }, shell("touch done.txt"), { text: "Now it is done." }],
  });
  const { world } = mock;
  await using served = await startServe(world, { env: MOCK_KEY });
  const example = path.join(import.meta.dirname, "../../../../examples/http-task.mjs");
  const ran = await run(["make done.txt", "done.txt"], { world, launcher: example });
  expect(ran, ran.stderr).toMatchObject({ code: 0 });
  const [made, ...lines] = ran.stdout.trim().split("\n");
  expect(lines.filter((line) => !line.startsWith("the agent says"))).toEqual([
    "turn 1: first",
    expect.stringMatching(/^not done: .*done\.txt/),
    "turn 2: rejected",
    expect.stringMatching(/^gpt-5\.5: 3 requests, \d+ output tokens$/),
    "verified",
  ]);
  const id = (made ?? "").split(" ")[0] ?? "";
  expect((await served.call("GET", `/api/tasks/${id}`)).json).toMatchObject({ state: "verified", hasEnded: true });
  const usage = await run(["usage", "--by", "task,model", "--json"], { world });
  expect(
    usage.stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line)),
  ).toMatchObject([{ of: { task: id, model: "gpt-5.5" }, requests: 3 }]);
  expect((await run(["usage", "--by", "colour"], { world })).code).toBe(2);
  expect((await run(["usage"], { world })).stdout).toMatch(/^\d{4}-\d\d-\d\d {2}3 requests/);
  expect((await readFile(example, "utf8")).trimEnd().split("\n").length).toBeLessThanOrEqual(80);
});

test("104: whoever follows a task comes back to the next server after a kill, and misses nothing", async () => {
  await using mock = await openMockWorld({
    respond: ({ number }) =>
      number === 0 ? shell("sleep 60") : number === 1 ? shell("touch done.txt") : { text: "It is done." },
  });
  const { world } = mock;
  const spec = {
    goal: "make done.txt",
    checks: [{ "file-exists": "done.txt" }],
    retries: { on: ["crash"], backoff: "1s" },
  };
  let cursor = 0;
  const seen: number[] = [];
  let id = "";
  const until = (type: string) => (event: StreamEvent) => {
    seen.push(event.seq);
    cursor = event.seq;
    return event.body.type === type;
  };
  {
    await using first = await startServe(world, { env: MOCK_KEY });
    const made = await first.call("POST", "/api/tasks", { spec });
    expect(made.status).toBe(201);
    id = String(made.json["id"]);
    await first.events(`tasks/${id}`, until("task.prompted"));
    await mock.server.arrived(0);
    first.running.child.kill("SIGKILL");
    await first.running.ended;
  }
  await using second = await startServe(world, { env: MOCK_KEY });
  await second.events(`tasks/${id}`, until("task.verified"), cursor);
  expect(seen).toEqual(seen.map((_, at) => at + 1));
  const { json } = await second.call("GET", `/api/tasks/${id}/attempts`);
  expect((json["data"] as { outcome?: string }[]).at(-1)).toMatchObject({ outcome: "verified" });
});

test("101: a plan is proposed by a model without tools, can be taken as a task, and adds nothing by itself", async () => {
  const plan = {
    name: "A health page",
    goal: "Make health.html",
    steps: ["write it"],
    checks: [{ kind: "file-exists", path: "health.html", text: "", run: "" }],
  };
  await using mock = await openMockWorld({ script: [{ text: JSON.stringify(plan) }] });
  const { world } = mock;
  await world.file("workspace/package.json", "{}");
  await using served = await startServe(world, { args: ["--no-tasks"], env: MOCK_KEY });
  const proposed = await served.call("POST", "/api/tasks/plan", { prompt: "a page that says the server is well" });
  expect(proposed).toMatchObject({ status: 200, json: { plan: { name: "A health page", steps: ["write it"] } } });
  expect(String(proposed.json["text"])).toContain("health.html");
  const request = mock.server.requests[0]?.body as { readonly tools?: readonly unknown[] };
  expect(request.tools ?? []).toEqual([]);
  expect(mock.lastRequest()).toContain("package.json");
  expect((await served.call("GET", "/api/tasks")).json).toMatchObject({ data: [] });
  const added = await served.call("POST", "/api/tasks", { plan: proposed.json["plan"] });
  expect(added).toMatchObject({
    status: 201,
    json: {
      state: "pending",
      spec: { goal: "Make health.html", checks: [{ kind: "file-exists", path: "health.html" }] },
    },
  });
  // Left to others: nobody has asked the model for anything else.
  expect((await served.call("GET", "/api/state")).json).toMatchObject({
    config: { carriesOutTasks: false },
    counts: { pending: 1 },
  });
  expect(mock.server.requests).toHaveLength(1);
});

test("101: what a model proposes that is no plan is refused, with what to do", async () => {
  await using mock = await openMockWorld({ respond: () => ({ text: "I would rather not." }) });
  await using served = await startServe(mock.world, { args: ["--no-tasks"], env: MOCK_KEY });
  const answer = await served.call("POST", "/api/tasks/plan", { prompt: "x" });
  expect(answer.status).toBe(502);
  expect((answer.json["error"] as { readonly code: string }).code).toMatch(/^(schema\.violated|task\.unverified)$/);
});

test("119: an address that other machines can reach is refused without TLS or the owner's word", async () => {
  await using mock = await openMockWorld({ script: [] });
  const ran = await run(["serve", "--listen", "http://0.0.0.0:0"], { world: mock.world });
  expect(ran.code).toBe(2);
  expect(ran.stderr).toContain("--allow-non-loopback");
});
