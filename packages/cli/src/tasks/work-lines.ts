/** What a verdict rests on, what else has changed, and what the owner is asked, as lines for people. */
import { isObstructed, visibleLine, visiblePath, type CheckResult, type TaskRecord } from "@heddle/protocol";
import type { JudgedWork, WorkFile, WorkReview } from "@heddle/protocol/tasks";
import { isPutToOwner } from "@heddle/protocol/task-words";
import type { Style } from "../print/style.ts";

const SHOWN = 20;
/** Files of a proposal that is printed whole. */
const MAX_IN_LINE = 200;

/** `src/a.js (changed)`. */
export function fileLine({ path, how, role, leadsTo, why }: WorkFile): string {
  const what = how === "added" ? "new" : how;
  const kind = role === undefined || role === "source" ? "" : `, ${role}`;
  const link = leadsTo === undefined ? "" : `, a link to ${visiblePath(leadsTo)}`;
  return `${visiblePath(path)} (${what}${kind}${link}${why === undefined ? "" : `: ${visibleLine(why)}`})`;
}

export function listed(files: readonly string[], all = files.length): string {
  const shown = files.slice(0, SHOWN);
  return `${shown.join(", ")}${all > shown.length ? ` and ${all - shown.length} more` : ""}`;
}

/** Under the line of its check. */
export function restsLine(
  { restsOn, restsOnCount, areReadsKnown }: CheckResult,
  work: JudgedWork | undefined,
): readonly string[] {
  if (restsOn === undefined || restsOn.length === 0) return [];
  const known = new Map([...(work?.delivered ?? []), ...(work?.others ?? [])].map((file) => [file.path, file]));
  const names = restsOn.map((path) => {
    const file = known.get(path);
    return file === undefined ? visiblePath(path) : fileLine(file);
  });
  const doubt = areReadsKnown === false ? " (all files: this host cannot observe what a check reads)" : "";
  return [`         rests on ${listed(names, restsOnCount ?? names.length)}${doubt}`];
}

export function workLines(work: JudgedWork | undefined, style: Style): readonly string[] {
  if (work === undefined) return [];
  const { delivered, deliveredCount, others, othersCount, made = [], madeCount, spec } = work;
  return [
    ...(deliveredCount === 0 ? [] : [`  judged: ${listed(delivered.map(fileLine), deliveredCount)}`]),
    ...(made.length === 0 ? [] : [`  made of it by the setup: ${listed(made.map(visiblePath), madeCount)}`]),
    ...(othersCount === 0 ? [] : [style.yellow(`  changed, not judged: ${listed(others.map(fileLine), othersCount)}`)]),
    ...(spec === undefined
      ? []
      : [style.yellow(`  the agent changed the file of the task, ${visibleLine(spec.path)}`)]),
  ];
}

export function reviewLines(review: WorkReview | undefined, style: Style): readonly string[] {
  if (review === undefined) return [];
  return review.reasons.flatMap(({ message, files, count = files.length }) => [
    style.yellow(`  not verified: ${visibleLine(message)}`),
    ...files.slice(0, SHOWN).map((file) => `    ${visiblePath(file)}`),
    ...(count > SHOWN ? [`    and ${count - SHOWN} more`] : []),
  ]);
}

/** The two ways on. */
export function wayOnLines(task: TaskRecord): readonly string[] {
  const { id, lastCheck } = task;
  const review = lastCheck?.review;
  if (!isPutToOwner(task) || review === undefined) return [];
  if (isObstructed(review))
    return [
      `  heddle task resume ${id}   when the obstacle is removed: judges the same work and delivers it, without the agent`,
    ];
  if (review.deliver === undefined)
    return [
      `  heddle task accept ${id}   accepts it without verification: claimed, never verified`,
      `  heddle task resume ${id}   lets the agent continue`,
    ];
  const isLong = review.deliver.length > MAX_IN_LINE;
  const line = `deliver: [${isLong ? "globs" : review.deliver.map((path) => JSON.stringify(path)).join(", ")}]`;
  return [
    `  heddle task accept ${id}   these files are the work: judged again with them`,
    `  ${visibleLine(line)}   the same, in the spec of the next task`,
    `  heddle task diff ${id}     shows them; heddle task resume ${id} lets the agent continue`,
  ];
}

export function flags({ isVacuous, isGuard, isFlaky }: CheckResult, style: Style): string {
  if (isFlaky === true) return style.yellow(" (flaky: it passed and failed on the same files, so it proves nothing)");
  if (isVacuous === true) return style.yellow(" (vacuous: it passed before the work began)");
  return isGuard === true ? " (guard: nothing that must stay has changed)" : "";
}
