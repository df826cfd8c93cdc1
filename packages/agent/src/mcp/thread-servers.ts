/** MCP servers of threads outside their turns: started with the thread, told of while they start, ended with it. */
import { HeddleError, type McpServerConfig, type McpState } from "@heddle/protocol";
import type { TurnSandbox } from "../runners/runner.ts";
import type { createIdleSandboxes } from "../sandboxes/idle-sandboxes.ts";
import type { EnterThread } from "../sandboxes/thread-sandboxes.ts";
import type { createListeners } from "../turns/live.ts";
import type { BroughtServers } from "./brought-servers.ts";

export interface ThreadServers {
  /** Those that clients bring. */
  brought(): Promise<BroughtServers>;
  /**
   * Starts the servers of a thread ahead of its next turn, which goes on with them; resolves when required ones run, or
   * throws `mcp.failed` and ends them all. False: there is nothing to start.
   */
  start(thread: EnterThread): Promise<boolean>;
  states(threadId: string): readonly McpState[];
  onState(threadId: string, listener: (state: McpState) => void): Disposable;
  /** Ends the servers of a thread that nobody follows; with its commands, if those still run. */
  rest(threadId: string): void;
}

interface Within extends Pick<ThreadServers, "brought" | "states"> {
  serversOf(thread: EnterThread): Promise<readonly McpServerConfig[]>;
  readonly listeners: ReturnType<typeof createListeners<McpState>>;
  /** Between turns; undefined: one runs, which has its own. */
  serially<T>(threadId: string, work: () => Promise<T>): Promise<T | undefined>;
  enter(thread: EnterThread): Promise<TurnSandbox>;
  leave(threadId: string): Promise<void>;
  readonly idle: Pick<ReturnType<typeof createIdleSandboxes>, "wait" | "forget" | "rest">;
}

export function createThreadServers(within: Within): ThreadServers {
  const { brought, states, listeners, idle } = within;

  async function start(thread: EnterThread): Promise<boolean> {
    const { threadId } = thread;
    const wanted = await within.serversOf(thread);
    if (wanted.length === 0) return false;
    const entered = await within.enter(thread).catch((error: unknown) => {
      if (wanted.some(({ required }) => required)) throw error;
      // The turn will say so.
      return undefined;
    });
    idle.wait(threadId);
    if (entered?.mcp === undefined || entered.mcp.states.length > 0) return false;
    const problems = await entered.mcp.startAhead();
    if (problems.length === 0) return true;
    idle.forget(threadId);
    await within.leave(threadId);
    throw new HeddleError("mcp.failed", `required MCP servers failed to initialize: ${problems.join("; ")}`);
  }

  return {
    brought,
    states,
    start: async (thread) => (await within.serially(thread.threadId, () => start(thread))) ?? false,
    onState: (threadId, listener) => listeners.add(threadId, listener),
    rest: (threadId) => idle.rest(threadId),
  };
}
