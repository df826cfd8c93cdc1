import { execFileSync } from "node:child_process";

/** Whether this host can run the program, by a question that every version of it answers. */
export function hasProgram(program: string, ...args: readonly string[]): boolean {
  try {
    execFileSync(program, args.length === 0 ? ["--version"] : args, { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}
