/** What the system says of a file, as errors that name it and say what helps. */
import { diskFaultOf, HeddleError, hostFaultOr, isHeddleError } from "@heddle/protocol";
import { toText, type RawPath } from "@heddle/tools/raw-path";

export function codeOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}

/** Writing Heddle's own copy failed, not reading the workspace. */
export class StoreFault extends Error {}

/** Of the workspace. */
export function cannotRead(path: RawPath, cause: unknown): HeddleError | StoreFault {
  if (isHeddleError(cause) || cause instanceof StoreFault) return cause;
  const shown = toText(path);
  const errno = codeOf(cause) ?? "unknown";
  const help = errno === "EACCES" || errno === "EPERM" ? "; make it readable (chmod u+rX), or remove it" : "";
  return new HeddleError(hostFaultOr(cause, "path.invalid"), `${shown} cannot be read (${errno})${help}`, {
    cause,
    details: { path: shown, errno },
  });
}

export function keepsChanging(path: RawPath): HeddleError {
  const shown = toText(path);
  return new HeddleError("path.invalid", `${shown} keeps changing while it is read; end the program that writes it`, {
    details: { path: shown, reason: "changing" },
  });
}

/** Of Heddle's own copies. */
export function cannotStore(folder: string, cause: unknown): HeddleError {
  if (isHeddleError(cause)) return cause;
  if (cause instanceof StoreFault) return cannotStore(folder, cause.cause);
  const errno = codeOf(cause) ?? "unknown";
  if (errno === "ENOSPC" || errno === "EDQUOT") {
    return new HeddleError(
      "store.full",
      `no space left for a copy of the workspace in ${folder}; free some, then retry`,
      {
        cause,
        details: { folder, errno },
      },
    );
  }
  return new HeddleError(diskFaultOf(cause), `a copy of the workspace cannot be written to ${folder} (${errno})`, {
    cause,
    details: { folder, errno },
  });
}

/** Into a workspace. */
export function cannotPut(folder: string, cause: unknown, state: string): HeddleError {
  if (isHeddleError(cause)) return cause;
  const errno = codeOf(cause) ?? "unknown";
  const isFull = errno === "ENOSPC" || errno === "EDQUOT";
  const code = diskFaultOf(cause);
  const what = isFull ? `no space left to change ${folder}` : `${folder} cannot be changed (${errno})`;
  const isClosed = errno === "EACCES" || errno === "EPERM";
  const help = isFull
    ? "; free some, then retry"
    : isClosed
      ? "; make it writable for you (chmod, chown), then retry"
      : "";
  return new HeddleError(code, `${what}: ${state}${help}`, { cause, details: { folder, errno } });
}

export function damaged(what: string, cause?: unknown): HeddleError {
  return new HeddleError("store.damaged", `${what}; it was changed after Heddle wrote it: start the task again`, {
    cause,
  });
}
