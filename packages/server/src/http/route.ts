/**
 * What a route is: one row of data, from which calls are served, refused and described. A row cannot leave out who may
 * call it.
 */
import type { Heddle } from "@heddle/agent";
import type { Programs } from "@heddle/agent/conversations";
import type { AccountStatus, ModelListing } from "@heddle/models/accounts";
import { didYouMean, HeddleError, PLAIN, type By } from "@heddle/protocol";
import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import { z } from "zod";
import type { Principal, Scope } from "../access/principals.ts";
import type { SettingsResolver } from "../codex/settings.ts";
import type { Metrics } from "../metrics/open-metrics.ts";
import type { RunningTurns } from "../turns/running-turns.ts";
import type { EnvelopeSessions } from "../mcp/envelope-sessions.ts";
import type { EventHub } from "./events/hub.ts";
import type { LoginCodes } from "./login-codes.ts";
import type { TaskDoorOptions } from "./task-door.ts";
import type { TokenBook } from "./tokens.ts";

/** Facts about the host, given by the program that starts the server. */
export interface SandboxFacts {
  /** The sandbox of a turn that begins now; `none`: such a turn is refused. */
  readonly level: "namespaces" | "bwrap" | "seatbelt" | "none";
  /** False: turns run without one unless they ask for it. */
  readonly isNeeded?: boolean;
  readonly backends: readonly { readonly name: string; readonly isUsable: boolean; readonly problem?: string }[];
}

export interface HostFacts {
  /** Agent programs, for the conversations that they keep. */
  readonly programs: Programs;
  sandbox(): Promise<SandboxFacts>;
  /** Statuses only: no secret is in them. */
  accounts(): Promise<readonly AccountStatus[]>;
  /** With limits and prices, where they are known. */
  models(
    provider: string | undefined,
  ): Promise<readonly (Omit<ModelListing, "models"> & { readonly models: readonly ListedModel[] })[]>;
  /** What the machine lacks, and what fixes it. */
  doctor(): Promise<readonly DoctorFinding[]>;
}

type ListedModel = { readonly id: string } & object;

export interface DoctorFinding {
  readonly name: string;
  readonly state: "ok" | "absent" | "problem";
  readonly detail: string;
  readonly fix?: string;
}

/** What a door needs through which threads and tasks are begun: this one, and MCP. */
export interface DoorContext {
  readonly heddle: Heddle;
  readonly settings: SettingsResolver;
  readonly turns: RunningTurns;
  readonly taskDoor: TaskDoorOptions;
  /** Where a thread works when its client names no folder. */
  readonly cwd: string;
  readonly version: string;
}

export interface DoorCall extends By {
  readonly context: DoorContext;
  /** The trace of the caller, as W3C Trace Context has it. */
  readonly traceparent?: string | undefined;
  /** Undefined for `public` routes, and for `signed` ones without a token. */
  readonly principal: Principal | undefined;
}

export interface HttpContext extends DoorContext {
  /** Heddle's own folder. */
  readonly home: string;
  readonly hub: EventHub;
  readonly facts: HostFacts;
  readonly mcpSessions: EnvelopeSessions;
  /** Of the configuration that is in force. */
  readonly configFile: string | undefined;
  readonly loginCodes: LoginCodes;
  readonly tokens: TokenBook;
  /** Loaded, and counted, from the first question on. */
  readonly metrics: () => Promise<Metrics>;
  readonly log: (line: string) => void;
  /** What all threads of the home may use in a day. */
  readonly dayLimits: { readonly costUsd?: number; readonly tokens?: number; readonly turns?: number };
  /** How long a verification may take; absent: as long as its own limit says. */
  readonly verifyMs?: number | undefined;
}

export interface HttpCall extends DoorCall {
  readonly context: HttpContext;
  /** The whole address, as it was asked for. */
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  /** The body as it came: signatures are over bytes. */
  readonly bytes: Buffer;
  /** The body piece by piece, of routes that take lines. */
  readonly incoming: AsyncIterable<Buffer>;
  readonly response: ServerResponse;
  readonly lastEventId: string | undefined;
}

/**
 * Who may call: a scope of the principal's role; `public`, anybody; `signed`, whoever shows a token that may write, or none
 * and a signature that the handler looks at.
 */
export type Access = Scope | "public" | "signed";

/** `stream`: server-sent events, `lines`: JSON lines, `text`: plain, `mcp`: as MCP says. */
type Sent = "stream" | "lines" | "text" | "mcp";

type Method = "GET" | "POST" | "PATCH" | "DELETE";

export interface Raw {
  readonly params: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, string>>;
  readonly body: unknown;
}

export interface Route {
  /** Unique; the operation's name for generated clients. */
  readonly name: string;
  readonly method: string;
  /** `/api/threads/{threadId}`. */
  readonly path: string;
  readonly summary: string;
  readonly scope: Access;
  readonly params: z.ZodObject;
  readonly query: z.ZodObject;
  readonly body: z.ZodType | undefined;
  /** The body is lines and has no bound of its own: the handler reads it. Absent: JSON, as `body` says. */
  readonly takes?: "lines";
  /** Some answers are sent by the handler itself. */
  readonly answer: z.ZodType | Sent;
  readonly status: number;
  run(raw: Raw, call: HttpCall): Promise<unknown>;
}

interface Given<Params, Query, Body> {
  readonly params: Params;
  readonly query: Query;
  readonly body: Body;
}

interface RouteSpec<
  P extends z.ZodObject,
  Q extends z.ZodObject,
  B extends z.ZodType,
  A extends z.ZodType,
> extends Pick<Route, "name" | "summary" | "scope" | "takes"> {
  /** `GET /api/threads/{threadId}`. */
  readonly on: `${Method} /${string}`;
  readonly params?: P;
  readonly query?: Q;
  readonly body?: B;
  readonly answer: A | Sent;
  readonly status?: number;
  handle(given: Given<z.output<P>, z.output<Q>, z.output<B>>, call: HttpCall): Promise<z.output<A>>;
}

const NOTHING = z.strictObject({});
type Nothing = typeof NOTHING;

export function route<
  P extends z.ZodObject = Nothing,
  Q extends z.ZodObject = Nothing,
  B extends z.ZodType = z.ZodUndefined,
  A extends z.ZodType = z.ZodType,
>(spec: RouteSpec<P, Q, B, A>): Route {
  const { on, params = NOTHING, query = NOTHING, body, status = 200, ...rest } = spec;
  const space = on.indexOf(" ");
  return {
    ...rest,
    method: on.slice(0, space),
    path: on.slice(space + 1),
    params,
    query,
    body,
    status,
    run(raw, call) {
      const given: unknown = {
        params: parseGiven(params, raw.params, "the path"),
        query: parseGiven(query, raw.query, "the query"),
        body: body === undefined ? undefined : parseGiven(body, raw.body, "the body"),
      };
      // Parsed by the very schemas the handler's types come from.
      return spec.handle(given as Given<z.output<P>, z.output<Q>, z.output<B>>, call);
    },
  };
}

/** Aborts when the client disconnects. */
export function whileAsked({ response }: Pick<HttpCall, "response">): AbortSignal {
  const gone = new AbortController();
  response.once("close", () => gone.abort());
  // It may have gone before, while its request was looked at.
  if (response.destroyed) gone.abort();
  return gone.signal;
}

/** Throws `usage.invalid`, which names the field and the one that was meant. */
export function parseGiven(schema: z.ZodType, value: unknown, where: string): unknown {
  const parsed = schema.safeParse(value, PLAIN);
  if (parsed.success) return parsed.data;
  const { issues } = parsed.error;
  const unknown = unknownField(schema, issues);
  if (unknown !== undefined)
    throw new HeddleError("usage.invalid", `${where} ${unknown.message}`, { details: { field: unknown.field } });
  const [issue] = issues;
  const field = issue?.path.join(".") ?? "";
  throw new HeddleError(
    "usage.invalid",
    `${where} is not valid${field === "" ? "" : ` at ${field}`}: ${issue?.message ?? ""}`,
    {
      details: { field },
    },
  );
}

/** A field that is not known explains more than that another one is missing: it is often the same, misspelt. */
function unknownField(
  schema: z.ZodType,
  issues: readonly z.core.$ZodIssue[],
  under: readonly PropertyKey[] = [],
): { readonly field: string; readonly message: string } | undefined {
  for (const issue of issues) {
    const path = [...under, ...issue.path];
    if (issue.code === "invalid_union") {
      const found = issue.errors.map((errors) => unknownField(schema, errors, path)).find((one) => one !== undefined);
      if (found !== undefined) return found;
    }
    if (issue.code !== "unrecognized_keys") continue;
    const [key = ""] = issue.keys;
    const at = path.length === 0 ? "" : ` at ${path.join(".")}`;
    const field = [...path, key].join(".");
    return { field, message: `has an unknown field "${key}"${at}${didYouMean(key, fieldsAt(schema, path))}` };
  }
  return undefined;
}

function fieldsAt(schema: unknown, path: readonly PropertyKey[]): readonly string[] {
  if (schema instanceof z.ZodUnion) return schema.options.flatMap((option) => fieldsAt(option, path));
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable || schema instanceof z.ZodDefault)
    return fieldsAt(schema.unwrap(), path);
  const [first, ...rest] = path;
  if (schema instanceof z.ZodArray) return fieldsAt(schema.element, rest);
  if (!(schema instanceof z.ZodObject)) return [];
  return first === undefined ? Object.keys(schema.shape) : fieldsAt(schema.shape[String(first)], rest);
}
