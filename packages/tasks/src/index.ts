export { openTasks, type NewTask, type OpenTasks, type Tasks, type TasksOptions } from "./open-tasks.ts";
export { openHarness, type Harness, type HarnessOptions } from "./queue/harness.ts";
export { proposePlan, type Plan } from "./spec/plan.ts";
export { requireAllowedWorkspace } from "./spec/allowed-roots.ts";
export { parseDuration } from "./spec/durations.ts";
export { readFrontMatter, type FrontMatter } from "./spec/front-matter.ts";
export { openLoomSettings, type OpenLoomSettings } from "./spec/openloom.ts";
export { problemLine, SpecError, type Problem } from "./spec/positions.ts";
export { readSpecFiles, type FoundSpec, type FoundSpecs } from "./spec/read-files.ts";
export { hopProblem } from "./spec/check-hops.ts";
export { readSpec, type ReadSpecs, type SpecOptions, type SpecText } from "./spec/read-spec.ts";
export { PLACEHOLDER } from "./spec/rules.ts";
export { taskSchema } from "./spec/json-schema.ts";
export { runChecks } from "./attempt/baseline.ts";
export { resumeWithMore } from "./attempt/budget.ts";
export type { CheckOptions } from "./checks/check.ts";
export { openInbox, type InboxOptions } from "./inbox/open-inbox.ts";
export { readOrderFile } from "./inbox/order-file.ts";
export { readOrder, takeOrder, type Order, type OrderDoor, type TakenOrder } from "./inbox/take-order.ts";
export {
  takeWebhook,
  type InboundWebhook,
  type WebhookDoor,
  type WebhookOutcome,
} from "./inbox/webhooks/take-webhook.ts";
export type { WebhookSource } from "./inbox/webhooks/source.ts";
export { FOR_PEOPLE, NOTIFICATION_NAMES, readNames, splitNames, type NotificationName } from "./notify/names.ts";
export { openNotifier, type NotifierOptions } from "./notify/open-notifier.ts";
export { redeliver, testSink, type Sink } from "./notify/sink.ts";
export { desktopSink } from "./notify/sinks/desktop.ts";
export { fileSink } from "./notify/sinks/file.ts";
export { webhookSink, type WebhookKind } from "./notify/sinks/webhook.ts";
export {
  benchmarkSpecs,
  isBenchmark,
  orderBenchmark,
  reportBenchmark,
  type BenchmarkReport,
} from "./contest/benchmark.ts";
export { orderOf, pickOf } from "./contest/decide.ts";
export { contestRows } from "./contest/standings.ts";
export type { Collected } from "./owner/collect-folders.ts";
export { collectWorktrees } from "./worktree/collect-worktrees.ts";
export { undeliverable } from "./judge/protected.ts";
export { refuseChangedSpec, type SpecStore } from "./owner/changed-spec.ts";
export { collectRooms } from "./owner/collect-rooms.ts";
export type { DiffFile, DiffOptions, WorkDiff } from "./owner/diff-work.ts";
export { finishPutting } from "./owner/finish-putting.ts";
export type { Undone, UndoOptions } from "./owner/undo.ts";
export type { Reverified } from "./owner/verify-again.ts";
export { writeBundle } from "./owner/bundle/write-bundle.ts";
export { verifyBundle, type BundleVerdict } from "./owner/bundle/verify-bundle.ts";
export { deliverLine, lacksDeliver, proposeDeliver } from "./spec/propose-deliver.ts";
export { ticketDispatch } from "./queue/dispatch-tickets.ts";
export { openTicketQueue, type TicketQueue, type TicketQueueOptions } from "./queue/ticket-queue.ts";
