/**
 * Descriptors that Heddle was started with and a child would inherit. A folder or a socket among them would open the
 * sandbox, so each child gets /dev/null in its place. Node marks everything it opens itself as close-on-exec.
 */
import { openSync } from "node:fs";
import { listProc, readProc } from "./proc-stat.ts";

const CLOSE_ON_EXEC = 0o2_000_000;

type StdioEntry = number | "ignore" | "pipe";

/** Constant while Heddle runs: it opens no descriptor that is inherited. */
let shield: { readonly inherited: ReadonlySet<number>; readonly devNull: number } | undefined;

export function onlyStandardStreams(...streams: readonly [StdioEntry, StdioEntry, StdioEntry]): StdioEntry[] {
  shield ??= { inherited: findInherited(), devNull: openSync("/dev/null", "r+") };
  const { inherited, devNull } = shield;
  const stdio: StdioEntry[] = [...streams];
  for (let fd = 3; fd <= Math.max(2, ...inherited); fd += 1) stdio.push(inherited.has(fd) ? devNull : "ignore");
  return stdio;
}

function findInherited(): Set<number> {
  const found = new Set<number>();
  for (const name of listProc("self", "fdinfo")) {
    const fd = Number(name);
    const flags = /^flags:\s*(\d+)$/m.exec(readProc("self", `fdinfo/${fd}`))?.[1];
    if (fd > 2 && flags !== undefined && (Number.parseInt(flags, 8) & CLOSE_ON_EXEC) === 0) found.add(fd);
  }
  return found;
}
