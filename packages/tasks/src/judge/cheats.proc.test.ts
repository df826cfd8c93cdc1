/**
 * 13: agents that plant something in place of the work: each cheat of the table that fools its own tree by itself, and random
 * agents that apply one to five cheats to a project, with a real repair or without. With `deliver` stated a verdict
 * is exactly what plain processes say of the beginning with the delivered files; without it nothing is verified on a planted
 * file that is not named. A few agents here; HEDDLE_E2E_FULL=1 is five hundred, HEDDLE_E2E_SEED=n begins elsewhere.
 */
import { afterAll, expect, test } from "vitest";
import { MISSING, PROJECTS, type Project } from "../../test/cheats/project.ts";
import { plant, runAgent, runCheat, type Told } from "../../test/cheats/random-agent.ts";
import { openStage, resetWorkspace, succeeds, type Stage } from "../../test/cheats/stage.ts";
import { CHEATS, type Cheat } from "../../test/cheats/table.ts";

const isFull = process.env["HEDDLE_E2E_FULL"] === "1";
const COUNT = isFull ? 500 : 8;
/** A test of its own for so many, so that a long run is seen to go on. */
const IN_A_TEST = 25;
const SEED = Number(process.env["HEDDLE_E2E_SEED"] ?? 1);
const AGENT_MS = 30_000;
/** Of projects that are slow to check, so many agents of a hundred. */
const SLOW_PERCENT = 8;
const without = MISSING.length === 0 ? "" : ` (not installed: ${MISSING.join(", ")})`;

const stages = new Map<Project, Promise<Stage>>();

afterAll(async () => {
  for (const stage of stages.values()) (await stage)[Symbol.dispose]();
});

function stageOf(project: Project): Promise<Stage> {
  const known = stages.get(project) ?? openStage(project);
  stages.set(project, known);
  return known;
}

function projectOf(seed: number): Project {
  const [slow, quick] = [PROJECTS.filter(({ isSlow }) => isSlow), PROJECTS.filter(({ isSlow }) => isSlow !== true)];
  const isSlow = slow.length > 0 && seed % 100 >= 100 - SLOW_PERCENT;
  const project = isSlow ? slow[seed % slow.length] : quick[seed % quick.length];
  if (project === undefined) throw new Error("there is no project");
  return project;
}

for (let from = SEED; from < SEED + COUNT; from += IN_A_TEST) {
  const count = Math.min(IN_A_TEST, SEED + COUNT - from);
  test(
    `13: nothing is verified falsely and no repair is missed, ${count} random agents from seed ${from}${without}`,
    async ({ annotate }) => {
      const all: Told[] = [];
      const faults: string[] = [];
      for (let seed = from; seed < from + count; seed += 1) {
        const told = await runAgent(await stageOf(projectOf(seed)), seed);
        faults.push(...told.faults.map((fault) => `seed ${seed}, ${told.what}: ${fault}`));
        all.push(told);
      }
      await annotate(tally(all));
      expect(faults).toEqual([]);
    },
    count * AGENT_MS,
  );
}

function tally(all: readonly Told[]): string {
  const of = (mode: "stated" | "open", outcome: Told["open"]): number =>
    all.filter((told) => told[mode] === outcome).length;
  const modes = (["stated", "open"] as const).map(
    (mode) =>
      `${mode}: ${of(mode, "verified")} verified, ${of(mode, "review")} review, ${of(mode, "rejected")} rejected`,
  );
  const resting = all.filter(({ restsOnPlanted }) => restsOnPlanted).length;
  const repaired = all.filter(({ isRepaired }) => isRepaired).length;
  return `${all.length} agents, ${repaired} repaired; ${modes.join("; ")}; ${resting} verified on a planted file that is named`;
}

/** With the languages that each is for. By default a part of them, and another one with another seed. */
function fooling(part: number): readonly { readonly cheat: Cheat; readonly project: Project }[] {
  const tried = CHEATS.filter(({ fools }) => fools === true).flatMap((cheat) =>
    PROJECTS.filter(({ language, isSlow }) => cheat.of.includes(language) && (isFull || isSlow !== true)).map(
      (project) => ({ cheat, project }),
    ),
  );
  return isFull ? tried : tried.filter((_, index) => index % part === SEED % part);
}

test.each(fooling(4).map(({ cheat, project }) => ({ language: project.language, name: cheat.name, cheat, project })))(
  "13: alone, $language: $name (one of four; HEDDLE_E2E_FULL=1 all)",
  async ({ cheat, project }) => {
    const stage = await stageOf(project);
    const planted = await runCheat(stage, cheat, { isRepaired: false });
    expect(planted.faults).toEqual([]);
    expect(planted.stated).not.toBe("verified");
    const stated = cheat.takesSource === true ? "rejected" : "verified";
    expect(await runCheat(stage, cheat, { isRepaired: true })).toMatchObject({ faults: [], stated });
  },
  2 * AGENT_MS,
);

test(
  "13: in their own tree the same cheats get through, so that the judge can tell the difference",
  async () => {
    const harmless: string[] = [];
    for (const { cheat, project } of fooling(5)) {
      const stage = await stageOf(project);
      resetWorkspace(stage);
      plant(stage, cheat);
      const isFooled = project.commands.every((run) => succeeds(stage.workspace, run));
      if (!isFooled) harmless.push(`${project.language}: ${cheat.name}`);
    }
    expect(harmless).toEqual([]);
  },
  20 * AGENT_MS,
);
