/** A Heddle with several agents, each with a name and a turn behind it, on a model server that answers by the thread's first input. */
import type { MessageRules } from "../src/messages/rules.ts";
import { openChildWorld, type ChildWorld, type Scripts } from "./child-world.ts";
import type { TestHeddleOptions } from "./test-heddle.ts";

export const RULES: MessageRules = { hasTools: true, wakes: true, envelope: "observe" };

export interface AgentsWorld extends ChildWorld {
  /** By name: the thread of each. */
  readonly threads: ReadonlyMap<string, string>;
  threadOf(name: string): string;
}

/** Every script begins with the answer of a first turn, in which the thread gets its name. */
export async function openAgentsWorld(scripts: Scripts, options: TestHeddleOptions = {}): Promise<AgentsWorld> {
  const greeted = Object.entries(scripts).map(
    ([name, steps]) => [name, [{ text: `${name} is here` }, ...steps]] as const,
  );
  const world = await openChildWorld(Object.fromEntries(greeted), {
    messages: RULES,
    hasEvidenceTools: true,
    ...options,
  });
  const { t } = world;
  const threads = new Map<string, string>();
  for (const name of Object.keys(scripts)) {
    const turn = await t.heddle.as("user:owner").startTurn({
      thread: { workspace: t.workspace, origin: "test" },
      input: [{ type: "text", text: name }],
      settings: t.settings,
      agentName: name,
    });
    await turn.done;
    threads.set(name, turn.threadId);
  }
  return {
    ...world,
    threads,
    threadOf: (name) => threads.get(name) ?? "",
  };
}
