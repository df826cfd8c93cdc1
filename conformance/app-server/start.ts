/** How an `app-server` is started: as a process of its own, unless somebody knows a cheaper way to the same streams. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import type { Readable, Writable } from "node:stream";
import type { Program } from "../program.ts";

export interface Started {
  readonly input: Writable;
  readonly output: Readable;
  /** The exit code, or the signal that ended it. */
  readonly ended: Promise<number | string>;
  /** It and whatever it left running. */
  kill(): void;
}

export interface StartOptions {
  /** After the name of the command. */
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
}

export type Start = (options: StartOptions) => Started;

export function startProcess({ file }: Program): Start {
  return ({ args, cwd, env }) => {
    const child = spawn(file, ["app-server", ...args], {
      cwd,
      env,
      stdio: ["pipe", "pipe", process.env["CONFORMANCE_STDERR"] === undefined ? "ignore" : "inherit"],
      detached: true,
    });
    const { stdin, stdout, pid } = child;
    if (stdin === null || stdout === null) throw new Error("the program has no pipes");
    return {
      input: stdin,
      output: stdout,
      ended: once(child, "exit").then(([code, signal]) => code ?? signal),
      kill() {
        if (pid !== undefined) endGroup(pid);
      },
    };
  };
}

function endGroup(pid: number): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch (error) {
    // Nobody is left.
    if (!(error instanceof Error && "code" in error && error.code === "ESRCH")) throw error;
  }
}
