/** Tasks in every state that a person meets, and the pages that show them. */
import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import type { Task } from "@heddle/client";
import { until } from "../world.ts";
import { addsFile, comesTo, folderOf, HANGS, heldModel, order, orderQuestion, run } from "./orders.ts";
import type { Stage } from "./stage.ts";

export interface Field {
  readonly tasks: Readonly<Record<keyof ReturnType<typeof wordsOfTitles>, Task>>;
  /** By a name for the test, the address. */
  readonly pages: Readonly<Record<string, string>>;
  /** Lets go of what the model still holds. */
  readonly close: () => void;
}

/** With what the title of each begins. */
export const wordsOfTitles = () =>
  ({
    verified: "Verified",
    claimed: "Claimed, not verified",
    unproven: "Budget used up",
    violated: "Budget used up",
    failed: "Failed",
    blocked: "Asks",
    archived: "Archived, cancelled before",
    cancelled: "Cancelled",
    dependent: "After another",
    asking: "Waits for you",
    running: "Running",
    stale: "Running",
    hanging: "Hangs",
  }) as const;

export async function openField(stage: Stage): Promise<Field> {
  const held = heldModel();
  const tasks = { ...(await ended(stage)), ...(await going(stage, held.step)) };
  const runs = Object.entries(tasks).map(([name, { id }]) => [`run, ${name}`, `/tasks/${id}`]);
  return {
    tasks,
    close: held.letGo,
    pages: {
      now: "/now",
      tasks: "/tasks",
      board: "/tasks?view=board",
      ...Object.fromEntries(runs),
      step: `/tasks/${tasks.verified.id}?item=${await commandOf(stage, tasks.verified)}&tab=step`,
      threads: "/threads",
      thread: `/threads/${tasks.verified.threadId ?? ""}`,
      evidence: "/evidence",
      usage: "/usage",
      settings: "/settings",
      "new task": "/new",
      nowhere: "/no/such/place",
      "no such task": "/tasks/task_none",
    },
  };
}

async function ended(stage: Stage) {
  const { tasks: client } = stage.server.client;
  stage.plays("verified", [{ calls: [run("touch verified.txt; seq 1 60000")] }, { text: "It is done." }]);
  stage.plays("blocked", [
    { calls: [{ tool: "task_report", args: { status: "blocked", summary: "Which database?" } }] },
  ]);
  stage.plays("violated", [{ calls: [run("echo changed > kept.txt")] }, { text: "It is done." }]);
  await mkdir(folderOf(stage, "violated"), { recursive: true });
  await writeFile(path.join(folderOf(stage, "violated"), "kept.txt"), "as it was\n");
  const once = { budget: { turns: 1 } };
  const orders = {
    verified: await order(stage, "verified", {
      checks: [{ "file-exists": "verified.txt" }, { name: "it was there before", "file-exists": ".git/HEAD" }],
    }),
    claimed: await order(stage, "claimed", { checks: [] }),
    unproven: await order(stage, "unproven", once),
    violated: await order(stage, "violated", {
      ...once,
      protect: ["kept.txt"],
      checks: [{ "file-exists": "violated.txt" }, { name: "it ends in time", command: "sleep 60", timeout: "1s" }],
    }),
    failed: await order(stage, "failed", { budget: { turns: 1, on_reached: "fail" } }),
    blocked: await order(stage, "blocked"),
  };
  const later = { depends_on: [orders.unproven.id] };
  const archived = await order(stage, "archived", later);
  await client.cancel(archived.id);
  return {
    verified: await comesTo(stage, orders.verified.id, "verified"),
    claimed: await comesTo(stage, orders.claimed.id, "claimed"),
    unproven: await comesTo(stage, orders.unproven.id, "paused"),
    violated: await comesTo(stage, orders.violated.id, "paused"),
    failed: await comesTo(stage, orders.failed.id, "failed"),
    blocked: await comesTo(stage, orders.blocked.id, "paused"),
    archived: await client.archive(archived.id),
    cancelled: await client.cancel((await order(stage, "cancelled", later)).id),
    dependent: await comesTo(stage, (await order(stage, "dependent", later)).id, "waiting"),
  };
}

async function going(stage: Stage, step: () => Promise<{ text: string }>) {
  const { tasks: client } = stage.server.client;
  stage.plays("running", [step]);
  // What its first round of checks found is older than what it has written since.
  stage.plays("stale", [{ text: "It is done." }, { calls: [addsFile("one.txt"), addsFile("two.txt")] }, step]);
  stage.plays("hanging", [{ calls: [HANGS] }, { text: "It is done." }]);
  const running = await order(stage, "running");
  const checks = [{ "file-exists": "stale.txt" }, { name: "it was there before", "file-exists": ".git/HEAD" }];
  const stale = await order(stage, "stale", { checks });
  const hanging = await order(stage, "hanging", { stall: { after: "1s" } });
  const asking = await comesTo(stage, (await orderQuestion(stage, "asking")).id, "waiting");
  await comesTo(stage, hanging.id, "stalled");
  const isPast = async (): Promise<boolean> => {
    const { round, threadId = "" } = await client.read(stale.id);
    if (round < 2) return false;
    const { data } = await stage.server.client.listItems(threadId);
    return data.filter(({ item }) => item.type === "fileChange" && item.status === "completed").length === 2;
  };
  await until(isPast, "it has written after its checks", 60_000);
  return {
    asking,
    running: await comesTo(stage, running.id, "running"),
    stale: await client.read(stale.id),
    hanging: await client.read(hanging.id),
  };
}

async function commandOf({ server: { client } }: Stage, { threadId = "" }: Task): Promise<string> {
  const { data } = await client.listItems(threadId);
  return data.find(({ item }) => item.type === "commandExecution")?.item.id ?? "";
}
