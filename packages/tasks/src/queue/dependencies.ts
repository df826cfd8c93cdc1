/**
 * What a task waits for: verified work, or claimed work where there are no checks. A dependency is an id or a name; of
 * several tasks with one name the newest counts.
 */
import { HeddleError, type TaskRecord } from "@heddle/protocol";
import type { TaskSpec } from "@heddle/protocol/tasks";
import type { Journal } from "@heddle/journal";

export type Standing =
  | { readonly kind: "free" }
  | { readonly kind: "waits"; readonly message: string; readonly isStuck: boolean };

export async function standingOf(journal: Journal, task: TaskRecord): Promise<Standing> {
  const messages: string[] = [];
  let isStuck = false;
  for (const wanted of task.spec.dependsOn) {
    const other = await find(journal, wanted);
    if (other !== undefined && isDone(other)) continue;
    isStuck ||= other === undefined || isGivenUp(other);
    messages.push(describe(wanted, other));
  }
  return messages.length === 0 ? { kind: "free" } : { kind: "waits", message: messages.join("; "), isStuck };
}

/** These tasks and all that they wait for, transitively. */
export async function withDependencies(journal: Journal, taskIds: readonly string[]): Promise<readonly string[]> {
  const found = new Set<string>();
  const open = [...taskIds];
  for (let wanted = open.pop(); wanted !== undefined; wanted = open.pop()) {
    const task = await find(journal, wanted);
    if (task === undefined || found.has(task.id)) continue;
    found.add(task.id);
    open.push(...task.spec.dependsOn);
  }
  return [...found];
}

export function namesOf({ id, spec }: TaskRecord): readonly string[] {
  return [id, spec.name];
}

/** `task.invalid` when the new task would wait for itself. */
export async function refuseCycle(journal: Journal, spec: TaskSpec): Promise<void> {
  const seen = new Set<string>();
  const look = async (names: readonly string[], path: readonly string[]): Promise<void> => {
    for (const name of names) {
      if (name === spec.name) {
        const circle = [spec.name, ...path, name].join(" → ");
        throw new HeddleError("task.invalid", `depends_on is circular: ${circle}; remove one of them`);
      }
      if (seen.has(name)) continue;
      seen.add(name);
      const other = await find(journal, name);
      // An id may name an older task of the same name, which is other work.
      if (other !== undefined && !isDone(other)) await look(other.spec.dependsOn, [...path, name]);
    }
  };
  await look(spec.dependsOn, []);
}

async function find(journal: Journal, wanted: string): Promise<TaskRecord | undefined> {
  return (await journal.tasks.get(wanted)) ?? (await journal.tasks.named(wanted, { limit: 1 }))[0];
}

function isDone(task: TaskRecord): boolean {
  const state = task.state === "archived" ? task.stateBefore : task.state;
  if (state === "verified") return true;
  const isClaimed = state === "claimed" && task.holder === undefined;
  return isClaimed && (task.spec.checks.length === 0 || task.claim?.by === "user");
}

function isGivenUp({ state }: TaskRecord): boolean {
  return state === "failed" || state === "cancelled" || state === "archived" || state === "paused";
}

function describe(wanted: string, other: TaskRecord | undefined): string {
  if (other === undefined) return `waits for ${wanted}, which does not exist`;
  // A person knows it by its name, however it was ordered.
  const { name } = other.spec;
  const state = other.state === "archived" ? (other.stateBefore ?? "archived") : other.state;
  switch (state) {
    case "failed":
      return `waits for ${name}, which failed; retry that one, or cancel this one`;
    case "cancelled":
      return `waits for ${name}, which was cancelled; retry that one, or cancel this one`;
    case "paused":
      return `waits for ${name}, which is paused; resume that one`;
    default:
      return `waits for ${name}, which is ${state}`;
  }
}
