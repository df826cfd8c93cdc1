/** 13: a check that comes out differently on the same files is flaky: shown, run again, and no part of a plain verdict. */
import { createServer } from "node:http";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { CheckResult } from "@heddle/protocol";
import { openTestHarness, shell } from "../../test/test-harness.ts";
import { judge, openTaskFixture, type TaskFixtureOptions } from "../../test/task-fixture.ts";
import { freezeWork } from "../tree/freeze-work.ts";
import { verifyWork, type Verdict } from "./verify.ts";
import { readBase } from "./freeze-claim.ts";
import { pickAll, workFiles } from "./pick.ts";

type Checks = NonNullable<TaskFixtureOptions["checks"]>;

test("13: one that flips since the beginning although it read nothing of the work", async () => {
  await using dice = await serveDice("NYNYNYNY");
  const flaky = askingDice(dice.url);
  const run = async (more: Checks): Promise<Verdict> =>
    await judge({ checks: [flaky, ...more] }, (other) => other.write("unread.txt", "work"));
  expect(await run([])).toMatchObject({
    passed: false,
    results: [{ name: "dice", outcome: "passed", isFlaky: true }],
    review: { reasons: [{ kind: "flaky", message: expect.stringContaining("dice passed and failed") }] },
  });
  dice.again();
  expect(await run([{ kind: "file-exists", path: "unread.txt" }])).toMatchObject({
    passed: false,
    results: [{ isFlaky: true }, { outcome: "passed" }],
    review: { reasons: [{ kind: "flaky" }] },
  });
});

test("13: one that flips since an earlier round although nothing it read has changed", async () => {
  const states: string[] = [];
  const real = { kind: "contains", name: "real", path: "notes.md", text: "2" } as const;
  for (const more of [[], [real]]) {
    // The first round, the second, and once more; at the beginning there is nothing to read.
    await using dice = await serveDice("NYN");
    const step = (command: string): object[] => [{ calls: [shell(command)] }, { text: "TASK COMPLETE" }];
    await using t = await openTestHarness({
      script: [...step("echo 1 > app.js; echo 1 > notes.md"), ...step("echo 2 > notes.md")],
    });
    const { id } = await t.add({
      checks: [askingDice(dice.url, "require('node:fs').readFileSync('app.js');"), ...more],
      deliver: ["app.js", "notes.md"],
      maxNudges: 1,
    });
    await t.work();
    const [task] = await t.settled(id);
    states.push(task?.state ?? "");
    const [first, second] = await t.of(id, "task.checked");
    expect(first?.results[0]).toMatchObject({ name: "dice", outcome: "failed", restsOn: ["app.js"] });
    expect(second?.results[0]).toMatchObject({ name: "dice", outcome: "passed", isFlaky: true });
  }
  expect(states).toEqual(["paused", "paused"]);
});

test("13: one that read other content than in an earlier round is as good as before, and is not run again", async () => {
  const repair = [{ calls: [shell("echo exit 2 > app.sh")] }, { text: "TASK COMPLETE" }];
  const again = [{ calls: [shell("echo exit 0 > app.sh")] }, { text: "TASK COMPLETE" }];
  await using t = await openTestHarness({ script: [...repair, ...again] });
  const { id } = await t.add({ checks: [{ kind: "command", run: "sh app.sh" }], deliver: ["app.sh"] });
  await t.work();
  const [task] = await t.settled(id);
  expect([task?.state, task?.lastCheck?.results[0]?.isFlaky]).toEqual(["verified", undefined]);
  expect((await t.of(id, "task.checking")).map(({ room }) => room)).toEqual(["baseline", "delivered", "delivered"]);
});

test("13: on the same work to the last byte one flip is enough, and a failure of that kind is put to the owner", async () => {
  const then = async (outcome: CheckResult["outcome"], run: string): Promise<Verdict> => {
    await using fixture = await openTaskFixture({ checks: [{ kind: "command", name: "it", run }] });
    const baseline = await fixture.takeBaseline();
    await fixture.write("app.js", "1\n");
    const base = await readBase(fixture.checkOptions.home, { id: "task_1" }, baseline);
    const into = join(fixture.root, "home", "rooms", "task_1", "work-1");
    const { signal } = fixture.checkOptions;
    const frozen = await freezeWork(fixture.workspace, base, { into, skip: [], signal });
    const result: CheckResult = { name: "it", kind: "command", outcome, message: "", startedAt: 0, durationMs: 0 };
    const results = [{ ...result, restsOn: ["app.js"], areReadsKnown: true }];
    const work = { sha256: frozen.sha256, ...workFiles(pickAll(frozen.changes), frozen.changes) };
    return await verifyWork(fixture.checkOptions, { baseline, base, frozen, earlier: [{ results, work }] });
  };
  expect(await then("failed", "cat app.js")).toMatchObject({
    passed: false,
    results: [{ outcome: "passed", isFlaky: true }],
    review: { reasons: [{ kind: "flaky" }] },
  });
  expect(await then("passed", "cat app.js; exit 1")).toMatchObject({
    passed: false,
    results: [{ outcome: "failed", isFlaky: true }],
    review: {
      reasons: [
        { kind: "flaky", message: expect.stringContaining("only flaky checks fail for this work: it came out") },
      ],
    },
  });
  expect(await then("passed", "cat app.js")).toMatchObject({ passed: true });
});

function askingDice(url: string, before = ""): Checks[number] {
  const ask = `${before}fetch("${url}").then((r) => process.exit(r.ok ? 0 : 1))`;
  return { kind: "command", name: "dice", network: true, run: [process.execPath, "-e", ask] };
}

/** Answers one after another. */
async function serveDice(answers: string) {
  let asked = 0;
  const server = createServer((_, response) => {
    response.statusCode = answers[asked] === "Y" ? 200 : 500;
    asked += 1;
    response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return {
    url: `http://127.0.0.1:${port}/`,
    again() {
      asked = 0;
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
