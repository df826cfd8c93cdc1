/**
 * A sandbox that is opened when something first runs in it. Only for a host that has given such a sandbox before: a run asks the
 * model first, and a server with many threads holds processes only for those that work.
 */
import { HeddleError } from "@heddle/protocol";
import type { Sandbox, SandboxPolicy } from "./sandbox.ts";

interface Opening {
  /** The first sign that opens it. */
  readonly opensAt: "call" | "pause";
  readonly open: () => Promise<Sandbox>;
}

export function waitingSandbox(level: Sandbox["level"], policy: SandboxPolicy, { opensAt, open }: Opening): Sandbox {
  let opened: Promise<Sandbox> | undefined;
  let isClosed = false;
  const sandbox = async (): Promise<Sandbox> => {
    if (isClosed) throw new HeddleError("sandbox.failed", "the sandbox is closed");
    return await (opened ??= openLike(level, open));
  };
  const close: Sandbox["close"] = async () => {
    isClosed = true;
    return (await (await opened?.catch(() => undefined))?.close()) ?? [];
  };
  return {
    level,
    policy,
    /** The caller is about to run something. */
    get ready() {
      return sandbox().then(({ ready }) => ready);
    },
    enter: async (argv, options) => await (await sandbox()).enter(argv, options),
    standBy(sign = "call") {
      if (sign === "pause" && opensAt === "call" && opened === undefined) return;
      sandbox().then(
        (opening) => opening.standBy(),
        () => undefined,
      );
    },
    // Before it is opened, everything is the owner's and no command has run.
    accept: async () => await (await opened)?.accept(),
    sweep: async (options) => (await (await opened)?.sweep(options)) ?? [],
    close,
    [Symbol.asyncDispose]: async () => void (await close()),
  };
}

async function openLike(level: Sandbox["level"], open: () => Promise<Sandbox>): Promise<Sandbox> {
  const sandbox = await open();
  if (sandbox.level === level) return sandbox;
  // The turn was admitted with another kind of sandbox.
  await sandbox.close();
  throw new HeddleError("sandbox.failed", `the host gave ${sandbox.level} where it had given ${level} before`);
}
