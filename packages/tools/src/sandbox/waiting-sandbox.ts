/**
 * A sandbox that is opened by its first call. Only for a host that has given this process such a sandbox before: a server with
 * many threads then holds processes only for those that work.
 */
import { HeddleError } from "@heddle/protocol";
import type { Sandbox, SandboxPolicy } from "./sandbox.ts";

export function waitingSandbox(level: Sandbox["level"], policy: SandboxPolicy, open: () => Promise<Sandbox>): Sandbox {
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
      // A call has to wait for the opening in any case; a pause opens nothing.
      if (sign === "pause" && opened === undefined) return;
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
