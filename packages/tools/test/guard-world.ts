/** A workspace of its own for a test of the guard, and what is often done in it. */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdir, mkdtemp, realpath, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Guard, type GuardOptions } from "../src/sandbox/guard.ts";

export interface GuardWorld extends AsyncDisposable {
  readonly base: string;
  /** The write root. */
  readonly root: string;
  readonly put: (name: string, content?: string) => Promise<void>;
  start(bounds?: GuardOptions["bounds"]): Promise<StartedGuard>;
}

export interface StartedGuard {
  readonly guard: Guard;
  readonly protectedPaths: readonly string[];
  /** One sweep: what it found, below the root. */
  readonly look: (options?: { readonly isLast: boolean }) => Promise<readonly string[]>;
}

export async function openGuardWorld(): Promise<GuardWorld> {
  const base = await realpath(await mkdtemp(join(tmpdir(), "heddle-guard-")));
  const root = join(base, "ws");
  await mkdir(root);
  return {
    base,
    root,
    async put(name, content = "x\n") {
      await mkdir(join(root, name, ".."), { recursive: true });
      await writeFile(join(root, name), content);
    },
    async start(bounds) {
      const guard = new Guard({
        writeRoots: [root],
        absentMasked: [],
        quarantineDir: async () => join(base, "quarantine"),
        ...(bounds === undefined ? {} : { bounds }),
      });
      const { protectedPaths } = await guard.start();
      return {
        guard,
        protectedPaths,
        look: async (options = { isLast: false }) =>
          (await guard.sweep(options)).map(({ path }) => path.slice(root.length + 1)).toSorted(),
      };
    },
    async [Symbol.asyncDispose]() {
      // Also what is closed, or deeper than a path can say.
      spawnSync("chmod", ["-R", "u+rwx", base]);
      spawnSync("rm", ["-rf", base]);
    },
  };
}

const IDENTITY = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always"];

export function git(cwd: string, ...args: readonly string[]): string {
  return execFileSync("git", [...IDENTITY, ...args], { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
}

/** Git would run it at every look at the work tree. */
export const EVIL_CONFIG = "[core]\n\tfsmonitor = /tmp/evil\n";
