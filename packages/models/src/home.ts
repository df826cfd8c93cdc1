import { homedir } from "node:os";
import path from "node:path";

/** Where Heddle keeps what it keeps. */
export function heddleHome(env: Readonly<Record<string, string | undefined>>): string {
  const home = env["HEDDLE_HOME"];
  return home === undefined || home === "" ? path.join(homedir(), ".heddle") : path.resolve(home);
}
