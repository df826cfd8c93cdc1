/** A notifier on a test store. */
import { readNames } from "../src/notify/names.ts";
import { openNotifier, type NotifierOptions } from "../src/notify/open-notifier.ts";
import type { Sink } from "../src/notify/sink.ts";
import { webhookSink, type WebhookOptions } from "../src/notify/sinks/webhook.ts";
import type { TestStore } from "./test-store.ts";

export function hook(url: URL, options: Partial<WebhookOptions> = {}): Sink {
  return webhookSink({ name: "hook", kind: "webhook", url, events: readNames("*"), ...options });
}

export function open(
  store: TestStore,
  sinks: readonly Sink[],
  options: Pick<NotifierOptions, "firstWaitMs" | "now"> = {},
): Promise<AsyncDisposable> {
  return openNotifier({ journal: store.journal, home: store.home, sinks, log: () => undefined, ...options });
}
