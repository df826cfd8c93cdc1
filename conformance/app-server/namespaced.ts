/**
 * Codex offers the tools of an MCP server under a namespace, and a call names it; the model server of the tests knows no
 * namespaces. A script calls `mcp__server__tool`, and Codex is answered with the same call in its own form.
 */
import type { Fault, RecordedRequest } from "@heddle/models/testing";
import type { Step } from "../exec-case.ts";
import { responsesBody } from "./responses-body.ts";

export function namespacedAnswer({ answers }: RecordedRequest, step: Step | undefined): Fault | undefined {
  const [call] = step?.calls ?? [];
  const [, server, name] = /^mcp__(.+)__(.+)$/.exec(call?.tool ?? "") ?? [];
  if (call === undefined || server === undefined) return undefined;
  const [id, call_id] = [`fc_${answers + 1}_0`, `call_${answers + 1}_1`];
  const words = typeof call.args === "string" ? call.args : JSON.stringify(call.args);
  const namespace = `mcp__${server}`;
  const item = { type: "function_call", id, call_id, namespace, name, arguments: words, status: "completed" };
  return { kind: "body", body: responsesBody(answers + 1, [item]) };
}
