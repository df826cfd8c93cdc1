/** `npm run conformance -- app [pattern]`: app-server of both programs, message by message, and Heddle's against the schema. */
import { codex, heddle } from "../program.ts";
import { judge, leftOver, type Verdict } from "./judge.ts";
import { readSeen, writeSeen } from "./recorded.ts";
import { writeAppResults } from "./report.ts";
import { playAll } from "./run.ts";
import { SCENARIOS } from "./scenarios.ts";
import { MessageSchema } from "./schema.ts";

export interface AppRun {
  readonly pattern: string | undefined;
  /** Play Codex again, rather than take what it did when it was recorded. */
  readonly isRecorded: boolean;
}

/** How many things were wrong. */
export async function runApp({ pattern, isRecorded }: AppRun): Promise<number> {
  const isWhole = pattern === undefined;
  const scenarios = SCENARIOS.filter(({ id }) => new RegExp(pattern ?? "").test(id));
  const schema = MessageSchema.generate();
  if (isWhole || isRecorded) {
    console.log(`playing ${scenarios.length} scenarios through app-server of Codex`);
    await playAll(codex(), scenarios, { onPlayed: ({ seen }) => writeSeen(seen) });
  }
  console.log(`playing ${scenarios.length} scenarios through app-server of Heddle`);
  const played = await playAll(heddle, scenarios);
  const problems: string[] = [];
  const verdicts = scenarios.flatMap((scenario): Verdict[] => {
    const ours = played.get(scenario.id);
    if (ours === undefined) return [];
    for (const { message, problem } of schema.misfits(ours.raw))
      problems.push(`${scenario.id}: ${message} does not fit the schema: ${problem}`);
    return [judge(scenario, { codex: readSeen(scenario.id), heddle: ours.seen })];
  });
  for (const verdict of verdicts) problems.push(...verdict.problems.map((problem) => `${verdict.id}: ${problem}`));
  if (isWhole) problems.push(...leftOver(verdicts));
  for (const problem of problems) console.log(problem);
  const checked = [...schema.checked.values()].reduce((sum, count) => sum + count, 0);
  const results = { verdicts, checked, kinds: schema.checked.size };
  if (isWhole) writeAppResults(results);
  const compared = verdicts.reduce((sum, verdict) => sum + verdict.compared, 0);
  const same = verdicts.reduce((sum, verdict) => sum + verdict.same, 0);
  console.log(
    `${verdicts.length} scenarios of app-server: ${compared} messages compared, ${same} the same but for added fields; ` +
      `${checked} messages of ${schema.checked.size} kinds held to the schema; ${problems.length} problems`,
  );
  return problems.length;
}
