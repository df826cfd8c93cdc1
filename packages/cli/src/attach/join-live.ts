/**
 * A person joins a turn that runs, in the agent's own interface: the runner goes on, both are on record, and what the agent does
 * stays in the sandbox of the turn. When the turn ends, so does the interface.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { awaitTerminal, type Heddle } from "@heddle/agent";
import { joinTurn } from "@heddle/agent/live";
import type { ThreadRow } from "@heddle/journal";
import { EXIT, HeddleError, reasonOf } from "@heddle/protocol";
import type { ConfigFile } from "@heddle/runtime/config";
import { say } from "../print/screen.ts";

export interface JoinLive {
  readonly heddle: Heddle;
  readonly thread: ThreadRow;
  readonly home: string;
  readonly config: ConfigFile;
  readonly env: NodeJS.ProcessEnv;
}

export async function joinLive({ heddle, thread, home, config, env }: JoinLive): Promise<number> {
  const { journal } = heddle;
  const { runners = {} } = config;
  await using joined = await joinTurn({ journal, home, runners, env }, thread.id);
  const { turnId, argv, variables } = joined;
  const [file = "", ...args] = argv;
  say(`joining turn ${turnId}; it continues, and ends when it has nothing to do and you have left`);
  const child = spawn(file, args, { cwd: thread.workspace, env: { ...env, ...variables }, stdio: "inherit" });
  try {
    await once(child, "spawn");
  } catch (error) {
    throw new HeddleError("runner.failed", `${file} could not be started: ${reasonOf(error)}`, { cause: error });
  }
  const left = new AbortController();
  const exited = once(child, "exit").then(() => left.abort());
  // What is typed to interrupt is for the program.
  const leave = (): void => undefined;
  const stop = (): void => void child.kill("SIGTERM");
  process.on("SIGINT", leave).on("SIGQUIT", leave).on("SIGTERM", stop).on("SIGHUP", stop);
  const { admittedVersion = 0 } = (await journal.threads.lastTurn(thread.id)) ?? {};
  const terminal = await awaitTerminal(journal, thread.id, turnId, admittedVersion, left.signal).catch(
    unlessLeft(left),
  );
  if (terminal !== undefined) stop();
  await exited;
  process.off("SIGINT", leave).off("SIGQUIT", leave).off("SIGTERM", stop).off("SIGHUP", stop);
  const how = terminal === undefined ? "you have left" : "the turn has ended";
  say(`${how}; heddle threads show ${thread.id.slice(0, 13)} shows what was said and done`);
  return EXIT.ok;
}

function unlessLeft({ signal }: AbortController): (error: unknown) => undefined {
  return (error) => {
    if (!signal.aborted) throw error;
    return undefined;
  };
}
