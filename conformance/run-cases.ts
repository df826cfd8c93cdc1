/** Plays cases through programs, two at a time, and holds what was seen against the lists of meant differences. */
import { compare, type Aspect, type Found } from "./compare.ts";
import { DIFFERENCES, type Difference } from "./differences.ts";
import type { ExecCase } from "./exec-case.ts";
import { observe, type CaseSeen } from "./observe.ts";
import type { Program } from "./program.ts";
import { applyRules, RULES } from "./rules.ts";

export interface Verdict {
  readonly id: string;
  readonly found: readonly Found[];
  readonly listed?: Difference;
  /** What is wrong with the list, in words; empty when every difference is meant. */
  readonly problems: readonly string[];
}

const UNSTEADY: readonly Aspect[] = ["events", "items"];

/** Two at a time: the machine of a contributor has that many cores. */
export async function observeAll(
  program: Program,
  cases: readonly ExecCase[],
  onSeen: (seen: CaseSeen) => void,
): Promise<ReadonlyMap<string, CaseSeen>> {
  const waiting = [...cases];
  const all = new Map<string, CaseSeen>();
  const worker = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const seen = await observe(program, next);
      all.set(next.id, seen);
      onSeen(seen);
    }
  };
  await Promise.all([worker(), worker()]);
  return all;
}

export interface Judge {
  judge(execCase: ExecCase, sides: { readonly codex: CaseSeen; readonly heddle: CaseSeen }): Verdict;
  /** Rules that changed nothing, and differences of cases that do not exist. */
  leftOver(cases: readonly ExecCase[]): readonly string[];
}

export function createJudge(): Judge {
  const used = new Set<string>();
  const ruleFor = (side: "codex" | "heddle") => (lines: Parameters<typeof applyRules>[1]) =>
    applyRules(side, lines, (id) => used.add(id));
  return {
    judge(execCase, { codex, heddle }) {
      const rules = { codex: ruleFor("codex"), heddle: ruleFor("heddle") };
      const all = compare(codex, heddle, { rules, isUnordered: execCase.isUnordered });
      const found = execCase.isUnsteady === true ? all.filter(({ aspect }) => !UNSTEADY.includes(aspect)) : all;
      const listed = DIFFERENCES.find((difference) => difference.case === execCase.id);
      return {
        id: execCase.id,
        found,
        ...(listed === undefined ? {} : { listed }),
        problems: [
          ...problemsOf(found, listed?.found ?? [], execCase.raced ?? []),
          ...(listed?.why === "" ? ["the entry has no reason; write one into differences.json"] : []),
        ],
      };
    },
    leftOver: (cases) => [
      ...RULES.filter(({ id }) => !used.has(id)).map(({ id }) => `rule ${id} no longer changes anything; remove it`),
      ...DIFFERENCES.filter((difference) => !cases.some(({ id }) => id === difference.case)).map(
        (difference) => `difference of ${difference.case}, which is no case`,
      ),
    ],
  };
}

/** Where Codex `raced`, Heddle comes out as listed or as Codex did, however far Codex came this time. */
function problemsOf(found: readonly Found[], listed: readonly Found[], raced: readonly Aspect[]): readonly string[] {
  const unlisted = found.flatMap(({ aspect, codex, heddle }) => {
    const entry = listed.find((other) => other.aspect === aspect);
    if (entry === undefined)
      return [`${aspect} differs, which is not listed\n    codex   ${codex}\n    heddle  ${heddle}`];
    if (entry.heddle === heddle && (entry.codex === codex || raced.includes(aspect))) return [];
    const [was, is] = entry.codex === codex ? [entry.heddle, heddle] : [entry.codex, codex];
    return [`${aspect} differs in another way than listed\n    listed  ${was}\n    seen    ${is}`];
  });
  const gone = listed.filter(
    ({ aspect }) => !raced.includes(aspect) && !found.some((other) => other.aspect === aspect),
  );
  return [...unlisted, ...gone.map(({ aspect }) => `${aspect} no longer differs; remove the entry`)];
}
