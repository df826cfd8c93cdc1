/** Runs a small program of another vendor: few variables, no shell, a deadline after which its process group is killed. */
import { spawn } from "node:child_process";
import { defined } from "@heddle/protocol";

const PASSED_ON = ["PATH", "HOME", "USER", "LANG", "CODEX_HOME", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"];
const MAX_OUTPUT_BYTES = 4 * 1024 * 1024;

export type ChildEnd =
  | { readonly kind: "exited"; readonly code: number; readonly stdout: string }
  | { readonly kind: "missing" }
  | { readonly kind: "timeout" }
  /** It printed more than the limit. */
  | { readonly kind: "flood" };

export interface ChildOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly timeoutMs: number;
  readonly stdin?: string;
  /** Variables that it gets besides the usual few. */
  readonly passedOn?: readonly string[] | undefined;
  readonly cwd?: string | undefined;
  readonly maxOutputBytes?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

export function runChild(program: string, args: readonly string[], options: ChildOptions): Promise<ChildEnd> {
  const { promise, resolve } = Promise.withResolvers<ChildEnd>();
  const { maxOutputBytes = MAX_OUTPUT_BYTES, signal } = options;
  const names = [...PASSED_ON, ...(options.passedOn ?? [])];
  const env = Object.fromEntries(names.flatMap((name) => (options.env[name] ? [[name, options.env[name]]] : [])));
  const child = spawn(program, args, {
    env,
    detached: true,
    stdio: ["pipe", "pipe", "ignore"],
    ...defined({ cwd: options.cwd }),
  });
  const chunks: Buffer[] = [];
  let size = 0;
  const end = (ended: ChildEnd): void => {
    clearTimeout(timer);
    signal?.removeEventListener("abort", late);
    killGroup(child.pid);
    child.stdout.destroy();
    child.unref();
    resolve(ended);
  };
  const late = (): void => end({ kind: "timeout" });
  const timer = setTimeout(late, options.timeoutMs);
  signal?.addEventListener("abort", late, { once: true });
  child.stdout.on("data", (chunk: Buffer) => {
    size += chunk.length;
    if (size <= maxOutputBytes) chunks.push(chunk);
    else end({ kind: "flood" });
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
    // It has ended already.
  }
}
