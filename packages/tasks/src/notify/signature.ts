/**
 * Signatures of outgoing and incoming bodies: HMAC-SHA-256 over time and body, so that an old one cannot be replayed.
 */
import { createHmac, timingSafeEqual } from "node:crypto";

export const SIGNATURE_HEADER = "x-heddle-signature";

/** Clocks differ, and a queue may be slow; an older request is a replay. */
const TOLERANCE_SECONDS = 300;

/** `t=1700000000,v1=hex`. */
export function sign(body: string | Buffer, secret: string, now: number): string {
  const seconds = Math.trunc(now / 1000);
  return `t=${seconds},v1=${hmac(secret, `${seconds}.`, body)}`;
}

export type Judgement = "good" | "bad" | "old";

export function judge(header: string | undefined, body: string | Buffer, secret: string, now: number): Judgement {
  const match = /^t=(\d{1,12}),v1=([0-9a-f]{64})$/.exec(header ?? "");
  const [, seconds, given] = match ?? [];
  if (seconds === undefined || given === undefined) return "bad";
  if (!isSame(given, hmac(secret, `${seconds}.`, body))) return "bad";
  return Math.abs(Math.trunc(now / 1000) - Number(seconds)) <= TOLERANCE_SECONDS ? "good" : "old";
}

export function hmac(secret: string, ...parts: readonly (string | Buffer)[]): string {
  const mac = createHmac("sha256", secret);
  for (const part of parts) mac.update(part);
  return mac.digest("hex");
}

/** In constant time. */
export function isSame(given: string, expected: string): boolean {
  const a = Buffer.from(given);
  const b = Buffer.from(expected);
  return a.length === b.length && timingSafeEqual(a, b);
}
