/**
 * The agents of a home: a view of threads, turns, leases and messages, made anew whenever somebody asks. It has no state of
 * its own, so that every process says the same, and nothing has to be repaired after a crash.
 */
import type { Journal, LeaseRow, ThreadRow, TurnRow } from "@heddle/journal";
import type { Agent, Readiness } from "@heddle/protocol";
import { isAtQuestion } from "../approvals/parked.ts";
import { wakesOf, type MessageRules } from "../messages/rules.ts";
import { leaseStateOf, type HolderState } from "../recovery/holder.ts";
import { readGoal } from "../threads/goal.ts";

export interface AgentsQuery {
  /** Archived threads too. */
  readonly all?: boolean | undefined;
  readonly limit: number;
}

/** Far more than anybody looks through. */
const MAX_LOOKED_AT = 10_000;

/** Newest activity first. */
export async function readAgents(
  journal: Journal,
  { all = false, limit }: AgentsQuery,
  rules: MessageRules,
): Promise<readonly Agent[]> {
  const rows = await journal.threads.list({ limit: MAX_LOOKED_AT, withChildren: true });
  const wanted = rows.filter((row) => !row.isEphemeral && (all || !row.isArchived)).slice(0, limit);
  const held = await journal.leases.held();
  const agents: Agent[] = [];
  for (const row of wanted) agents.push(await viewOf(journal, row, { held, rules }));
  return agents;
}

export async function readAgent(journal: Journal, row: ThreadRow, rules: MessageRules): Promise<Agent> {
  return viewOf(journal, row, { held: await journal.leases.held(), rules });
}

interface Around {
  readonly held: readonly LeaseRow[];
  readonly rules: MessageRules;
}

async function viewOf(journal: Journal, row: ThreadRow, { held, rules }: Around): Promise<Agent> {
  const last = await journal.threads.lastTurn(row.id);
  const open = last?.status === "open" ? last : undefined;
  const lease = held.find(({ subject }) => subject === open?.id);
  const state = lease === undefined ? undefined : await leaseStateOf(journal, lease.holder);
  const envelope = await journal.threads.envelope(row.id);
  const { readiness, waitsFor } = await readinessOf(journal, row, { open, state });
  return {
    threadId: row.id,
    name: row.agentName ?? null,
    title: row.name ?? row.title ?? row.preview ?? null,
    runner: last === undefined ? null : await runnerOf(journal, last),
    envelope: envelope === undefined ? null : { id: envelope.envelope.id, hash: envelope.hash },
    workspace: row.workspace,
    parent: row.parent?.threadId ?? null,
    readiness,
    waitsFor: waitsFor ?? null,
    turnId: open?.id ?? null,
    presence: {
      process: lease === undefined ? null : { pid: lease.holder.pid, host: lease.holder.host ?? null },
      isAlive: state === undefined || state === "unknown" ? null : state === "alive",
      lastSeenAt: row.updatedAt,
    },
    wakes: wakesOf(row, rules),
    unread: await journal.messages.countWaiting(row.id),
  };
}

interface Standing {
  readonly readiness: Readiness;
  readonly waitsFor?: string;
}

async function readinessOf(
  journal: Journal,
  row: ThreadRow,
  { open, state }: { readonly open: TurnRow | undefined; readonly state: HolderState | undefined },
): Promise<Standing> {
  if (row.isArchived) return { readiness: "gone" };
  if (open === undefined) return { readiness: (await isPaused(journal, row)) ? "paused" : "idle" };
  if (await isAtQuestion(journal, open.id)) return { readiness: "waiting", waitsFor: "a user" };
  // A turn that only waits for a user outlives its process; any other one is closed by whoever opens the home next.
  if (state === "dead") return { readiness: "gone" };
  const [ask] = await journal.messages.openAsks(row.id);
  return ask === undefined ? { readiness: "running" } : { readiness: "waiting", waitsFor: ask.to };
}

/** Its goal, or the task that works in it. */
async function isPaused(journal: Journal, { id }: ThreadRow): Promise<boolean> {
  const tasks = await journal.tasks.ofThread(id);
  if (tasks.some((task) => task.state === "paused")) return true;
  const goals = await journal.marks.versions({ stream: id, kinds: ["thread.goal-changed"], newest: 1 });
  return goals.length > 0 && (await readGoal(journal, id))?.status === "paused";
}

async function runnerOf(journal: Journal, { id, threadId, admittedVersion: after }: TurnRow): Promise<string | null> {
  const [started] = await journal.read({ stream: threadId, after, limit: 1, types: ["turn.started"] });
  return started?.body.type === "turn.started" && started.body.turnId === id ? started.body.runner : null;
}
