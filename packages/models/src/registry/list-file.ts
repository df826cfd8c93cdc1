/** Which file keeps what a provider said it offers, for one account at one address. */
import { createHash } from "node:crypto";
import path from "node:path";
import { DEFAULT_PROFILE, LOCAL_OWNER } from "../auth/default-account.ts";

export interface ListOf {
  readonly id: string;
  readonly baseUrl: string;
  readonly account: string | undefined;
  readonly owner?: string;
}

export function listSubject({ id, baseUrl, account = DEFAULT_PROFILE, owner = LOCAL_OWNER }: ListOf): string {
  return `${id}\n${baseUrl}\n${owner}:${account}`;
}

export function listFile(home: string, subject: string): string {
  const name = createHash("sha256").update(subject).digest("hex").slice(0, 32);
  return path.join(home, "cache", "models", `${name}.json`);
}
