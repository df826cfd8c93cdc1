/**
 * 13: agents that plant something in place of the work, by class and language. Stated what is delivered, none is verified
 * without a repair and every repair is. Not stated, none is verified without the file being named.
 */
import { execFileSync } from "node:child_process";
import { describe, expect, test } from "vitest";
import { beginShell, CHEAT_PROJECTS, type CheatProject } from "../../test/cheats.ts";
import { openWorkPlace, type WorkPlace } from "../../test/work-place.ts";
import type { Verdict } from "./verify.ts";

const has = (program: string): boolean => {
  try {
    execFileSync(program, ["--version"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
};
const NEEDS: Readonly<Record<string, string>> = { Python: "python3", "shell and make": "make" };

async function judged(
  project: CheatProject,
  deliver: readonly string[] | undefined,
  work: (place: WorkPlace) => Promise<void>,
): Promise<Verdict> {
  const spec = deliver === undefined ? {} : { deliver: [...deliver] };
  await using place = await openWorkPlace({ ...project.options, spec });
  if (project.language === "shell and make") await beginShell(place);
  const baseline = await place.takeBaseline();
  await work(place);
  return await place.verify(baseline);
}

/** Everything that the verdict says it rests on, or that its owner is asked about. */
function named({ results, review }: Verdict): string {
  return [
    ...results.flatMap(({ restsOn = [] }) => restsOn),
    ...(review?.reasons ?? []).flatMap(({ files }) => files),
  ].join("\n");
}

describe.each(CHEAT_PROJECTS)("13: $language", (project) => {
  const runs = test.runIf(has(NEEDS[project.language] ?? "node"));

  runs.each(project.cheats)("$name", async ({ plant, planted }) => {
    const both = async (place: WorkPlace): Promise<void> => {
      await plant(place);
      await project.repair(place);
    };
    expect((await judged(project, project.deliver, plant)).passed, "deliver, no repair").toBe(false);
    expect(await judged(project, project.deliver, both), "deliver, repaired").toMatchObject({
      passed: true,
      violations: [],
    });
    const open = await judged(project, undefined, plant);
    expect(open.passed && !planted.some((path) => named(open).includes(path)), "not stated").toBe(false);
    if (open.results.every(({ outcome }) => outcome === "passed"))
      expect(
        planted.some((path) => named(open).includes(path)),
        named(open),
      ).toBe(true);
  });
});
