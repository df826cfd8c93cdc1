/** From what is known of a run to the one document that says how it ended. */
import { usageInSnakeCase, canonical, isRetryable, reasonOf, type RunFinished, type RunResult } from "@heddle/protocol";
import type { RunNotes } from "./run-notes.ts";
import { sha256 } from "./report.ts";

export type RunFacts = ReturnType<RunNotes["facts"]> & { readonly exitCode: number };

export function runResult(facts: RunFacts): RunResult {
  const { summary } = facts;
  const end = endOf(facts);
  return {
    type: "heddle.run.result",
    version: 1,
    heddle_version: facts.heddleVersion,
    run_id: facts.runId,
    ...end,
    exit_code: facts.exitCode,
    retryable: isRetryable(end.reason),
    response: summary.response ?? null,
    is_response_final: summary.response !== undefined && summary.terminal?.status === "completed",
    started_at: new Date(facts.startedAt).toISOString(),
    duration_ms: Math.round(facts.durationMs),
    num_turns: summary.requests,
    permission_denials: summary.denials.map(({ tool, callId, code, message }) => ({
      tool,
      call_id: callId,
      code,
      message,
    })),
    notices: [...summary.notices],
    thread_id: facts.threadId ?? null,
    turn_id: facts.turnId ?? null,
    attempts: facts.attempts,
    provider: summary.provider ?? null,
    model: summary.model ?? null,
    sandbox: summary.sandboxLevel ?? null,
    usage: usageInSnakeCase(summary.usage),
    thread_usage: facts.threadUsage === undefined ? null : usageInSnakeCase(facts.threadUsage),
    cost: { usd: summary.costUsd ?? null },
    artifact_root: facts.artifactRoot ?? null,
    paths: { ...facts.paths },
    structured_result: structured(facts),
    git: facts.git,
    manifest: facts.manifest ?? null,
  };
}

export function runFinished(result: RunResult): RunFinished {
  const { status, exit_code, run_id, thread_id, reason, retryable } = result;
  const known = { type: "heddle.run.finished", status, exit_code, run_id, thread_id } as const;
  return { ...known, ...(reason === undefined ? {} : { reason }), retryable };
}

function endOf({ failure, summary, exitCode }: RunFacts): Pick<RunResult, "status" | "reason" | "message" | "details"> {
  const { terminal } = summary;
  const known = failure ?? terminal?.failure;
  if (known === undefined) {
    if (exitCode === 0) return { status: "completed" };
    if (terminal === undefined || terminal.status !== "interrupted") {
      return { status: "failed", reason: "internal", message: `the run ended with code ${exitCode}` };
    }
    // Stopped without a reason.
    return { status: "cancelled", reason: "turn.interrupted", message: "the turn was interrupted" };
  }
  const { code, message, details } = known;
  return {
    status: statusOf(code),
    reason: code,
    message,
    ...(details === undefined || Object.keys(details).length === 0 ? {} : { details: { ...details } }),
  };
}

export function statusOf(code: string | undefined): RunResult["status"] {
  if (code === undefined) return "completed";
  return code === "turn.interrupted" ? "cancelled" : "failed";
}

/** Whether the turn kept to its schema is the turn's own judgement; here its answer is only taken apart. */
function structured({ outputSchema, summary, failure }: RunFacts): RunResult["structured_result"] {
  if (outputSchema === undefined || summary.terminal === undefined) return null;
  const schemaDigest = sha256(canonical(outputSchema));
  const broken = failure ?? summary.terminal.failure;
  if (broken !== undefined) return { status: "invalid", error: broken.message, schema_digest: schemaDigest };
  try {
    return { status: "valid", value: JSON.parse(summary.response ?? ""), schema_digest: schemaDigest };
  } catch (error) {
    const why = reasonOf(error);
    return { status: "invalid", error: why, schema_digest: schemaDigest };
  }
}
