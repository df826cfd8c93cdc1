/**
 * Keeps threads busy until it is killed. Says `ready` when it is loaded, then takes one line of JSON: the threads it owns
 * and the number of the turn each of them tries next. Every answer is on the pipe before the next instruction runs.
 */
import { writeSync } from "node:fs";
import { flushCompileCache } from "node:module";
import { createInterface } from "node:readline";
import { openHeddle } from "@heddle/agent";

export interface BusyThread {
  readonly id: string;
  readonly turn: number;
  readonly sandboxMode: "workspace-write" | "danger-full-access";
}

export interface BusyWork {
  readonly home: string;
  readonly threads: readonly BusyThread[];
}

export type BusyLine =
  | { readonly kind: "opened"; readonly ms: number; readonly recovered: number }
  | { readonly kind: "tried"; readonly thread: string; readonly turn: number }
  | { readonly kind: "acknowledged"; readonly thread: string; readonly turn: number; readonly turnId: string }
  | { readonly kind: "ended"; readonly thread: string; readonly turn: number; readonly status: string };

const STEPS = 600;

function say(line: BusyLine): void {
  writeSync(1, `${JSON.stringify(line)}\n`);
}

/** Two commands and an answer, again and again; the log of a workspace names each command once. */
const script = Array.from({ length: STEPS }, (_, index) =>
  index % 3 === 2
    ? { text: `That was part ${index}.` }
    : { calls: [{ tool: "exec_command", args: { cmd: `echo "$PWD ${index}" >> effects.log` } }] },
);

// Nobody who is killed leaves anything for the next one otherwise.
flushCompileCache();
writeSync(1, "ready\n");
const lines = createInterface(process.stdin)[Symbol.asyncIterator]();
const given = await lines.next();
const work: BusyWork = JSON.parse(String(given.value));

const startedAt = performance.now();
const heddle = await openHeddle({
  home: work.home,
  providers: [{ id: "scripted", family: "openai", script }],
  env: { PATH: process.env["PATH"] },
  isUnattended: false,
});
say({ kind: "opened", ms: performance.now() - startedAt, recovered: heddle.recoveredTurns });
await Promise.all(work.threads.map((thread) => keepBusy(thread)));

async function keepBusy({ id, turn: first, sandboxMode }: BusyThread): Promise<never> {
  for (let turn = first; ; turn += 1) {
    say({ kind: "tried", thread: id, turn });
    const { turnId, done } = await heddle.as("user:owner").startTurn({
      thread: id,
      input: [{ type: "text", text: `part ${turn}` }],
      clientId: `client-${turn}`,
      settings: {
        provider: "scripted",
        model: "scripted",
        sandboxMode,
        networkAccess: false,
        writableRoots: [],
        approvalPolicy: "never",
      },
    });
    say({ kind: "acknowledged", thread: id, turn, turnId });
    const { body } = await done;
    say({ kind: "ended", thread: id, turn, status: body.status });
  }
}
