/** A run as a file shows it: what is stored of it, read once and cut to a size that can be sent. */
import type { z } from "zod";
import type { ItemEntry, StreamedEvent, Thread, ThreadDiff, Turn } from "./http-shapes.ts";
import type { Task, TaskAttempt } from "./http-task-shapes.ts";
import type { VerdictAnswer } from "./http-evidence-shapes.ts";
import type { TaskDiff } from "./http-work-shapes.ts";

export interface StoredRun {
  /** Of the Heddle that read it. */
  readonly version: string;
  readonly at: number;
  readonly task: Task | undefined;
  readonly thread: Thread | undefined;
  readonly attempts: readonly TaskAttempt[];
  /** Newest first. */
  readonly turns: readonly Turn[];
  readonly items: readonly StoredItem[];
  readonly log: readonly StreamedEvent[];
  readonly changes: TaskDiff | ThreadDiff | undefined;
  readonly streams: readonly StoredStream[];
  readonly verdict: (Pick<VerdictAnswer, "result" | "at" | "upTo"> & { readonly reason?: string }) | undefined;
  readonly leftOut: LeftOut;
}

export interface StoredItem extends z.output<typeof ItemEntry> {
  /** Of the event that says how it ended. */
  readonly hash?: string;
}

export interface StoredStream {
  readonly stream: string;
  readonly events: number;
  /** Hash of the last event, which stands for all before it. */
  readonly head: string | undefined;
}

/** What the file does not hold, because it would be too large; texts are marked where they are cut, too. */
export interface LeftOut {
  readonly steps: number;
  readonly turns: number;
  readonly entries: number;
  readonly bytes: number;
}
