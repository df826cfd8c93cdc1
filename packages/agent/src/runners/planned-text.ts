/**
 * One text of a model in plan mode, as items: a proposed plan, and a message around it. White space alone makes no
 * message.
 */
import { newItemId, type Item, type ItemOf } from "@heddle/protocol";
import type { TurnIo } from "./runner.ts";
import { PlanSplitter, type PlanPiece } from "./proposed-plan.ts";

export class PlannedText {
  readonly #turnId: string;
  readonly #io: Pick<TurnIo, "record" | "stream">;
  readonly #splitter = new PlanSplitter();
  readonly #plans: ItemOf<"proposedPlan">[] = [];
  #message: ItemOf<"agentMessage"> | undefined;
  #text = "";
  #chars = 0;

  constructor(turnId: string, io: Pick<TurnIo, "record" | "stream">) {
    this.#turnId = turnId;
    this.#io = io;
  }

  async say(delta: string): Promise<void> {
    this.#chars += delta.length;
    await this.#tell(this.#splitter.push(delta));
  }

  /** The whole text has come, streamed or not. */
  async complete(text: string): Promise<void> {
    await this.say(text.slice(this.#chars));
    await this.#tell(this.#splitter.end());
    const message = this.#message === undefined ? [] : [{ ...this.#message, text: this.#text }];
    const plans = this.#plans.map((plan) => ({ ...plan, status: "completed" as const }));
    const ended = [...plans, ...message].map((item) => ({ type: "item.completed", v: 1, ...this.#of(item) }) as const);
    await this.#io.record(ended);
  }

  async #tell(pieces: readonly PlanPiece[]): Promise<void> {
    for (const piece of pieces) {
      if (piece.kind === "begin") await this.#begin();
      else if (piece.kind === "plan") this.#grow(piece.text);
      else await this.#speak(piece.text);
    }
  }

  async #begin(): Promise<void> {
    const plan = { type: "proposedPlan", id: newItemId(), status: "inProgress", text: "" } as const;
    this.#plans.push(plan);
    await this.#start(plan);
  }

  #grow(delta: string): void {
    const plan = this.#plans.pop();
    if (plan === undefined) return;
    this.#plans.push({ ...plan, text: plan.text + delta });
    this.#io.stream({ itemId: plan.id, channel: "text", delta });
  }

  async #speak(delta: string): Promise<void> {
    this.#text += delta;
    if (this.#text.trim() === "") return;
    const isFirst = this.#message === undefined;
    this.#message ??= { type: "agentMessage", id: newItemId(), text: "" };
    if (isFirst) await this.#start(this.#message);
    this.#io.stream({ itemId: this.#message.id, channel: "text", delta: isFirst ? this.#text : delta });
  }

  async #start(item: Item): Promise<void> {
    await this.#io.record([{ type: "item.started", v: 1, ...this.#of(item) }]);
  }

  #of(item: Item): { readonly turnId: string; readonly item: Item } {
    return { turnId: this.#turnId, item };
  }
}
