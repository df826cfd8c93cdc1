/**
 * Every failure Heddle reports has one of these codes. Callers look at the code, people read the message.
 * A code carries the process exit code of `heddle exec` and the JSON-RPC code of the server doors,
 * so that no door invents its own.
 */
import { foreignReason } from "./text/foreign-reasons.ts";

export const EXIT = {
  ok: 0,
  turnFailed: 1,
  usage: 2,
  auth: 3,
  provider: 4,
  schema: 5,
  limit: 6,
  policy: 7,
  infrastructure: 8,
  timeout: 124,
  interrupted: 130,
  terminated: 143,
} as const;

const INVALID_REQUEST = -32600;
const METHOD_NOT_FOUND = -32601;
const INTERNAL = -32603;
const OVERLOADED = -32001;

interface ErrorClass {
  readonly exit: number;
  readonly rpc: number;
}

const table = {
  internal: { exit: EXIT.turnFailed, rpc: INTERNAL },

  "usage.invalid": { exit: EXIT.usage, rpc: INVALID_REQUEST },
  "config.invalid": { exit: EXIT.usage, rpc: INVALID_REQUEST },
  "workspace.missing": { exit: EXIT.usage, rpc: INVALID_REQUEST },
  "workspace.moved": { exit: EXIT.usage, rpc: INVALID_REQUEST },
  "workspace.untrusted": { exit: EXIT.usage, rpc: INVALID_REQUEST },
  "prompt.empty": { exit: EXIT.usage, rpc: INVALID_REQUEST },
  "prompt.binary": { exit: EXIT.usage, rpc: INVALID_REQUEST },
  "prompt.unfinished": { exit: EXIT.usage, rpc: INVALID_REQUEST },
  "model.unknown": { exit: EXIT.usage, rpc: INVALID_REQUEST },
  "provider.unknown": { exit: EXIT.usage, rpc: INVALID_REQUEST },
  "provider.disabled": { exit: EXIT.usage, rpc: INVALID_REQUEST },
  "provider.configuration-required": { exit: EXIT.usage, rpc: INVALID_REQUEST },
  "model.ambiguous": { exit: EXIT.usage, rpc: INVALID_REQUEST },
  "thread.not-found": { exit: EXIT.usage, rpc: INVALID_REQUEST },
  "thread.ambiguous": { exit: EXIT.usage, rpc: INVALID_REQUEST },
  "thread.has-forks": { exit: EXIT.usage, rpc: INVALID_REQUEST },
  "turn.not-found": { exit: EXIT.usage, rpc: INVALID_REQUEST },
  "turn.active": { exit: EXIT.usage, rpc: INVALID_REQUEST },
  "session.elsewhere": { exit: EXIT.usage, rpc: INVALID_REQUEST },
  "session.exists": { exit: EXIT.usage, rpc: INVALID_REQUEST },
  "approval.not-found": { exit: EXIT.usage, rpc: INVALID_REQUEST },
  "approval.already-resolved": { exit: EXIT.usage, rpc: INVALID_REQUEST },
  "cursor.expired": { exit: EXIT.usage, rpc: INVALID_REQUEST },
  "task.not-found": { exit: EXIT.usage, rpc: INVALID_REQUEST },
  "task.ambiguous": { exit: EXIT.usage, rpc: INVALID_REQUEST },
  "task.invalid": { exit: EXIT.usage, rpc: INVALID_REQUEST },
  "task.illegal": { exit: EXIT.usage, rpc: INVALID_REQUEST },
  "task.folder-busy": { exit: EXIT.infrastructure, rpc: INVALID_REQUEST },
  "task.stale": { exit: EXIT.infrastructure, rpc: INVALID_REQUEST },
  "task.rejected": { exit: EXIT.turnFailed, rpc: INTERNAL },
  "task.unverified": { exit: EXIT.turnFailed, rpc: INTERNAL },
  "task.stalled": { exit: EXIT.turnFailed, rpc: INTERNAL },
  "task.setup-failed": { exit: EXIT.turnFailed, rpc: INTERNAL },
  "task.hook-failed": { exit: EXIT.turnFailed, rpc: INVALID_REQUEST },

  "auth.missing": { exit: EXIT.auth, rpc: INVALID_REQUEST },
  "auth.rejected": { exit: EXIT.auth, rpc: INVALID_REQUEST },
  "login.not-found": { exit: EXIT.usage, rpc: INVALID_REQUEST },
  "login.failed": { exit: EXIT.auth, rpc: INVALID_REQUEST },
  "login.cancelled": { exit: EXIT.interrupted, rpc: INVALID_REQUEST },
  "login.expired": { exit: EXIT.auth, rpc: INVALID_REQUEST },
  "credentials.unsafe": { exit: EXIT.infrastructure, rpc: INVALID_REQUEST },

  "provider.unreachable": { exit: EXIT.provider, rpc: INTERNAL },
  "provider.stalled": { exit: EXIT.provider, rpc: INTERNAL },
  "provider.cut": { exit: EXIT.provider, rpc: INTERNAL },
  "provider.malformed": { exit: EXIT.provider, rpc: INTERNAL },
  "provider.rate-limited": { exit: EXIT.provider, rpc: INTERNAL },
  "provider.overloaded": { exit: EXIT.provider, rpc: INTERNAL },
  "provider.rejected": { exit: EXIT.provider, rpc: INTERNAL },
  "provider.context-exceeded": { exit: EXIT.provider, rpc: INTERNAL },
  "provider.refused": { exit: EXIT.provider, rpc: INTERNAL },

  "schema.violated": { exit: EXIT.schema, rpc: INTERNAL },
  "limit.reached": { exit: EXIT.limit, rpc: INTERNAL },

  "policy.denied": { exit: EXIT.policy, rpc: INVALID_REQUEST },
  "child.not-found": { exit: EXIT.policy, rpc: INVALID_REQUEST },
  "child.too-deep": { exit: EXIT.policy, rpc: INVALID_REQUEST },
  "child.too-many": { exit: EXIT.policy, rpc: INVALID_REQUEST },
  "agent.not-found": { exit: EXIT.usage, rpc: INVALID_REQUEST },
  "agent.gone": { exit: EXIT.usage, rpc: INVALID_REQUEST },
  "agent.name-taken": { exit: EXIT.usage, rpc: INVALID_REQUEST },
  "message.not-found": { exit: EXIT.usage, rpc: INVALID_REQUEST },
  "message.not-allowed": { exit: EXIT.policy, rpc: INVALID_REQUEST },
  "message.cycle": { exit: EXIT.policy, rpc: INVALID_REQUEST },
  "message.too-many": { exit: EXIT.limit, rpc: INVALID_REQUEST },
  "message.refused": { exit: EXIT.turnFailed, rpc: INVALID_REQUEST },
  "message.settled": { exit: EXIT.usage, rpc: INVALID_REQUEST },
  "message.expired": { exit: EXIT.timeout, rpc: INVALID_REQUEST },
  "ceiling.exceeded": { exit: EXIT.policy, rpc: INVALID_REQUEST },
  "hop.unknown-envelope": { exit: EXIT.usage, rpc: INVALID_REQUEST },
  "hop.same-envelope": { exit: EXIT.usage, rpc: INVALID_REQUEST },
  "hop.no-edge": { exit: EXIT.policy, rpc: INVALID_REQUEST },
  "hop.not-authorized": { exit: EXIT.policy, rpc: INVALID_REQUEST },
  "hop.guard-failed": { exit: EXIT.policy, rpc: INVALID_REQUEST },
  "hop.approval-denied": { exit: EXIT.policy, rpc: INVALID_REQUEST },
  "hop.carry-invalid": { exit: EXIT.usage, rpc: INVALID_REQUEST },
  "hop.too-many": { exit: EXIT.policy, rpc: INVALID_REQUEST },
  "hop.busy": { exit: EXIT.usage, rpc: INVALID_REQUEST },
  "envelope.changed": { exit: EXIT.policy, rpc: INVALID_REQUEST },
  "envelope.unknown": { exit: EXIT.usage, rpc: INVALID_REQUEST },
  "envelope.invalid": { exit: EXIT.usage, rpc: INVALID_REQUEST },
  "gate.unknown": { exit: EXIT.usage, rpc: INVALID_REQUEST },
  "gate.invalid": { exit: EXIT.usage, rpc: INVALID_REQUEST },
  "envelope.limit-reached": { exit: EXIT.policy, rpc: INVALID_REQUEST },
  "path.outside": { exit: EXIT.policy, rpc: INVALID_REQUEST },
  "path.protected": { exit: EXIT.policy, rpc: INVALID_REQUEST },
  "path.invalid": { exit: EXIT.policy, rpc: INVALID_REQUEST },

  "tool.unknown": { exit: EXIT.turnFailed, rpc: INVALID_REQUEST },
  "tool.invalid-arguments": { exit: EXIT.turnFailed, rpc: INVALID_REQUEST },
  "tool.failed": { exit: EXIT.turnFailed, rpc: INTERNAL },
  "tool.timeout": { exit: EXIT.turnFailed, rpc: INTERNAL },
  "tool.cancelled": { exit: EXIT.turnFailed, rpc: INTERNAL },
  "process.line-too-long": { exit: EXIT.turnFailed, rpc: INTERNAL },

  "host.exhausted": { exit: EXIT.infrastructure, rpc: INTERNAL },
  "sandbox.unavailable": { exit: EXIT.infrastructure, rpc: INVALID_REQUEST },
  "sandbox.failed": { exit: EXIT.infrastructure, rpc: INTERNAL },
  "mcp.failed": { exit: EXIT.infrastructure, rpc: INTERNAL },
  "store.full": { exit: EXIT.infrastructure, rpc: INTERNAL },
  "store.read-only": { exit: EXIT.infrastructure, rpc: INTERNAL },
  "store.damaged": { exit: EXIT.infrastructure, rpc: INTERNAL },
  "store.newer": { exit: EXIT.infrastructure, rpc: INTERNAL },
  "store.busy": { exit: EXIT.infrastructure, rpc: OVERLOADED },
  "store.unknown": { exit: EXIT.infrastructure, rpc: INTERNAL },
  "store.failed": { exit: EXIT.infrastructure, rpc: INTERNAL },
  "store.version-conflict": { exit: EXIT.infrastructure, rpc: INVALID_REQUEST },
  "store.purged": { exit: EXIT.infrastructure, rpc: INVALID_REQUEST },
  "store.id-conflict": { exit: EXIT.usage, rpc: INVALID_REQUEST },
  "store.owned": { exit: EXIT.infrastructure, rpc: INVALID_REQUEST },

  "runner.unknown": { exit: EXIT.usage, rpc: INVALID_REQUEST },
  "runner.unsupported": { exit: EXIT.usage, rpc: INVALID_REQUEST },
  "runner.missing": { exit: EXIT.usage, rpc: INVALID_REQUEST },
  "runner.wrong-version": { exit: EXIT.usage, rpc: INVALID_REQUEST },
  "runner.logged-out": { exit: EXIT.auth, rpc: INVALID_REQUEST },
  "runner.failed": { exit: EXIT.turnFailed, rpc: INTERNAL },
  "runner.malformed": { exit: EXIT.turnFailed, rpc: INTERNAL },
  "runner.stalled": { exit: EXIT.turnFailed, rpc: INTERNAL },
  "runner.exited": { exit: EXIT.turnFailed, rpc: INTERNAL },

  "worker.lost": { exit: EXIT.turnFailed, rpc: INTERNAL },
  "worker.fenced": { exit: EXIT.infrastructure, rpc: INTERNAL },
  "worker.not-found": { exit: EXIT.usage, rpc: INVALID_REQUEST },
  "worker.ambiguous": { exit: EXIT.usage, rpc: INVALID_REQUEST },
  "lease.lost": { exit: EXIT.infrastructure, rpc: INTERNAL },

  "door.unauthorized": { exit: EXIT.auth, rpc: INVALID_REQUEST },
  "door.forbidden": { exit: EXIT.policy, rpc: INVALID_REQUEST },
  "door.wrong-host": { exit: EXIT.policy, rpc: INVALID_REQUEST },
  "door.not-found": { exit: EXIT.usage, rpc: INVALID_REQUEST },
  "door.wrong-method": { exit: EXIT.usage, rpc: INVALID_REQUEST },
  "door.unsupported": { exit: EXIT.usage, rpc: METHOD_NOT_FOUND },
  "door.json-only": { exit: EXIT.usage, rpc: INVALID_REQUEST },
  "door.too-large": { exit: EXIT.usage, rpc: INVALID_REQUEST },
  "door.overloaded": { exit: EXIT.infrastructure, rpc: OVERLOADED },

  "evidence.not-found": { exit: EXIT.usage, rpc: INVALID_REQUEST },
  "evidence.tampered": { exit: EXIT.policy, rpc: INVALID_REQUEST },
  "evidence.unproven": { exit: EXIT.policy, rpc: INVALID_REQUEST },
  "evidence.untrusted": { exit: EXIT.policy, rpc: INVALID_REQUEST },
  "evidence.timeout": { exit: EXIT.timeout, rpc: INTERNAL },

  "turn.timeout": { exit: EXIT.timeout, rpc: INTERNAL },
  "turn.interrupted": { exit: EXIT.interrupted, rpc: INTERNAL },
  "turn.parked": { exit: EXIT.infrastructure, rpc: INVALID_REQUEST },
  "turn.abandoned": { exit: EXIT.turnFailed, rpc: INTERNAL },
} as const satisfies Record<string, ErrorClass>;

export type ErrorCode = keyof typeof table;

export const ERROR_CODES = Object.keys(table) as readonly ErrorCode[];

export function exitCodeOf(code: ErrorCode): number {
  return table[code].exit;
}

export function rpcCodeOf(code: ErrorCode): number {
  return table[code].rpc;
}

/** Failures that waiting alone can clear. A timeout is not one of them: the next run would need the same time. */
const RETRYABLE: ReadonlySet<string> = new Set<ErrorCode>([
  "provider.unreachable",
  "provider.stalled",
  "provider.cut",
  "provider.rate-limited",
  "provider.overloaded",
  "store.busy",
]);

export function isRetryable(code: string | undefined): boolean {
  return code !== undefined && RETRYABLE.has(code);
}

/** Too many open files in this process or on the machine, no memory, or no room. */
const HOST_FAULTS: Readonly<Record<string, ErrorCode>> = {
  EMFILE: "host.exhausted",
  ENFILE: "host.exhausted",
  ENOMEM: "host.exhausted",
  ENOSPC: "store.full",
  EDQUOT: "store.full",
};

/** Facts for programs: never prose, never secrets. */
type Details = Readonly<Record<string, string | number | boolean>>;

export interface HeddleErrorOptions {
  readonly cause?: unknown;
  readonly details?: Details;
}

export class HeddleError extends Error {
  readonly code: ErrorCode;
  readonly details: Details;

  constructor(code: ErrorCode, message: string, options: HeddleErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "HeddleError";
    this.code = code;
    this.details = options.details ?? {};
  }
}

/** The code of a failed system call, such as ENOENT, or of an error of Heddle. */
export function errorCodeOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}

/** Errors cross bundle and worker boundaries, so the code decides, not `instanceof`. */
export function isHeddleError(error: unknown): error is HeddleError {
  return (errorCodeOf(error) ?? "") in table;
}

/** Gives an unknown failure a code, keeping the original as cause. */
export function toHeddleError(error: unknown, fallback: ErrorCode = "internal"): HeddleError {
  if (isHeddleError(error)) return error;
  // Cleaning up failed because of the failure before it.
  if (error instanceof SuppressedError) return toHeddleError(error.suppressed, fallback);
  const isNamed = error instanceof Error && "path" in error && typeof error.path === "string" && "syscall" in error;
  const message = `${reasonOf(error)}${isNamed ? ` (${String(error.syscall)} ${String(error.path)})` : ""}`;
  return new HeddleError(hostFaultOr(error, fallback), message, { cause: error });
}

/**
 * Why something failed, for a message that says what failed. The text is Heddle's: of an error of the system or the runtime
 * by its code, of a library that only says that it failed, by its cause, of a schema by the first thing that is wrong.
 */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (isHeddleError(error)) return error.message;
  if ("issues" in error && Array.isArray(error.issues)) {
    const [{ path = [], message = "" } = {}] = error.issues;
    return [path.join("."), message].filter((part) => part !== "").join(": ");
  }
  const code = errorCodeOf(error);
  if (error.cause instanceof Error && (error instanceof TypeError || code !== undefined)) return reasonOf(error.cause);
  return foreignReason(error, code) ?? (error.message || error.name);
}

/**
 * When the host lacks descriptors, memory or room on a disk, neither what was named nor Heddle is wrong. A full disk is one
 * thing to the caller, wherever it is met and whatever the system calls it.
 */
export function hostFaultOr(cause: unknown, otherwise: ErrorCode): ErrorCode {
  return HOST_FAULTS[errorCodeOf(cause) ?? ""] ?? otherwise;
}

/** Of a file that could not be written. */
export function diskFaultOf(error: unknown): ErrorCode {
  return errorCodeOf(error) === "EROFS" ? "store.read-only" : hostFaultOr(error, "store.failed");
}
