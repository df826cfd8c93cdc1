/**
 * Collects the output of a model into events and parts, for every wire. It keeps two promises that the wires cannot:
 * call ids are unique within an answer, and no more than 32 calls come out of one.
 */
import {
  defined,
  newCallId,
  NO_USAGE,
  type MessagePhase,
  type ModelOutputPart,
  type ModelToolCall,
  type Usage,
} from "@heddle/protocol";
import type { ModelEvent, StopReason } from "./stream.ts";

/** The answer itself tells a model that asks for more that the rest was left out. */
const MAX_PARALLEL_CALLS = 32;

export interface Answered extends Omit<Extract<ModelEvent, { type: "completed" }>, "type" | "costUsd"> {
  readonly type: "answered";
  readonly isUsageKnown: boolean;
}

/** Events that could not be read, of an answer that is complete without them. */
export interface Skipped {
  readonly events: number;
  /** Of the first of them, safe to show. */
  readonly firstBytes: string;
}

export type AnswerEvent = Extract<ModelEvent, { type: "text.delta" | "reasoning.delta" | "part" }> | Answered;

export interface Ending {
  readonly stopReason: Exclude<StopReason, "toolCalls">;
  /** Of a refusal: the reason that the provider gives. */
  readonly explanation?: string | undefined;
  readonly usage: Usage | undefined;
  readonly skipped?: Skipped | undefined;
  /** The indexes of the parts in their order, where the provider tells it at the end. */
  readonly order?: readonly number[] | undefined;
}

/** Called at each attempt of a request, for work that can be done meanwhile. Nothing depends on it. */
export interface RequestProgress {
  /** The whole request has been sent. */
  sent(): void;
  /** Once, at the first sign that the answer calls a tool. */
  calling(): void;
  /** Bytes of the answer have come, whatever they are. */
  received(): void;
}

export class Answer {
  #events: AnswerEvent[] = [];
  readonly #parts = new Map<number, ModelOutputPart>();
  /** Indexes of complete parts, and of calls that were left out. */
  readonly #closed = new Set<number>();
  readonly #texts = new Map<number, string>();
  readonly #calls = new Map<string, ModelToolCall>();
  readonly #progress: RequestProgress | undefined;
  #hasCall = false;
  #droppedCalls = 0;
  #isFinished = false;
  /** The reason to stop is known; what may still come (usage, an end mark) is not needed. */
  isSettled = false;

  constructor(progress?: RequestProgress) {
    this.#progress = progress;
  }

  get isFinished(): boolean {
    return this.#isFinished;
  }

  take(): readonly AnswerEvent[] {
    const events = this.#events;
    this.#events = [];
    return events;
  }

  text(index: number, delta: string, phase?: MessagePhase): void {
    if (delta === "") return;
    this.#texts.set(index, (this.#texts.get(index) ?? "") + delta);
    this.#events.push({ type: "text.delta", index, delta, ...defined({ phase }) });
  }

  textAt(index: number): string {
    return this.#texts.get(index) ?? "";
  }

  reasoning(
    index: number,
    delta: string,
    { channel, section }: { channel: "summary" | "text"; section: number },
  ): void {
    if (delta === "") return;
    this.#events.push({ type: "reasoning.delta", index, channel, section, delta });
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
    if (part.kind === "text") this.#completeText(index, part);
    const whole = part.kind === "toolCall" ? this.#admitCall(part) : this.#withStreamedText(index, part);
    if (whole === undefined) return;
    this.#parts.set(index, whole);
    this.#events.push({ type: "part", index, part: whole });
  }

  get closedCount(): number {
    return this.#closed.size;
  }

  finish({ stopReason, explanation = "", usage, skipped, order = [] }: Ending): void {
    if (this.#isFinished) return;
    this.#markDroppedCalls();
    const output = this.#inOrder(order);
    const hasCalls = output.some((part) => part.kind === "toolCall");
    this.#isFinished = true;
    this.#events.push({
      type: "answered",
      output,
      stopReason: stopReason === "end" && hasCalls ? "toolCalls" : stopReason,
      usage: usage ?? NO_USAGE,
      isUsageKnown: usage !== undefined,
      ...defined({ explanation: explanation.trim() || undefined, skipped }),
    });
  }

  #inOrder(order: readonly number[]): readonly ModelOutputPart[] {
    const ranks = new Map(order.map((index, rank) => [index, rank]));
    const isComplete = [...this.#parts.keys()].every((index) => ranks.has(index));
    const rankOf = (index: number): number => (isComplete ? (ranks.get(index) ?? index) : index);
    return [...this.#parts].sort(([a], [b]) => rankOf(a) - rankOf(b)).map(([, part]) => part);
  }

  /** Some servers send the whole text only at the end; the missing rest is streamed now. */
  #completeText(index: number, { text: whole, phase }: Extract<ModelOutputPart, { kind: "text" }>): void {
    const seen = this.textAt(index);
    if (whole.length > seen.length && whole.startsWith(seen)) this.text(index, whole.slice(seen.length), phase);
  }

  /** Readers have already shown the deltas, so the part has the same text. */
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
