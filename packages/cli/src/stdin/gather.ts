/** Everything that comes on standard input, up to its end or a size that no model reads. */
import type { Readable } from "node:stream";
import { clockMs, HeddleError, reasonOf, toHeddleError } from "@heddle/protocol";

/** Far more than any model reads; a stream without end must not fill the memory. */
const MAX_INPUT_BYTES = 8 * 1024 * 1024;

/** As standard input is made: pipes, sockets and terminals can be let go of, files end by themselves. */
export type InputStream = Readable & { readonly unref?: () => unknown };

export interface Gathering {
  /** All of it; rejects when the stream breaks, is too long, or the signal says to stop. */
  readonly whole: Promise<Buffer>;
  readonly isOver: boolean;
  readonly sizeBytes: number;
  /** When the last byte came, by `clockMs`; before any, when the reading began. */
  readonly lastByteAt: number;
  /** Stops reading and lets the process end. What came stays gathered. */
  leave(): void;
}

export function gather(stdin: InputStream, signal: AbortSignal, onFirstByte?: () => void): Gathering {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const chunks: Buffer[] = [];
  let sizeBytes = 0;
  let lastByteAt = clockMs();
  let isOver = false;

  const stop = (): void => {
    isOver = true;
    stdin.off("data", onData).off("end", onEnd).off("error", onError).off("close", onClose);
    signal.removeEventListener("abort", onAbort);
  };
  const fail = (error: unknown): void => {
    stop();
    // Destroying may report the same failure once more.
    stdin.on("error", () => undefined).destroy();
    reject(toHeddleError(error));
  };
  const onData = (chunk: Buffer | string): void => {
    const bytes = Buffer.isBuffer(chunk) ? chunk : Buffer.from(chunk);
    if (sizeBytes === 0 && bytes.length > 0) onFirstByte?.();
    sizeBytes += bytes.length;
    lastByteAt = clockMs();
    if (sizeBytes > MAX_INPUT_BYTES) fail(tooLong());
    else chunks.push(bytes);
  };
  const onEnd = (): void => {
    stop();
    resolve(Buffer.concat(chunks));
  };
  const onError = (error: Error): void =>
    fail(new HeddleError("usage.invalid", `standard input cannot be read: ${reasonOf(error)}`, { cause: error }));
  const onClose = (): void => onError(new Error("it was closed before its end"));
  const onAbort = (): void => fail(signal.reason);

  // A failure is reported when it is asked for, not as an unhandled rejection.
  promise.catch(() => undefined);
  stdin.on("data", onData).on("end", onEnd).on("error", onError).on("close", onClose);
  signal.addEventListener("abort", onAbort);
  if (signal.aborted) onAbort();
  return {
    whole: promise,
    get isOver() {
      return isOver;
    },
    get sizeBytes() {
      return sizeBytes;
    },
    get lastByteAt() {
      return lastByteAt;
    },
    leave() {
      stop();
      stdin.pause();
      stdin.unref?.();
    },
  };
}

function tooLong(): HeddleError {
  const limit = MAX_INPUT_BYTES / 1024 / 1024;
  return new HeddleError(
    "usage.invalid",
    `standard input is over ${limit} MiB; put it in a file and name the file in the prompt`,
  );
}
