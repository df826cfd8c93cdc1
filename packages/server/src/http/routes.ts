/** The whole table, and how a request finds its row. */
import { HeddleError } from "@heddle/protocol";
import { AGENT_ROUTES } from "./agent-routes.ts";
import { ENVELOPE_ROUTES } from "./envelope-routes.ts";
import { EVENT_ROUTES } from "./event-routes.ts";
import { EVIDENCE_ROUTES } from "./evidence-routes.ts";
import { LOGIN_ROUTES } from "./login-routes.ts";
import { HOST_ROUTES } from "./host-routes.ts";
import { MCP_ROUTES } from "./mcp-routes.ts";
import { ORDER_ROUTES } from "./order-routes.ts";
import { PROCESS_ROUTES } from "./process-routes.ts";
import { RECORD_ROUTES } from "./record-routes.ts";
import { PROBE_ROUTES } from "./probe-routes.ts";
import type { Route } from "./route.ts";
import { TASK_FACTS_ROUTES } from "./task-facts-routes.ts";
import { TASK_LINT_ROUTES } from "./task-lint.ts";
import { TASK_ROUTES } from "./task-routes.ts";
import { TASK_WORK_ROUTES } from "./task-work-routes.ts";
import { CONVERSATION_ROUTES } from "./conversation-routes.ts";
import { THREAD_ROUTES } from "./thread-routes.ts";
import { TURN_ROUTES } from "./turn-routes.ts";

export const ROUTES: readonly Route[] = [
  ...PROBE_ROUTES,
  ...HOST_ROUTES,
  ...LOGIN_ROUTES,
  ...THREAD_ROUTES,
  ...CONVERSATION_ROUTES,
  ...TURN_ROUTES,
  ...ENVELOPE_ROUTES,
  ...EVENT_ROUTES,
  ...EVIDENCE_ROUTES,
  ...PROCESS_ROUTES,
  ...RECORD_ROUTES,
  ...AGENT_ROUTES,
  ...TASK_LINT_ROUTES,
  ...TASK_ROUTES,
  ...TASK_WORK_ROUTES,
  ...TASK_FACTS_ROUTES,
  ...ORDER_ROUTES,
  ...MCP_ROUTES,
];

export interface Matched {
  readonly route: Route;
  readonly params: Readonly<Record<string, string>>;
}

/** `door.not-found` for an unknown path, `door.wrong-method` for one with other methods. */
export function findRoute(method: string, pathname: string): Matched {
  const parts = pathname.split("/");
  const fitting = COMPILED.filter(({ pattern }) => fits(pattern, parts));
  // A question about headers is answered like the question itself; Node leaves the body out. A stream has no end to wait for.
  const found = fitting.find(({ route }) =>
    method === "HEAD" ? route.method === "GET" && typeof route.answer !== "string" : route.method === method,
  );
  if (found !== undefined) return { route: found.route, params: paramsOf(found.pattern, parts) };
  if (fitting.length === 0) throw new HeddleError("door.not-found", "there is no such route; see /api/openapi.json");
  const allowed = fitting.map(({ route }) => route.method).join(", ");
  throw new HeddleError("door.wrong-method", `only ${allowed} here`, { details: { allow: allowed } });
}

const COMPILED = ROUTES.map((route) => ({ route, pattern: route.path.split("/") }));

function fits(pattern: readonly string[], parts: readonly string[]): boolean {
  return (
    pattern.length === parts.length &&
    pattern.every((word, at) => (word.startsWith("{") ? parts[at] !== "" : word === parts[at]))
  );
}

function paramsOf(pattern: readonly string[], parts: readonly string[]): Readonly<Record<string, string>> {
  const named = pattern.flatMap((word, at) =>
    word.startsWith("{") ? [[word.slice(1, -1), decode(parts[at] ?? "")]] : [],
  );
  return Object.fromEntries(named);
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw new HeddleError("usage.invalid", "the path is not well encoded");
  }
}
