/** What errors of the system, the runtime and its network mean, as plain text: their own messages do not reach a user. */

const REASONS: Readonly<Record<string, string>> = {
  E2BIG: "argument list too long",
  EACCES: "permission denied",
  EADDRINUSE: "the address is in use",
  EADDRNOTAVAIL: "this machine does not have the address",
  EAGAIN: "not available right now",
  EAI_AGAIN: "the name cannot be resolved right now",
  EBADF: "bad file descriptor",
  EBUSY: "it is in use",
  ECONNABORTED: "the connection was aborted",
  ECONNREFUSED: "connection refused",
  ECONNRESET: "the other side closed the connection",
  EDQUOT: "the disk quota is used up",
  EEXIST: "it exists already",
  EFBIG: "file too large",
  EHOSTUNREACH: "the host cannot be reached",
  EINVAL: "invalid argument",
  EIO: "i/o error of the disk",
  EISDIR: "it is a folder",
  ELOOP: "too many links lead to each other",
  EMFILE: "too many open files in this process",
  ENAMETOOLONG: "a name in it is too long",
  ENETUNREACH: "the network cannot be reached",
  ENFILE: "too many open files on this machine",
  ENOENT: "it does not exist",
  ENOEXEC: "it is not a program",
  ENOMEM: "not enough memory",
  ENOSPC: "the disk is full",
  ENOSYS: "not supported by this system",
  ENOTDIR: "a part of it is not a folder",
  ENOTEMPTY: "the folder is not empty",
  ENOTFOUND: "the name cannot be resolved",
  ENOTSUP: "operation not supported on this file system",
  ENXIO: "no such device or address",
  EPERM: "not permitted",
  EPIPE: "the other side closed the connection",
  EROFS: "the file system is read-only",
  ESRCH: "no such process",
  ETIMEDOUT: "no answer in time",
  ETXTBSY: "it is a program that is running",
  EXDEV: "it is on another file system",
  CERT_HAS_EXPIRED: "its TLS certificate has expired",
  DEPTH_ZERO_SELF_SIGNED_CERT: "its TLS certificate is self-signed",
  ERR_ENCODING_INVALID_ENCODED_DATA: "not UTF-8 text",
  ERR_INVALID_URL: "not a URL",
  ERR_STREAM_PREMATURE_CLOSE: "the other side closed the connection",
  ERR_TLS_CERT_ALTNAME_INVALID: "its TLS certificate is for another host",
  SELF_SIGNED_CERT_IN_CHAIN: "its TLS certificate is self-signed",
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: "the issuer of its TLS certificate is not known",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: "the issuer of its TLS certificate is not known",
  UND_ERR_BODY_TIMEOUT: "no answer in time",
  UND_ERR_CONNECT_TIMEOUT: "no answer in time",
  UND_ERR_HEADERS_TIMEOUT: "no answer in time",
  UND_ERR_SOCKET: "the other side closed the connection",
  Z_BUF_ERROR: "the compressed data is cut off",
  Z_DATA_ERROR: "the compressed data is damaged",
};

/** Codes of the system and of Node, with and without an entry of their own. */
const FOREIGN_CODE = /^(?:E[A-Z0-9]+|E(?:AI|RR)_\w+|UND_ERR_\w+|HPE_\w+|Z_\w+|[A-Z_]*CERT[A-Z_]*)$/;

/** undefined: not an error of the system or the runtime. */
export function foreignReason(error: Error, code: string | undefined): string | undefined {
  if (code !== undefined && FOREIGN_CODE.test(code)) return REASONS[code] ?? `error ${code}`;
  if ("cmd" in error && typeof error.cmd === "string") return endOf(error, error.cmd);
  if (error.name === "TimeoutError") return "no answer in time";
  if (error.name === "AbortError") return "cancelled";
  if (!(error instanceof SyntaxError)) return undefined;
  if (error.message.startsWith("Invalid flags")) return "unknown flags";
  const [, pattern] = /^Invalid regular expression: .*: (.+)$/s.exec(error.message) ?? [];
  return pattern === undefined ? "it is not valid JSON" : pattern.toLowerCase();
}

/** Of a program that was run to its end; what it printed belongs to whoever ran it. */
function endOf(error: Error, command: string): string {
  const how = "signal" in error && typeof error.signal === "string" ? error.signal : "code" in error ? error.code : "";
  return `${command.split(" ", 1)[0] ?? ""} ended with ${String(how)}`;
}
