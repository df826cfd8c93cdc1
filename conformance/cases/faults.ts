/** What goes wrong between the program and the model. */
import { command, human, json, MOCK_CONFIG, say, type ExecCase } from "../exec-case.ts";

const HELLO = [say("Hello.")];
const LONG = [say("A message that is long enough to be cut in the middle of its second piece.")];
const FAILS = { kind: "status", status: 500 } as const;
const REFUSED = (message: string): { error: { message: string; type: string } } => ({
  error: { message, type: "invalid_request_error" },
});

export const FAULT_CASES: readonly ExecCase[] = [
  { id: "status-500", about: "500 for ever", faults: { kind: "status", status: 500 }, runs: [json()] },
  {
    id: "status-500-human",
    about: "500 for ever, for people",
    faults: { kind: "status", status: 500 },
    runs: [human()],
  },
  {
    id: "status-500-once",
    about: "500 once, then an answer",
    faults: [{ kind: "status", status: 500 }],
    script: HELLO,
    runs: [json()],
  },
  {
    id: "status-500-twice",
    about: "500 twice, then an answer",
    faults: [FAILS, FAILS],
    script: HELLO,
    runs: [json()],
  },
  {
    id: "status-500-after-tool",
    about: "500 for ever after a command has run",
    faults: [undefined, ...Array.from({ length: 12 }, () => ({ kind: "status", status: 500 }) as const)],
    script: [command("echo hello"), say("Hello.")],
    runs: [json()],
  },
  {
    id: "status-500-budget",
    about: "500 for ever, with other numbers of retries",
    config: MOCK_CONFIG.replace("request_max_retries = 1", "request_max_retries = 2"),
    faults: { kind: "status", status: 500 },
    runs: [json()],
  },
  { id: "status-503", about: "503 for ever", faults: { kind: "status", status: 503 }, runs: [json()] },
  {
    id: "status-429",
    about: "429 without a time to wait",
    faults: { kind: "status", status: 429, body: { error: { message: "slow down", type: "rate_limit_error" } } },
    runs: [json()],
  },
  {
    id: "status-429-once",
    about: "429 with a time to wait, then an answer",
    faults: [
      {
        kind: "status",
        status: 429,
        headers: { "retry-after": "1" },
        body: { error: { message: "slow down", type: "rate_limit_error", code: "rate_limit_exceeded" } },
      },
    ],
    script: HELLO,
    runs: [json()],
  },
  {
    id: "usage-limit",
    about: "the plan's limit is reached",
    faults: {
      kind: "status",
      status: 429,
      body: { error: { type: "usage_limit_reached", message: "limit", plan_type: "plus", resets_at: 1_900_000_000 } },
    },
    runs: [json()],
  },
  {
    id: "status-401",
    about: "a key that is refused",
    faults: { kind: "status", status: 401, body: REFUSED("bad key") },
    runs: [json()],
  },
  {
    id: "status-403",
    about: "a key that may not",
    faults: { kind: "status", status: 403, body: REFUSED("forbidden") },
    runs: [json()],
  },
  {
    id: "status-400",
    about: "a request that is refused",
    faults: { kind: "status", status: 400, body: REFUSED("bad request") },
    runs: [json()],
  },
  {
    id: "status-400-human",
    about: "a request that is refused, for people",
    faults: { kind: "status", status: 400, body: REFUSED("bad request") },
    runs: [human()],
  },
  {
    id: "status-404",
    about: "a model nobody knows",
    faults: { kind: "status", status: 404, body: REFUSED("no such model") },
    runs: [json()],
  },
  {
    id: "context-exceeded",
    about: "the window is too small",
    faults: {
      kind: "body",
      body: `event: response.failed\ndata: ${JSON.stringify({
        type: "response.failed",
        response: {
          id: "resp_1",
          status: "failed",
          error: { code: "context_length_exceeded", message: "Your input exceeds the context window of this model." },
        },
      })}\n\n`,
    },
    runs: [json()],
  },
  {
    id: "response-failed",
    about: "the model reports a failure of its own",
    faults: {
      kind: "body",
      body: `event: response.failed\ndata: ${JSON.stringify({
        type: "response.failed",
        response: { id: "resp_1", status: "failed", error: { code: "server_error", message: "broken inside" } },
      })}\n\n`,
    },
    runs: [json()],
  },
  {
    id: "cut-once",
    about: "an answer cut off, then a whole one",
    faults: [{ kind: "cut", at: "mid-delta" }],
    script: LONG,
    runs: [json()],
  },
  {
    id: "cut-always",
    about: "every answer is cut off",
    faults: { kind: "cut", at: "mid-delta" },
    script: LONG,
    runs: [json()],
  },
  {
    id: "cut-after-headers",
    about: "an answer without a body",
    faults: { kind: "cut", at: "after-headers" },
    runs: [json()],
  },
  {
    id: "reset-always",
    about: "every connection is reset",
    faults: { kind: "reset", at: "mid-delta" },
    script: LONG,
    runs: [json()],
  },
  {
    id: "reset-before-headers",
    about: "every connection is reset before an answer begins",
    faults: { kind: "reset", at: "before-headers" },
    runs: [json()],
  },
  {
    id: "malformed",
    about: "a line that is not JSON in every answer",
    faults: { kind: "malformed" },
    script: LONG,
    runs: [json()],
  },
  {
    id: "not-a-stream",
    about: "a web page where a stream should be",
    faults: { kind: "body", body: "<html>hi</html>", contentType: "text/html" },
    runs: [json()],
  },
  {
    id: "unknown-events",
    about: "events nobody knows between the others",
    faults: { kind: "unknown-events" },
    script: LONG,
    runs: [json()],
  },
  {
    id: "no-end-mark",
    about: "an answer without its last event",
    faults: { kind: "no-end-mark" },
    script: HELLO,
    runs: [json()],
  },
  {
    id: "stalled",
    about: "an answer that stops, with a short idle time",
    config: `${MOCK_CONFIG}stream_idle_timeout_ms = 700\n`,
    faults: { kind: "stall", at: "mid-delta" },
    script: LONG,
    runs: [json()],
  },
  {
    id: "retries-none",
    about: "no retries allowed",
    config: MOCK_CONFIG.replaceAll("retries = 1", "retries = 0"),
    faults: { kind: "cut", at: "mid-delta" },
    script: LONG,
    runs: [json()],
  },
  {
    id: "retries-of-stream-alone",
    about: "no retries of streams, and as many of requests as without a word",
    config: MOCK_CONFIG.replace("request_max_retries = 1\n", "").replace(
      "stream_max_retries = 1",
      "stream_max_retries = 0",
    ),
    faults: [FAILS, FAILS],
    script: HELLO,
    runs: [json()],
  },
  {
    id: "retries-of-request-alone",
    about: "no retries of requests, and as many of streams as without a word",
    config: MOCK_CONFIG.replace("stream_max_retries = 1\n", "").replace(
      "request_max_retries = 1",
      "request_max_retries = 0",
    ),
    faults: [FAILS, FAILS],
    script: HELLO,
    runs: [json()],
  },
  {
    id: "unreachable",
    about: "nobody listens",
    config: MOCK_CONFIG.replace("{url}", "{dead}"),
    runs: [json()],
    deadlineMs: 8_000,
  },
];
