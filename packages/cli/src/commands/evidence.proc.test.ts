import { mkdir, writeFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { openWorld, run, type World } from "../../test/heddle-process.ts";
import { startServe } from "../../test/serve-client.ts";

async function runOnce(world: World): Promise<string> {
  const call = { tool: "bash", args: { command: "echo the kettle is hot" } };
  const script = await world.file("script.json", JSON.stringify([{ calls: [call] }, { text: "It is done." }]));
  const ran = await run(["exec", "--json", "--script", script, "look at the kettle"], { world });
  expect(ran.code).toBe(0);
  const first: { readonly thread_id: string } = JSON.parse(ran.stdout.split("\n")[0] ?? "");
  return first.thread_id;
}

interface Entry {
  readonly id: string;
  readonly type: string;
  readonly author: string;
  readonly text: string;
  readonly correctedBy?: string;
}

function entriesIn(stdout: string): readonly Entry[] {
  return stdout.split("\n").flatMap((line): Entry[] => (line === "" ? [] : [JSON.parse(line)]));
}

test("heddle evidence finds, counts, shows, notes, exports and purges what a run left", async () => {
  await using world = await openWorld();
  expect(await run(["evidence", "query"], { world })).toMatchObject({ code: 0, stdout: "no entry matches\n" });
  const thread = await runOnce(world);
  const found = await run(["evidence", "query", "kettle", "hot", "--type", "tool.*", "--json"], { world });
  const entries = entriesIn(found.stdout);
  expect(entries.map(({ type, author }) => [type, author])).toEqual([
    ["tool.settled", "agent:embedded"],
    ["tool.intended", "agent:embedded"],
  ]);
  expect(await run(["evidence", "count", "--thread", thread, "--type", "turn.completed"], { world })).toMatchObject({
    stdout: "1\n",
  });
  const [settled] = entries;
  // 14: ids by their beginnings, with and without evt_, as those of threads; a short one is never silently nothing.
  const short = thread.slice(0, 13);
  const ofThread = ["evidence", "count", "--type", "turn.completed", "--thread"];
  expect(await run([...ofThread, short], { world })).toMatchObject({ stdout: "1\n" });
  expect(await run([...ofThread, "00000000"], { world })).toMatchObject({ code: 2, stdout: "" });
  expect(await run(["evidence", "query", "--turn", "01a1ddef"], { world })).toMatchObject({
    code: 2,
    stderr: "heddle: --turn 01a1ddef must be a whole id, as heddle evidence query shows it\n",
  });
  const byBeginning = await run(["evidence", "show", settled?.id.slice(4, -4) ?? "", "--json"], { world });
  expect(entriesIn(byBeginning.stdout)).toMatchObject([{ id: settled?.id }]);
  expect(await run(["evidence", "chain", settled?.id.slice(0, 12) ?? ""], { world })).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/fits more than one entry; write more of its id:\n\| +evt_/),
  });
  const note = ["evidence", "note", thread.slice(0, 20), "it is cold", "--claim", "correction", "--tag", "kettle"];
  const noted = await run([...note, "--reply-to", settled?.id.slice(0, -2) ?? "", "--json"], { world });
  const [correction] = entriesIn(noted.stdout);
  expect(correction).toMatchObject({ author: "user:owner", type: "evidence.noted", text: "it is cold" });
  const shown = await run(["evidence", "show", settled?.id ?? "", "--json"], { world });
  expect(entriesIn(shown.stdout)).toMatchObject([{ correctedBy: correction?.id, body: { type: "tool.settled" } }]);
  const chain = await run(["evidence", "chain", correction?.id ?? ""], { world });
  expect(chain.stdout).toMatch(/tool\.settled[\s\S]*corrected by[\s\S]*evidence\.noted[\s\S]*it is cold/);
  const file = `${world.root}/thread.jsonl`;
  expect(await run(["evidence", "export", thread, "-o", file], { world })).toMatchObject({ code: 0 });
  expect(await run(["verify", file], { world })).toMatchObject({ code: 0 });
  expect(await run(["evidence", "purge", thread], { world })).toMatchObject({
    code: 0,
    stdout: `${thread} is purged\n`,
  });
  expect(await run(["evidence", "count"], { world })).toMatchObject({ stdout: "0\n" });
  expect(await run(["verify"], { world })).toMatchObject({ code: 0 });
});

test("V3: heddle evidence refuses what it does not know, and says what is wrong", async () => {
  await using world = await openWorld();
  await runOnce(world);
  const refused = async (...args: string[]): Promise<string> => {
    const { code, stderr } = await run(["evidence", ...args], { world });
    return `${code} ${stderr}`;
  };
  expect(await refused("querry")).toMatch(/^2 .*query/);
  expect(await refused("query", "--autor", "x")).toMatch(/^2 .*autor/);
  expect(await refused("query", "--claim", "guess")).toMatch(/^2 .*claim/);
  expect(await refused("query", "--limit", "many")).toMatch(/^2 .*limit/);
  expect(await refused("query", "--since", "tomorrowish")).toMatch(/^2 .*since/);
  expect(await refused("query", "--cursor", "x")).toMatch(/^2 .*cursor/);
  expect(await refused("show", "--oldest", "x")).toMatch(/^2 .*oldest/);
  expect(await refused("show", "evt_none")).toMatch(/^2 .*evt_none/);
});

test("a gate by its doors: the command line, app-server and HTTP each leave a proof, and a refusal exits as a hop's", async () => {
  await using world = await openWorld();
  await mkdir(`${world.home}/gates`, { recursive: true, mode: 0o700 });
  await writeFile(`${world.home}/gates/planned.yaml`, "guards: [{ kind: files, exist: [PLAN.md] }]\n");
  const thread = await runOnce(world);
  const gate = (...args: string[]) => run(["evidence", "gate", thread, "planned", ...args], { world });
  const refused = await gate();
  expect(refused.code).toBe(7);
  expect(refused.stdout).toMatch(/not met {2}files: PLAN\.md does not exist\nplanned is refused, on record as evt_/);
  await writeFile(`${world.workspace}/PLAN.md`, "go\n");
  const passed = await gate("--json");
  expect([passed.code, JSON.parse(passed.stdout)]).toMatchObject([0, { threadId: thread, isPassed: true }]);
  expect((await run(["evidence", "gates"], { world })).stdout).toMatch(/^planned +user +files\n$/);
  expect(await run(["evidence", "gate", thread, "plan"], { world })).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("there is no gate"),
  });
  await using served = await startServe(world);
  const over = await served.call("POST", `/api/threads/${thread}/gates/planned`, {});
  expect(over).toMatchObject({ status: 200, json: { isPassed: true, proof: { gate: { name: "planned" } } } });
  const lesson = { claim: "conclusion", text: "plans help", subject: { type: "lesson", id: "plans" } };
  const noted = await served.call("POST", "/api/evidence", lesson);
  expect(noted).toMatchObject({ status: 201, json: { subject: lesson.subject } });
  await served[Symbol.asyncDispose]();
  const proofs = await run(["evidence", "query", "--subject", "gate:planned", "--json"], { world });
  expect(entriesIn(proofs.stdout).map(({ type }) => type)).toEqual(["gate.passed", "gate.passed", "gate.refused"]);
  expect(await run(["verify", thread], { world })).toMatchObject({ code: 0 });
});

test("a lesson is noted beside any thread and purged by its owner, whenever that is", async () => {
  await using world = await openWorld();
  await runOnce(world);
  const note = await run(["evidence", "note", "never on Fridays", "--subject", "lesson:builds", "--json"], { world });
  const [lesson] = entriesIn(note.stdout);
  const find = async () => (await run(["evidence", "query", "--subject", "lesson"], { world })).stdout;
  expect(await find()).toContain("never on Fridays");
  expect(await run(["verify"], { world })).toMatchObject({ code: 0 });
  expect(await run(["evidence", "purge", lesson?.id ?? ""], { world })).toMatchObject({
    code: 0,
    stdout: `${lesson?.id} is purged\n`,
  });
  expect(await find()).toBe("no entry matches\n");
  expect(await run(["verify"], { world })).toMatchObject({ code: 0 });
  expect(await run(["evidence", "note", "about nothing"], { world })).toMatchObject({ code: 2 });
});
