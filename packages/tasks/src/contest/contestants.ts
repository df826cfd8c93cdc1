/** The tasks of the contestants: made from the contest alone, each once, with the same goal, checks and budget. */
import { isHeddleError, type TaskRecord } from "@heddle/protocol";
import { failpoint } from "@heddle/protocol/failpoints";
import type { Contestant, TaskAgent, TaskSpec } from "@heddle/protocol/tasks";
import type { Journal } from "@heddle/journal";
import { add, idOf } from "../open-tasks.ts";

export function contestantsOf({ id, spec }: Pick<TaskRecord, "id" | "spec">, generation: number): Contestant[] {
  return (spec.agents ?? []).map((agent, index) => {
    const number = index + 1;
    return { number, name: nameOf(agent), taskId: idOf(keyOf(id, generation, number)), agent };
  });
}

/** Those that exist already are as they were; one that was deleted stays so. */
export async function addContestants(journal: Journal, contest: TaskRecord, now: number): Promise<void> {
  const { id, spec } = contest;
  const { generation = 1, contestants = [] } = contest.contest ?? {};
  for (const contestant of contestants) {
    const { number } = contestant;
    await add(
      journal,
      {
        spec: specOf(spec, contestant),
        source: contest.source,
        key: keyOf(id, generation, number),
        parentId: id,
        contestant: number,
        by: "system",
      },
      now,
    ).catch((error: unknown) => {
      if (!isHeddleError(error) || error.code !== "store.id-conflict") throw error;
    });
    failpoint("contest.during-contestants");
  }
}

function keyOf(contestId: string, generation: number, number: number): string {
  return `${contestId}/contest-${generation}/${number}`;
}

/** As in `codex`, `embedded gpt-5`; two that are named alike are told apart by their numbers. */
export function nameOf({ name, runner, provider, model, effort }: TaskAgent): string {
  const parts = [runner, provider, model, effort].filter((part) => part !== undefined);
  return name ?? (parts.length === 0 ? "as configured" : parts.join(" "));
}

function specOf(contest: TaskSpec, { number, name, agent }: Contestant): TaskSpec {
  const { agents: _, pick: __, order: ___, score: ____, keep = "verified", schedule: _____, ...rest } = contest;
  const { name: ______, ...settings } = agent;
  // The contest brings back what is picked.
  const merge = (keep === "verified" || keep === "all") && rest.worktree?.merge !== "none" ? "branch" : "none";
  return {
    ...rest,
    ...settings,
    name: `${contest.name} #${number} ${name}`,
    // What the contest waited for, and what the user wants to run once.
    dependsOn: [],
    beforeArchive: [],
    ...(rest.worktree === undefined ? { apply: "never" } : { worktree: { ...rest.worktree, merge } }),
  };
}
