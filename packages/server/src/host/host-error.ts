/** Failures of the operating system as the original reports them, with their number. */
import { isHeddleError } from "@heddle/protocol";
import { RPC, RpcError } from "../rpc/peer.ts";

/** Linux. */
const MESSAGES: Readonly<Record<string, readonly [message: string, number: number]>> = {
  EPERM: ["Operation not permitted", 1],
  ENOENT: ["No such file or directory", 2],
  EIO: ["Input/output error", 5],
  EACCES: ["Permission denied", 13],
  EBUSY: ["Device or resource busy", 16],
  EEXIST: ["File exists", 17],
  ENOTDIR: ["Not a directory", 20],
  EISDIR: ["Is a directory", 21],
  EINVAL: ["Invalid argument", 22],
  EMFILE: ["Too many open files", 24],
  ENOSPC: ["No space left on device", 28],
  EROFS: ["Read-only file system", 30],
  ENAMETOOLONG: ["File name too long", 36],
  ENOTEMPTY: ["Directory not empty", 39],
  ELOOP: ["Too many levels of symbolic links", 40],
  EDQUOT: ["Disk quota exceeded", 122],
};

/** Errors of the operating system in the message of the original; others unchanged. */
export function asOsError(error: unknown): unknown {
  const code = errnoOf(error);
  const known = code !== undefined && Object.hasOwn(MESSAGES, code) ? MESSAGES[code] : undefined;
  if (known === undefined) return error;
  const [message, number] = known;
  return new RpcError(RPC.internal, `${message} (os error ${number})`);
}

export function invalidArgument(message: string): RpcError {
  return new RpcError(RPC.invalidParams, message);
}

export function errnoOf(error: unknown): string | undefined {
  if (isHeddleError(error)) {
    const { errno } = error.details;
    return typeof errno === "string" ? errno : undefined;
  }
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}

/** Node takes anything for base64; the original does not. */
export function base64Bytes(text: string): Buffer | { readonly problem: string } {
  const at = text.search(/[^A-Za-z0-9+/=]/);
  if (at >= 0) return { problem: `Invalid symbol ${text.codePointAt(at)}, offset ${at}.` };
  const bare = text.replace(/=+$/, "");
  const isWhole = text.length % 4 === 0 && text.length - bare.length <= 2 && !bare.includes("=");
  return isWhole ? Buffer.from(text, "base64") : { problem: "Invalid padding" };
}
