/**
 * The token that every TCP client shows: `Authorization: Bearer …`, or `?token=…` where a client cannot set headers. Only
 * its hash is kept in memory; the comparison takes the same time whatever is shown.
 */
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { open, readFile, stat } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import { HeddleError } from "@heddle/protocol";
import { urlOf } from "../transports/server.ts";

export interface TokenCheck {
  isAllowed(request: IncomingMessage): boolean;
}

const MIN_TOKEN_CHARS = 16;
const MAX_TOKEN_BYTES = 4096;

export function tokenCheck(sha256Hex: string): TokenCheck {
  if (!/^[0-9a-f]{64}$/i.test(sha256Hex)) {
    throw new HeddleError("usage.invalid", "--ws-token-sha256 takes the 64 hexadecimal digits of a SHA-256 digest");
  }
  const expected = Buffer.from(sha256Hex, "hex");
  return {
    isAllowed(request) {
      const shown = shownToken(request);
      return shown !== undefined && timingSafeEqual(createHash("sha256").update(shown).digest(), expected);
    },
  };
}

function shownToken(request: IncomingMessage): string | undefined {
  const [, bearer] = /^Bearer\s+(\S+)$/i.exec(request.headers.authorization ?? "") ?? [];
  return bearer ?? urlOf(request)?.searchParams.get("token") ?? undefined;
}

/** The hash of the token in a file that its owner alone may read. */
export async function readTokenFile(path: string): Promise<string> {
  const found = await stat(path).catch(() => undefined);
  if (found?.isFile() !== true) throw new HeddleError("usage.invalid", `there is no token file ${path}`);
  if ((found.mode & 0o077) !== 0) {
    throw new HeddleError("credentials.unsafe", `${path} can be read by others; run chmod 600 ${path}`);
  }
  if (found.size > MAX_TOKEN_BYTES) throw new HeddleError("usage.invalid", `${path} is too large for a token`);
  const token = (await readFile(path, "utf8")).trim();
  if (token.length < MIN_TOKEN_CHARS) {
    throw new HeddleError("usage.invalid", `the token in ${path} is shorter than ${MIN_TOKEN_CHARS} characters`);
  }
  return createHash("sha256").update(token).digest("hex");
}

/** Makes the file with a new token where there is none; several servers may do so at once. */
export async function ensureTokenFile(path: string): Promise<string> {
  try {
    await using file = await open(path, "wx", 0o600);
    await file.writeFile(`${randomBytes(32).toString("base64url")}\n`);
    await file.sync();
  } catch (error) {
    const isThere = error instanceof Error && "code" in error && error.code === "EEXIST";
    if (!isThere)
      throw new HeddleError("store.failed", `the token file ${path} could not be created`, { cause: error });
  }
  return readTokenFile(path);
}
