/**
 * A sandbox that is opened when the first call comes. Only for a host that has given this process such a sandbox before:
 * whether it can is known then, and a server with many threads holds processes only for those that work.
 */
import { HeddleError } from "@heddle/protocol";
import type { ProtectedPathViolation, Sandbox, SandboxPolicy, SweepOptions } from "./sandbox.ts";

export class WaitingSandbox implements Sandbox {
  readonly level: Sandbox["level"];
  readonly policy: SandboxPolicy;
  readonly #open: () => Promise<Sandbox>;
  #opened: Promise<Sandbox> | undefined;
  #isClosed = false;

  constructor(level: Sandbox["level"], policy: SandboxPolicy, open: () => Promise<Sandbox>) {
    this.level = level;
    this.policy = policy;
    this.#open = open;
  }

  /** Whoever asks is about to run something. */
  get ready(): Sandbox["ready"] {
    return this.#sandbox().then((sandbox) => sandbox.ready);
  }

  async enter(...[argv, options]: Parameters<Sandbox["enter"]>): ReturnType<Sandbox["enter"]> {
    return await (await this.#sandbox()).enter(argv, options);
  }

  /** A call opens it: what is about to be called waits for it in any case. */
  standBy(sign: "call" | "pause" = "call"): void {
    if (sign === "pause" && this.#opened === undefined) return;
    this.#sandbox().then(
      (sandbox) => sandbox.standBy(),
      () => undefined,
    );
  }

  async accept(): Promise<void> {
    // What is there when it opens is the owner's anyway.
    if (this.#opened !== undefined) await (await this.#opened).accept();
  }

  async sweep(options?: SweepOptions): Promise<readonly ProtectedPathViolation[]> {
    // Nobody was inside, so there is nothing to look for.
    return this.#opened === undefined ? [] : await (await this.#opened).sweep(options);
  }

  async close(): Promise<readonly ProtectedPathViolation[]> {
    this.#isClosed = true;
    const opened = await this.#opened?.catch(() => undefined);
    return opened === undefined ? [] : await opened.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #sandbox(): Promise<Sandbox> {
    if (this.#isClosed) throw new HeddleError("sandbox.failed", "the sandbox is closed");
    this.#opened ??= this.#open().then((sandbox) => {
      if (sandbox.level === this.level) return sandbox;
      // The turn was told of another wall; it must not run behind this one.
      return sandbox.close().then(() => {
        throw new HeddleError(
          "sandbox.failed",
          `the host gave ${sandbox.level} where it had given ${this.level} before`,
        );
      });
    });
    return await this.#opened;
  }
}
