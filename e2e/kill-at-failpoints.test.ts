/** F01: `kill -9` at every failpoint, at its first occurrences or, with HEDDLE_E2E_FULL=1, at all of them. G1–G6, G8. */
import { FAILPOINTS, type Failpoint } from "@heddle/protocol/failpoints";
import { describe, expect, test } from "vitest";
import { NOTHING_FOUND } from "./checker.ts";
import { strike, worksReaching, type Struck, type Work } from "./strike.ts";

const isFull = process.env["HEDDLE_E2E_FULL"] === "1";
/** Side by side within a batch; a batch in which one does not fire any more is the last. */
function batches(name: Failpoint, work: Work): readonly (readonly number[])[] {
  if (isFull) return Array.from({ length: 200 }, (_, index) => [2 * index + 1, 2 * index + 2]);
  // Every append passes the failpoints of the journal: one early in a run, one later, and one that recovery makes.
  if (name.startsWith("journal.")) return work === "exec" ? [[1, 4]] : [[2]];
  return work === "exec" ? [[1, 3]] : [[1, 2]];
}

/** Time to be ready again after a crash; the promise is one second with ten thousand threads. */
const READY_MS = 1000;

describe("F01 kill -9 at every failpoint", () => {
  test.each([
    ["exec", ["first", "second", "third"]],
    // The abandoned thread's first command, the new thread's two, then one more turn in each, the newest first.
    ["recovery", ["first", "first", "second", "third", "second"]],
    ["approval", ["approved"]],
    ["messages", ["first", "second", "third"]],
  ] as const)("without a strike %s does all of its work", async (work, words) => {
    const whole = await strike(work, "");
    expectWhole(whole, work, { code: 0 });
    expect(whole.effects.map((line) => line.replace(/-.*/, ""))).toEqual(words);
  });

  test.each(FAILPOINTS.flatMap((name) => worksReaching(name).map((work) => [name, work] as const)))(
    "%s during %s: nothing acknowledged is lost, nothing runs twice, the thread goes on (G1 G3 G4 G5 G6 G8)",
    { timeout: isFull ? 600_000 : 60_000 },
    async (name, work) => {
      expect(await killAtEach(name, work)).toBeGreaterThan(0);
    },
  );
});

/** How often the place was really struck. */
async function killAtEach(name: Failpoint, work: Work): Promise<number> {
  let strikes = 0;
  for (const batch of batches(name, work)) {
    const struck = await Promise.all(batch.map((n) => strike(work, `${name}@${n}=kill`)));
    for (const [index, one] of struck.entries()) {
      const didFire = one.ran.signal === "SIGKILL";
      if (didFire) strikes += 1;
      expectWhole(one, `${name}@${batch[index]}`, didFire ? { signal: "SIGKILL" } : { code: 0 });
    }
    if (!struck.every(({ ran }) => ran.signal === "SIGKILL")) break;
  }
  return strikes;
}

function expectWhole(struck: Struck, where: string, end: Partial<Struck["ran"]>): void {
  const { ran, found, foundLater, laterStatuses, reopenMs } = struck;
  expect(ran, `${where}\n${ran.stderr}${ran.stdout}`).toMatchObject(end);
  expect({ where, found }).toEqual({ where, found: NOTHING_FOUND });
  expect({ where, foundLater }).toEqual({ where, foundLater: NOTHING_FOUND });
  expect({ where, isDone: laterStatuses.every((status) => status === "completed") }).toEqual({ where, isDone: true });
  expect(laterStatuses.length, where).toBeGreaterThan(0);
  expect(reopenMs, where).toBeLessThan(READY_MS);
}
