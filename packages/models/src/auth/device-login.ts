/**
 * A login by device code: a short word is typed in on any device, and Heddle asks until it has been. The code that is worth
 * something never leaves this process.
 */
import { HeddleError } from "@heddle/protocol";
import { pause } from "./pause.ts";
import { exchangeCode, pollDevice, type DeviceCode, type Issuer, type Tokens } from "./issuer.ts";

export const DEVICE_LIFETIME_MS = 15 * 60_000;
const SLOW_DOWN_MS = 5_000;

export interface Clock {
  readonly now: () => number;
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
}

export const REAL_CLOCK: Clock = { now: Date.now, sleep: pause };

/** Settles within the signal's abort, or `login.expired` after fifteen minutes. */
export async function awaitDevice(
  issuer: Issuer,
  device: DeviceCode,
  { clock = REAL_CLOCK, signal }: { readonly clock?: Clock | undefined; readonly signal: AbortSignal },
): Promise<Tokens> {
  const deadline = clock.now() + DEVICE_LIFETIME_MS;
  let { intervalMs } = device;
  for (;;) {
    if (clock.now() + intervalMs > deadline) {
      throw new HeddleError("login.expired", "the code was not entered within fifteen minutes; log in again");
    }
    await clock.sleep(intervalMs, signal);
    const answer = await pollDevice(issuer, device, signal).catch((error: unknown) => {
      // A network that is away for a moment is no answer.
      if (error instanceof HeddleError && error.code === "provider.unreachable") return { kind: "pending" } as const;
      throw error;
    });
    if (answer.kind === "granted") return exchangeCode(issuer, answer, signal);
    if (answer.kind === "slowDown") intervalMs += SLOW_DOWN_MS;
  }
}
