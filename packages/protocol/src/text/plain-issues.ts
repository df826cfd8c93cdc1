/** What a schema finds wrong with a value, in plain English that follows the name of a field: "must be a whole number". */
import type { z } from "zod";

/** For `safeParse(value, PLAIN)` wherever a user reads what is wrong; a message of the schema itself comes first. */
export const PLAIN = { error: plainIssue };

function plainIssue(issue: z.core.$ZodRawIssue): string {
  switch (issue.code) {
    case "invalid_type":
      return issue.input === undefined ? "is missing" : `must be ${KINDS[issue.expected] ?? issue.expected}`;
    case "invalid_value":
      return `must be ${issue.values.length === 1 ? "" : "one of "}${issue.values.map(String).join(", ")}`;
    case "unrecognized_keys":
      return `has an unknown key "${issue.keys[0] ?? ""}"`;
    case "too_small":
      if (issue.origin === "string" && issue.minimum === 1) return "must not be empty";
      return bound(issue.origin, issue.inclusive === false ? "more than" : "at least", issue.minimum);
    case "too_big":
      return bound(issue.origin, issue.inclusive === false ? "less than" : "at most", issue.maximum);
    case "not_multiple_of":
      return `must be a multiple of ${issue.divisor}`;
    case "invalid_format":
      return issue.format === "url" ? "must be an http or https address" : "does not have the right form";
    default:
      return "does not have the right form";
  }
}

const KINDS: Readonly<Record<string, string>> = {
  string: "a string",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  array: "a list",
  object: "an object",
  record: "an object",
};

function bound(origin: string, than: string, limit: number | bigint): string {
  const unit = { string: "characters", array: "entries" }[origin];
  return unit === undefined ? `must be ${than} ${limit}` : `must have ${than} ${limit} ${unit}`;
}
