/**
 * Named points where a test can inject a failure: HEDDLE_FAILPOINT=name@n=kill|throw|delay|stall|enospc|eio, several separated by commas.
 * `@n` means the nth time the point is reached (default 1). The list is the contract: a name that is not in it does not
 * compile, and a suite can enumerate it. Unset, a failpoint costs one comparison.
 */
export const FAILPOINTS = [
  "journal.migrate.before-commit",
  "journal.append.before-begin",
  "journal.append.before-insert",
  "journal.append.before-commit",
  "journal.append.after-commit",
  "journal.witness.before-write",
  "journal.witness.after-write",
  "journal.checkpoint.before-write",
  "journal.checkpoint.after-write",
  "turn.before-admit",
  "turn.after-admit",
  "turn.after-start",
  "turn.after-resume",
  "turn.before-request",
  "turn.after-response",
  "turn.before-intent",
  "turn.after-intent",
  "turn.after-effect",
  "turn.after-settle",
  "turn.before-complete",
  "turn.after-complete",
  "approval.after-request",
  "approval.after-resolve",
  "hop.before-enter",
  "hop.after-enter",
  "message.after-sent",
  "message.after-received",
  "message.before-settle",
  "purge.after-slice",
  "blob.before-write",
  "blob.before-rename",
  "blob.before-remove",
  "recover.before-turn",
  "recover.after-turn",
  "sandbox.before-open",
  "sandbox.after-open",
  "process.after-spawn",
  "patch.before-write",
  "patch.between-files",
  "file.before-rename",
  "artifact.before-write",
  "artifact.before-rename",
  "artifact.before-append",
  "credentials.before-write",
  "credentials.before-rename",
  "credentials.after-rename",
  "model.before-connect",
  "model.after-headers",
  "task.after-take",
  "task.after-prepare",
  "task.after-prompt",
  "task.after-start",
  "task.after-turn",
  "task.after-claim",
  "task.after-hop-due",
  "task.after-hop",
  "task.after-freeze",
  "task.between-checks",
  "task.before-verdict",
  "task.after-verdict",
  "contest.after-opened",
  "contest.during-contestants",
  "contest.after-contestants",
  "contest.after-pick",
  "contest.after-cancel",
  "contest.after-adopt",
  "task.before-fire",
  "task.after-fire",
  "tree.during-keep",
  "tree.before-kept",
  "tree.during-freeze",
  "tree.after-freeze",
  "tree.before-intent",
  "tree.after-intent",
  "tree.during-put",
  "tree.before-put-end",
  "merge.after-lock",
  "merge.before-move",
  "merge.after-move",
  "merge.after-index",
  "inbox.after-claim",
  "inbox.after-add",
  "notify.after-queue",
  "notify.after-send",
  "notify.before-settle",
] as const;
export type Failpoint = (typeof FAILPOINTS)[number];

type Action = "kill" | "throw" | "delay" | "stall" | "enospc" | "eio";

interface Armed {
  readonly at: number;
  readonly action: Action;
  hits: number;
}

const DELAY_MS = 250;
/** A server must be able to block this long without losing anything. */
const STALL_MS = 5_000;

const armed = parse(process.env["HEDDLE_FAILPOINT"]);

export function failpoint(name: Failpoint): void {
  if (armed === undefined) return;
  const point = armed.get(name);
  if (point === undefined) return;
  point.hits += 1;
  if (point.hits === point.at) strike(name, point.action);
}

function strike(name: Failpoint, action: Action): void {
  switch (action) {
    case "kill":
      process.kill(process.pid, "SIGKILL");
      // Nothing may run after the kill, even where the signal arrives late.
      for (;;) block(1_000);
    case "delay":
      return block(DELAY_MS);
    case "stall":
      return block(STALL_MS);
    case "enospc":
      throw Object.assign(new Error(`ENOSPC: no space left on device, failpoint ${name}`), {
        code: "ENOSPC",
        errno: -28,
      });
    case "eio":
      throw Object.assign(new Error(`EIO: i/o error, failpoint ${name}`), { code: "EIO", errno: -5 });
    case "throw":
      throw new Error(`failpoint ${name}`);
  }
}

function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

function parse(spec: string | undefined): Map<string, Armed> | undefined {
  if (spec === undefined || spec === "") return undefined;
  const points = new Map<string, Armed>();
  for (const part of spec.split(",")) {
    const match = /^([a-z.-]+)(?:@(\d+))?=(kill|throw|delay|stall|enospc|eio)$/.exec(part.trim());
    const name = match?.[1];
    if (match === null || name === undefined || !(FAILPOINTS as readonly string[]).includes(name)) {
      throw new Error(
        `HEDDLE_FAILPOINT: "${part}" is not name@n=kill|throw|delay|stall|enospc|eio with a name from FAILPOINTS`,
      );
    }
    points.set(name, { at: Number(match[2] ?? 1), action: match[3] as Action, hits: 0 });
  }
  return points;
}
