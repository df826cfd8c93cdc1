/** Heddle's codes and zod's issues as `codex app-server` reports them. */
import type { z } from "zod";
import type { EventOf, Failure } from "@heddle/protocol";
import type { CodexErrorInfo, CodexTurnError } from "./shapes.ts";

const INFO: Readonly<Record<string, CodexErrorInfo>> = {
  "auth.missing": "unauthorized",
  "auth.rejected": "unauthorized",
  "model.unknown": "modelNotFound",
  "provider.unknown": "modelNotFound",
  "provider.context-exceeded": "contextWindowExceeded",
  "provider.rate-limited": "rateLimitExceeded",
  "provider.overloaded": "serverOverloaded",
  "provider.unreachable": { httpConnectionFailed: { httpStatusCode: null } },
  "provider.cut": { responseStreamDisconnected: { httpStatusCode: null } },
  "provider.stalled": { responseStreamDisconnected: { httpStatusCode: null } },
  "provider.rejected": "badRequest",
  "limit.reached": "sessionBudgetExceeded",
  "sandbox.failed": "sandboxError",
  "sandbox.unavailable": "sandboxError",
  internal: "internalServerError",
};

export function turnError({ code, message, details }: Failure): CodexTurnError {
  const isBroken = code === "provider.overloaded" && details?.["status"] === 500;
  return {
    message,
    codexErrorInfo: isBroken ? "internalServerError" : Object.hasOwn(INFO, code) ? (INFO[code] ?? "other") : "other",
    additionalDetails: null,
    misalignment: null,
    code,
  };
}

export function retryError(retry: EventOf<"model.retried">): CodexTurnError {
  const { cause, level, attempt, maxAttempts, round = attempt, maxRounds = maxAttempts } = retry;
  const [done, all] = level === "request" ? [attempt, maxAttempts] : [round, maxRounds];
  const error: CodexTurnError = {
    // The original counts retries, not requests: after one failed request of two it is at its first and last.
    message: `Reconnecting... ${done}/${Math.max(done, all - 1)}`,
    codexErrorInfo: { responseStreamDisconnected: { httpStatusCode: null } },
    additionalDetails: cause.message,
    misalignment: null,
    code: cause.code,
  };
  return error;
}

export function unknownVariant(word: string, expected: Iterable<string>): string {
  const names = [...expected].map((name) => `\`${name}\``);
  const which = names.length === 2 ? names.join(" or ") : `one of ${names.join(", ")}`;
  return `unknown variant \`${word}\`, expected ${which}`;
}

type Issue = z.core.$ZodIssue;

/** The first finding. The schema must have been asked with `reportInput`, or values are not named. */
export function invalidParams(issues: readonly Issue[]): string {
  const issue = deepest(issues[0]);
  if (issue === undefined) return "invalid value";
  const field = String(issue.path.at(-1) ?? "params");
  if (issue.code === "invalid_type") {
    if (issue.input === undefined) return `missing field \`${field}\``;
    const expected = field === "limit" ? "u32" : (EXPECTED[issue.expected] ?? issue.expected);
    return `invalid type: ${named(issue.input)}, expected ${expected}`;
  }
  if (issue.code === "invalid_value") {
    if (issue.input === undefined) return `missing field \`${field}\``;
    if (typeof issue.input !== "string") return `invalid type: ${named(issue.input)}, expected a string`;
    return unknownVariant(issue.input, issue.values.map(String));
  }
  if (issue.code === "unrecognized_keys") return `unknown field \`${issue.keys[0] ?? ""}\``;
  if (issue.code === "custom" && issue.input === undefined) return `missing field \`${field}\``;
  if (issue.code === "invalid_union") {
    const tag = tagOf(issue.input);
    if (tag === undefined) return "missing field `type`";
    if (typeof tag !== "string") return `invalid type: ${named(tag)}, expected a string`;
    return "options" in issue && Array.isArray(issue.options)
      ? unknownVariant(tag, issue.options.map(String))
      : `unknown variant \`${tag}\``;
  }
  const isSize = issue.code === "too_small" || issue.code === "too_big";
  if (isSize && typeof issue.input === "number") return `invalid value: ${named(issue.input)}, expected u32`;
  if (issue.code === "too_big") return `invalid value for \`${field}\`: it is longer than ${issue.maximum}`;
  if (issue.code === "too_small") return `invalid value for \`${field}\`: it is shorter than ${issue.minimum}`;
  return `invalid value for \`${field}\`: ${issue.message}`;
}

/** Of several forms that do not fit, the issue of the deepest match is reported. */
function deepest(issue: Issue | undefined): Issue | undefined {
  if (issue?.code !== "invalid_union") return issue;
  const inner = issue.errors.map((errors) => deepest(errors[0])).filter((found) => found !== undefined);
  const ofString = typeof issue.input === "string" ? inner.find(({ code }) => code === "invalid_value") : undefined;
  return ofString ?? inner.toSorted((a, b) => b.path.length - a.path.length)[0] ?? issue;
}

function tagOf(input: unknown): unknown {
  return typeof input === "object" && input !== null && "type" in input ? input.type : undefined;
}

const EXPECTED: Readonly<Record<string, string>> = {
  string: "a string",
  boolean: "a boolean",
  array: "a sequence",
  object: "a map",
  record: "a map",
  number: "a number",
  int: "u32",
};

function named(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "sequence";
  switch (typeof value) {
    case "number":
      return Number.isInteger(value) ? `integer \`${value}\`` : `floating point \`${value}\``;
    case "boolean":
      return `boolean \`${String(value)}\``;
    case "string":
      return `string ${JSON.stringify(value)}`;
    default:
      return "map";
  }
}
