/** Starts a small program of somebody else: few variables, no shell, a deadline after which its whole group is ended. */
import { spawn } from "node:child_process";

const PASSED_ON = ["PATH", "HOME", "USER", "LANG", "CODEX_HOME", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"];
const MAX_OUTPUT_BYTES = 4 * 1024 * 1024;

export type ChildEnd =
  | { readonly kind: "exited"; readonly code: number; readonly stdout: string }
  | { readonly kind: "missing" }
  | { readonly kind: "timeout" };

export interface ChildOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly timeoutMs: number;
  readonly stdin?: string;
}

export function runChild(program: string, args: readonly string[], options: ChildOptions): Promise<ChildEnd> {
  const { promise, resolve } = Promise.withResolvers<ChildEnd>();
  const env = Object.fromEntries(PASSED_ON.flatMap((name) => (options.env[name] ? [[name, options.env[name]]] : [])));
  const child = spawn(program, args, { env, detached: true, stdio: ["pipe", "pipe", "ignore"] });
  const chunks: Buffer[] = [];
  let size = 0;
  const end = (ended: ChildEnd): void => {
    clearTimeout(timer);
    killGroup(child.pid);
    child.stdout.destroy();
    child.unref();
    resolve(ended);
  };
  const timer = setTimeout(() => end({ kind: "timeout" }), options.timeoutMs);
  child.stdout.on("data", (chunk: Buffer) => {
    size += chunk.length;
    if (size <= MAX_OUTPUT_BYTES) chunks.push(chunk);
    else end({ kind: "timeout" });
  });
  child.on("error", () => end({ kind: "missing" }));
  child.on("close", (code) =>
    end({ kind: "exited", code: code ?? -1, stdout: Buffer.concat(chunks).toString("utf8") }),
  );
  child.stdin.on("error", () => undefined);
  child.stdin.end(options.stdin ?? "");
  return promise;
}

function killGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // Gone already.
  }
}
