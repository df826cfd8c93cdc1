/**
 * Collects what a model says into events and parts, the same for every wire. It keeps two promises the wires cannot:
 * call ids are unique within an answer, and no more than 32 calls come out of one.
 */
import { newCallId, NO_USAGE, type ModelOutputPart, type ModelToolCall, type Usage } from "@heddle/protocol";
import type { ModelEvent, StopReason } from "./stream.ts";

/** Nobody can follow more at once; a model that asks for more is told in its own answer that the rest was left out. */
const MAX_PARALLEL_CALLS = 32;

export interface Answered {
  readonly type: "answered";
  readonly output: readonly ModelOutputPart[];
  readonly stopReason: StopReason;
  readonly explanation?: string;
  readonly usage: Usage;
  readonly isUsageKnown: boolean;
  readonly skipped?: Skipped;
}

/** Events that could not be read, of an answer that is whole all the same. */
export interface Skipped {
  readonly events: number;
  /** Of the first of them, safe to show. */
  readonly firstBytes: string;
}

export type AnswerEvent = Extract<ModelEvent, { type: "text.delta" | "reasoning.delta" | "part" }> | Answered;

export interface Ending {
  readonly stopReason: Exclude<StopReason, "toolCalls">;
  /** Of a refusal: why, in the provider's words. */
  readonly explanation?: string | undefined;
  readonly usage: Usage | undefined;
  readonly skipped?: Skipped | undefined;
}

/** Told to whoever can use the time, at each attempt of a request. Nothing depends on it. */
export interface RequestProgress {
  /** The whole request has left; the answer takes a while. */
  sent(): void;
  /** Once, at the first sign that the answer calls a tool; the call itself may take a while to be said. */
  calling(): void;
}

export class Answer {
  #events: AnswerEvent[] = [];
  readonly #parts = new Map<number, ModelOutputPart>();
  /** Indexes that are done with, also those of calls that were left out. */
  readonly #closed = new Set<number>();
  readonly #texts = new Map<number, string>();
  readonly #calls = new Map<string, ModelToolCall>();
  readonly #progress: RequestProgress | undefined;
  #hasCall = false;
  #droppedCalls = 0;
  #isFinished = false;
  /** The model has said why it stopped; what may still come (usage, an end mark) is not needed. */
  isSettled = false;

  constructor(progress?: RequestProgress) {
    this.#progress = progress;
  }

  get isFinished(): boolean {
    return this.#isFinished;
  }

  /** What happened since the last call. */
  take(): readonly AnswerEvent[] {
    const events = this.#events;
    this.#events = [];
    return events;
  }

  text(index: number, delta: string): void {
    if (delta === "") return;
    this.#texts.set(index, (this.#texts.get(index) ?? "") + delta);
    this.#events.push({ type: "text.delta", index, delta });
  }

  /** The text streamed so far at an index. */
  textAt(index: number): string {
    return this.#texts.get(index) ?? "";
  }

  reasoning(index: number, delta: string, place: { channel: "summary" | "text"; section: number }): void {
    if (delta === "") return;
    this.#events.push({ type: "reasoning.delta", index, channel: place.channel, section: place.section, delta });
  }

  callBegan(): void {
    if (this.#hasCall) return;
    this.#hasCall = true;
    this.#progress?.calling();
  }

  part(index: number, part: ModelOutputPart): void {
    if (this.#closed.has(index)) return;
    if (part.kind === "toolCall") this.callBegan();
    this.#closed.add(index);
    if (part.kind === "text") this.#completeText(index, part.text);
    const whole = part.kind === "toolCall" ? this.#admitCall(part) : this.#withStreamedText(index, part);
    if (whole === undefined) return;
    this.#parts.set(index, whole);
    this.#events.push({ type: "part", index, part: whole });
  }

  isClosed(index: number): boolean {
    return this.#closed.has(index);
  }

  /** How many parts are whole. */
  get closedCount(): number {
    return this.#closed.size;
  }

  finish({ stopReason, explanation = "", usage, skipped }: Ending): void {
    if (this.#isFinished) return;
    this.#markDroppedCalls();
    const output = [...this.#parts].sort(([a], [b]) => a - b).map(([, part]) => part);
    const hasCalls = output.some((part) => part.kind === "toolCall");
    this.#isFinished = true;
    this.#events.push({
      type: "answered",
      output,
      stopReason: stopReason === "end" && hasCalls ? "toolCalls" : stopReason,
      ...(explanation.trim() === "" ? {} : { explanation: explanation.trim() }),
      usage: usage ?? NO_USAGE,
      isUsageKnown: usage !== undefined,
      ...(skipped === undefined ? {} : { skipped }),
    });
  }

  /** Some servers send the whole text only at the end; what was not streamed yet is streamed now. */
  #completeText(index: number, whole: string): void {
    const seen = this.textAt(index);
    if (whole.length > seen.length && whole.startsWith(seen)) this.text(index, whole.slice(seen.length));
  }

  /** Readers have already shown the deltas, so the part says what they said. */
  #withStreamedText(index: number, part: ModelOutputPart): ModelOutputPart {
    if (part.kind !== "text" || part.text === this.textAt(index)) return part;
    return { ...part, text: this.textAt(index) };
  }

  #admitCall(call: ModelToolCall): ModelToolCall | undefined {
    const named = call.callId === "" ? { ...call, callId: newCallId() } : call;
    const twin = this.#calls.get(named.callId);
    if (twin !== undefined && twin.name === named.name && twin.input === named.input) return undefined;
    if (this.#calls.size >= MAX_PARALLEL_CALLS) {
      this.#droppedCalls += 1;
      return undefined;
    }
    const admitted = twin === undefined ? named : { ...named, callId: this.#freeId(named.callId) };
    this.#calls.set(admitted.callId, admitted);
    return admitted;
  }

  #freeId(taken: string): string {
    let number = 2;
    while (this.#calls.has(`${taken}_${number}`)) number += 1;
    return `${taken}_${number}`;
  }

  #markDroppedCalls(): void {
    if (this.#droppedCalls === 0) return;
    const index = Math.max(-1, ...this.#closed, ...this.#texts.keys()) + 1;
    const mark = `[${this.#droppedCalls} more tool calls were left out: at most ${MAX_PARALLEL_CALLS} run from one answer.]`;
    this.part(index, { kind: "text", text: mark });
  }
}
