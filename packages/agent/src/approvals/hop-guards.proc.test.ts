import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { HeddleError, type Envelope, type EvidenceQuery, type HopGuard } from "@heddle/protocol";
import { envelopeFor, openSandbox } from "@heddle/tools";
import { expect, test } from "vitest";
import { runGuards, type GuardContext } from "./hop-guards.ts";

const OUTCOME = { type: "object", properties: { found: { type: "array" } }, required: ["found"] };

async function openGuards() {
  const folder = await mkdtemp(join(tmpdir(), "heddle-guards-"));
  const workspace = join(folder, "workspace");
  await mkdir(workspace);
  await writeFile(join(workspace, "plan.md"), "plan\n");
  await writeFile(join(folder, "outside"), "");
  await symlink(join(folder, "outside"), join(workspace, "out"));
  await symlink("nowhere", join(workspace, "dangling"));
  const options = { workspace, writableRoots: [], networkAccess: false, approval: "never", masked: [] } as const;
  const envelope: Envelope = { ...envelopeFor({ ...options, mode: "read-only" }), outcome: OUTCOME };
  const { writeRoots, masked, network } = envelope;
  const sandbox = await openSandbox(
    { workspace, writeRoots, masked, network },
    { backend: "auto", quarantineDir: join(folder, "quarantine") },
  );
  const context: GuardContext = {
    threadId: "thread-1",
    workspace,
    envelope,
    sandbox,
    environment: { PATH: process.env["PATH"] ?? "" },
    enteredAt: 1000,
    findEvidence: () => Promise.reject(new HeddleError("door.unsupported", "evidence cannot be queried here")),
    signal: new AbortController().signal,
  };
  return {
    workspace,
    context,
    look: async (guard: HopGuard, more: Partial<GuardContext> = {}) =>
      (await runGuards([guard], { ...context, ...more })).findings,
    async [Symbol.asyncDispose]() {
      await sandbox.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

const met = (kind: string, found: string) => [{ kind, isMet: true, found }];
const unmet = (kind: string, found: string) => [{ kind, isMet: false, found }];

test("H5: a command guard is met by its exit code alone, and runs in the sandbox of the envelope that is left", async () => {
  await using t = await openGuards();
  const run = (script: string, more: object = {}) =>
    t.look({ kind: "command", command: ["/bin/sh", "-c", script], ...more });
  expect(await run("true")).toEqual(met("command", "exit code 0"));
  expect(await run("echo all tests passed; exit 1")).toEqual(unmet("command", "exit code 1: all tests passed"));
  expect(await run("exit 3", { exitCode: 3 })).toEqual(met("command", "exit code 3"));
  expect(await run("exit 4", { exitCode: 3 })).toEqual(unmet("command", "exit code 4 instead of 3"));
  expect(await run("sleep 60", { timeoutMs: 100 })).toEqual(unmet("command", "it did not end in 100 ms"));
  const [refused] = await run("echo changed > plan.md");
  expect(refused).toMatchObject({ kind: "command", isMet: false });
  expect(await readFile(join(t.workspace, "plan.md"), "utf8")).toBe("plan\n");
  const [loud] = await run("i=0; while [ $i -lt 2000 ]; do i=$((i+1)); printf 0123456789; done; exit 1");
  expect(loud?.found.length).toBe(500);
  const [missing] = await t.look({ kind: "command", command: ["/no/such/program"] });
  expect(missing).toMatchObject({ isMet: false });
});

test("H5: a file guard looks at the workspace and is not led out of it", async () => {
  await using t = await openGuards();
  const exist = (...names: string[]) => t.look({ kind: "files", exist: names });
  expect(await t.look({ kind: "files", exist: ["plan.md"], absent: ["src"] })).toEqual(
    met("files", "1 exist, 1 absent"),
  );
  expect(await exist("plan.md", "missing")).toEqual(unmet("files", "missing does not exist"));
  expect(await exist("out")).toEqual(unmet("files", "out leads out of the workspace"));
  expect(await exist("../outside")).toEqual(unmet("files", "../outside leads out of the workspace"));
  expect(await exist("dangling")).toEqual(unmet("files", "dangling is a broken link"));
  expect(await exist("plan.md/below")).toEqual(unmet("files", "plan.md/below does not exist"));
  expect(await t.look({ kind: "files", absent: ["dangling"] })).toEqual(unmet("files", "dangling exists"));
  expect(await t.look({ kind: "files" })).toEqual(unmet("files", "it names no file"));
  const [unseen] = await t.look({ kind: "files", absent: ["x".repeat(300)] });
  expect(unseen).toMatchObject({ isMet: false, found: expect.stringMatching(/^not evaluated: /) });
});

test("H5: an evidence guard counts entries of the own thread, and is not met where nothing can be counted", async () => {
  await using t = await openGuards();
  const asked: EvidenceQuery[] = [];
  const findEvidence = async (query: EvidenceQuery) => {
    asked.push(query);
    return asked.map((_, index) => ({ id: `evt_${index}` }));
  };
  const query: EvidenceQuery = { type: "check.passed" };
  expect(await t.look({ kind: "evidence", query }, { findEvidence })).toEqual([
    { kind: "evidence", isMet: true, found: "1 of 1 entries", entries: ["evt_0"] },
  ]);
  const more = { kind: "evidence", query: { ...query, since: 500 }, min: 3, sinceEntered: true } as const;
  expect(await t.look(more, { findEvidence })).toEqual([
    { kind: "evidence", isMet: false, found: "2 of 3 entries", entries: ["evt_0", "evt_1"] },
  ]);
  await t.look({ kind: "evidence", query: { thread: "thread-2" } }, { findEvidence });
  expect(asked).toEqual([
    { type: "check.passed", thread: "thread-1", origin: "local", limit: 1 },
    { type: "check.passed", thread: "thread-1", origin: "local", since: 1000, limit: 3 },
    { thread: "thread-2", limit: 1 },
  ]);
  expect(await t.look({ kind: "evidence", query })).toEqual(
    unmet("evidence", "not evaluated: evidence cannot be queried here"),
  );
});

test("H5: an outcome guard needs an outcome of the shape that the envelope names", async () => {
  await using t = await openGuards();
  const guard = { kind: "outcome" } as const;
  expect(await t.look(guard, { outcome: { found: [] } })).toEqual(met("outcome", "it has the shape"));
  expect(await t.look(guard)).toEqual(unmet("outcome", "the hop has no outcome"));
  const [wrong] = await t.look(guard, { outcome: { found: "src" } });
  expect(wrong).toMatchObject({ isMet: false, found: expect.stringContaining("found") });
  const { outcome: _outcome, ...without } = t.context.envelope;
  expect(await t.look(guard, { envelope: without, outcome: {} })).toEqual(
    unmet("outcome", "explore has no schema of an outcome"),
  );
});

test("H5: the first guard that is not met ends the look, and a stopped turn has no finding", async () => {
  await using t = await openGuards();
  const missing: HopGuard = { kind: "files", exist: ["missing"] };
  const written: HopGuard = { kind: "command", command: ["/bin/false"] };
  expect(await runGuards([{ kind: "files", exist: ["plan.md"] }, missing, written], t.context)).toEqual({
    findings: [...met("files", "1 exist, 0 absent"), ...unmet("files", "missing does not exist")],
    proofs: [],
  });
  const signal = AbortSignal.abort(new Error("stopped"));
  await expect(t.look(written, { signal })).rejects.toThrow("stopped");
});
