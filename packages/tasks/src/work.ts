/** What an attempt does beside talking to the agent: the rooms of checks, worktrees and stalls, entered at one place. */
import { type CheckResult, type CheckViolation, type EventOf, type TaskBaseline } from "@heddle/protocol";
import type { Workshop } from "./attempt.ts";
import { takeBaseline } from "./baseline.ts";
import type { CheckPlace } from "./checks/check.ts";
import type { FollowedTurn } from "./follow-turn.ts";
import type { Hold } from "./hold.ts";
import { secondOpinion } from "./second-opinion.ts";
import { watchForStalls } from "./stall/watch-for-stalls.ts";
import { verifyWork, type Verdict } from "./verify.ts";
import { mergeBack } from "./worktree/merge-back.ts";
import { openWorktree } from "./worktree/open-worktree.ts";

export interface WorkPlace {
  readonly shop: Workshop;
  readonly hold: Hold;
  readonly folder: string;
  readonly signal: AbortSignal;
}

export interface Found {
  readonly results: readonly CheckResult[];
  readonly violations: readonly CheckViolation[];
  readonly passed: boolean;
  readonly opinion?: EventOf<"task.checked">["opinion"];
  /** Where verified work of a worktree came back to. */
  readonly merged?: Pick<EventOf<"task.merged">, "how" | "ref">;
}

export function lookAround(place: WorkPlace): Promise<TaskBaseline> {
  return takeBaseline(checkPlace(place));
}

export async function judgeWork(place: WorkPlace, baseline: TaskBaseline): Promise<Found> {
  const { hold } = place;
  const checks = checkPlace(place);
  const verdict = await verifyWork(checks, baseline);
  const judged = await heard(place, { checks, baseline, verdict });
  if (!judged.passed) return judged;
  const { merged, failing } = await mergeBack({ place: checks, task: hold.task, baseline });
  if (failing.length > 0) return { ...judged, results: [...judged.results, ...failing], passed: false };
  return merged === undefined ? judged : { ...judged, merged };
}

/** With what another model says of it, where one is to be asked. */
async function heard(
  { shop, hold }: WorkPlace,
  {
    checks,
    baseline,
    verdict,
  }: { readonly checks: CheckPlace; readonly baseline: TaskBaseline; readonly verdict: Verdict },
): Promise<Found> {
  if (hold.task.spec.secondOpinion === undefined) return verdict;
  const { provider } = await shop.settingsFor(hold.task.spec);
  const opinion = await secondOpinion({ place: checks, baseline, verdict, heddle: shop.heddle, provider });
  return opinion === undefined ? verdict : { ...verdict, opinion, passed: verdict.passed && opinion.accepts };
}

/** Where the task works: its workspace, or a worktree of it. */
export async function findFolder({ home }: Workshop, { task }: Hold, signal: AbortSignal): Promise<string> {
  if (task.spec.worktree === undefined) return task.spec.workspace;
  return (await openWorktree({ home, task, signal })).folder;
}

export function watchTurn({ shop, hold, folder }: WorkPlace, turn: FollowedTurn): AsyncDisposable {
  const { heddle, feed, log } = shop;
  const { threadId, turnId, version } = turn;
  return watchForStalls({ heddle, feed, log, hold, folder, threadId, turnId, version });
}

function checkPlace({ shop, hold, folder, signal }: WorkPlace): CheckPlace {
  return { folder, spec: hold.task.spec, home: shop.home, signal };
}
