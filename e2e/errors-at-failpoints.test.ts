/**
 * F06: an error at every failpoint. The run ends by itself, with a code and a reason or with its work done; exit code and
 * record agree; the store stays whole and the next turn works. A delay changes nothing.
 */
import { ERROR_CODES } from "@heddle/protocol";
import { FAILPOINTS, type Failpoint } from "@heddle/protocol/failpoints";
import { describe, expect, test } from "vitest";
import { NOTHING_FOUND, reopen } from "./checker.ts";
import { strike, worksReaching, type Struck } from "./strike.ts";
import { execArgs, jsonLines, openWorld, run } from "./world.ts";

const isFull = process.env["HEDDLE_E2E_FULL"] === "1";

/** Side by side within a group. Every append passes the failpoints of the journal; a disk is full late in a run, too. */
function strikesAt(name: Failpoint): readonly (readonly string[])[] {
  const both = (n: number): string[] => [`${name}@${n}=throw`, `${name}@${n}=enospc`];
  if (isFull) return Array.from({ length: 30 }, (_, index) => both(index + 1));
  return name.startsWith("journal.") ? [both(1), [`${name}@9=enospc`]] : [both(1)];
}

describe("F06 an error at every failpoint", () => {
  test.each(FAILPOINTS.filter((name) => worksReaching(name).length > 0).map((name) => [name]))(
    "%s fails with an exception or a full disk: the end is typed, the store whole (G8 G13)",
    { timeout: isFull ? 600_000 : 60_000 },
    async (name) => {
      const [work = "exec"] = worksReaching(name);
      for (const strikes of strikesAt(name)) {
        const struck = await Promise.all(strikes.map((failpoint) => strike(work, failpoint)));
        for (const [index, one] of struck.entries()) expectDefined(one, strikes[index] ?? "");
      }
    },
  );

  test("a delay at every failpoint is harmless", async () => {
    const reached = (name: Failpoint): boolean => worksReaching(name).includes("exec");
    const delays = FAILPOINTS.filter(reached).map((name) => `${name}=delay`);
    const { ran, found, foundLater, laterStatuses } = await strike("exec", delays.join(","));
    expect(ran).toMatchObject({ code: 0 });
    expect({ found, foundLater, laterStatuses }).toEqual({
      found: NOTHING_FOUND,
      foundLater: NOTHING_FOUND,
      laterStatuses: ["completed"],
    });
  });
});

test("V13: where the intent of a call cannot be stored the caller is told, and its tool does not run", async () => {
  await using world = await openWorld();
  const steps = [{ calls: [{ tool: "bash", args: { command: "echo went >> effects.log" } }] }, { text: "done" }];
  const script = await world.file("script.json", JSON.stringify(steps));
  const env = { HEDDLE_FAILPOINT: "turn.before-intent=enospc" };
  const ran = await run(execArgs("--script", script), { world, env });
  expect(ran).toMatchObject({ code: 8 });
  expect(failuresIn(ran)).toEqual(["store.full", "store.full"]);
  expect(await world.effects()).toEqual([]);
  await using heddle = await reopen(world.home);
  const types = (await heddle.journal.read({ after: 0 })).map(({ body }) => body.type);
  expect(types.filter((type) => type === "tool.intended" || type === "turn.completed")).toEqual(["turn.completed"]);
});

function expectDefined({ ran, found, foundLater, statuses, laterStatuses }: Struck, where: string): void {
  expect(ran, `${where}\n${ran.stderr}${ran.stdout}`).toMatchObject({ signal: null });
  expect({ where, found }).toEqual({ where, found: NOTHING_FOUND });
  expect({ where, foundLater }).toEqual({ where, foundLater: NOTHING_FOUND });
  expect({ where, laterStatuses }).toEqual({ where, laterStatuses: laterStatuses.map(() => "completed") });
  // What a run was to leave behind could not be written: the turn may be done, the run has failed.
  if (where.startsWith("artifact.")) {
    expect({ where, code: ran.code }).toEqual({ where, code: 8 });
    return;
  }
  const isCompleted = statuses.at(-1) === "completed";
  expect({ where, isCompleted, isZero: ran.code === 0 }).toEqual({ where, isCompleted, isZero: isCompleted });
  if (isCompleted || where.startsWith("approval.")) return;
  expect(ERROR_CODES, where).toContain(failuresIn(ran).at(-1));
}

/** Codes of the lines that tell of the failure. */
function failuresIn({ stdout }: Struck["ran"]): readonly string[] {
  return jsonLines(stdout).flatMap(({ type, code, error }) =>
    type === "error" || type === "turn.failed" ? [code ?? error?.code ?? "none"] : [],
  );
}
