/** What goes back: JSON with the same careful headers every time, failures by their code. */
import type { ServerResponse } from "node:http";
import { EXIT, exitCodeOf, toHeddleError, type ErrorCode, type HeddleError } from "@heddle/protocol";

/** No page of another origin may read, frame or guess at an answer, and nobody on the way may keep it. */
export const CAREFUL_HEADERS = {
  "cache-control": "no-store",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
} as const;

/** Of bundles. */
export const LINES_TYPE = "application/x-ndjson";

const STATUS: Partial<Readonly<Record<ErrorCode, number>>> = {
  "door.unauthorized": 401,
  "door.forbidden": 403,
  "door.wrong-host": 421,
  "door.wrong-method": 405,
  "door.json-only": 415,
  "door.too-large": 413,
  "door.overloaded": 503,
  "evidence.timeout": 503,
  "task.illegal": 409,
  "task.stale": 409,
  "task.hook-failed": 409,
  "turn.active": 409,
  "thread.has-forks": 409,
  "approval.already-resolved": 409,
  "store.id-conflict": 409,
  "store.version-conflict": 409,
  "store.purged": 410,
  "cursor.expired": 410,
  "policy.denied": 403,
  "ceiling.exceeded": 403,
  "hop.no-edge": 403,
  "hop.not-authorized": 403,
  "hop.guard-failed": 403,
  "hop.approval-denied": 403,
  "hop.too-many": 403,
  "hop.busy": 409,
  "limit.reached": 429,
  "agent.name-taken": 409,
  "agent.gone": 410,
  "message.not-allowed": 403,
  "message.cycle": 409,
  "message.settled": 409,
  "message.too-many": 429,
  "sandbox.unavailable": 503,
  "store.busy": 503,
  "store.full": 507,
  // What another gave in place of an answer.
  "schema.violated": 502,
  "task.unverified": 502,
  "auth.missing": 424,
  "auth.rejected": 424,
};

export function statusOf(error: HeddleError): number {
  const known = STATUS[error.code];
  if (known !== undefined) return known;
  if (error.code.endsWith(".not-found")) return 404;
  if (exitCodeOf(error.code) === EXIT.usage) return 400;
  return /^(config|workspace|envelope|prompt|model|provider|path|thread|task|hop)\./.test(error.code) ? 400 : 500;
}

export function sendJson(response: ServerResponse, status: number, value: unknown): void {
  if (response.headersSent || response.destroyed) return;
  const body = Buffer.from(`${JSON.stringify(value)}\n`);
  response.writeHead(status, {
    ...CAREFUL_HEADERS,
    "content-type": "application/json; charset=utf-8",
    "content-length": body.length,
  });
  response.end(body);
}

export interface Refusal {
  readonly headers?: Readonly<Record<string, string>>;
  /** What is still coming in is not waited for. */
  readonly closes?: boolean;
}

export function sendError(response: ServerResponse, error: unknown, { headers = {}, closes }: Refusal = {}): void {
  const failure = toHeddleError(error);
  if (response.headersSent || response.destroyed) return void response.destroy();
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
  if (closes === true) response.setHeader("connection", "close");
  const { code, details } = failure;
  // Internal errors are for the log of the server, not for the caller.
  const message = code === "internal" ? "internal error; see the log of the server" : failure.message;
  sendJson(response, statusOf(failure), {
    error: { code, message, ...(Object.keys(details).length === 0 ? {} : { details }) },
  });
}
