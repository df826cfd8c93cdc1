/** Sends a sink one test, straight: it tells nobody anything that a restart would have to repeat. */
import type { SendResult, Sink } from "./sink.ts";

const TEST_MS = 60_000;

export function testSink(sink: Sink): Promise<SendResult> {
  const now = Date.now();
  const payload = {
    schema_version: "1.0",
    event: "NOTIFY_TEST",
    task_id: "task_test",
    task_name: "Heddle",
    timestamp: now / 1000,
    timestamp_iso: new Date(now).toISOString(),
    data: { summary: "This is a test. Notifications arrive." },
  };
  const notification = { id: `ntf_test-${now.toString(16)}`, event: "NOTIFY_TEST", payload };
  return sink.send(notification, { signal: AbortSignal.timeout(TEST_MS) }).catch((error: unknown) => ({
    kind: "retry" as const,
    message: error instanceof Error ? error.message : String(error),
  }));
}
