/**
 * Neighbours of a hostile run: they keep every core busy, hold the ports that programs of this kind like, and have the same
 * command lines as what tests start. Started by `npm test -- --hostile`; they end with whoever started them.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { createServer } from "node:net";
import { availableParallelism } from "node:os";

/** Of logins in a browser, of local models, of servers that are being tried out. */
const PORTS = [1455, 1457, 11_434, 8080, 3000];
const BUSY = "for (;;);";

export function startNeighbours(): Disposable {
  const self = spawn(process.execPath, [import.meta.filename], { stdio: ["pipe", "ignore", "ignore"] });
  return { [Symbol.dispose]: () => self.kill("SIGTERM") };
}

function beNeighbours(): void {
  // A port that is taken already is what was wanted.
  for (const port of PORTS)
    createServer()
      .on("error", () => undefined)
      .listen(port, "127.0.0.1");
  const children: ChildProcess[] = [
    ...Array.from({ length: availableParallelism() }, () => spawn(process.execPath, ["-e", BUSY])),
    ...["300", "1000"].map((seconds) => spawn("sleep", [seconds])),
  ];
  const end = (): void => {
    for (const child of children) child.kill("SIGKILL");
    process.exit(0);
  };
  process.on("SIGTERM", end);
  // The pipe closes with whoever started this, however it ends.
  process.stdin.on("end", end).on("error", end).resume();
}

if (import.meta.main) beNeighbours();
