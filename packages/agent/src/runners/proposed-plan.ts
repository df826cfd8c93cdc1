/**
 * Plans in what a model says while it plans. A line that is nothing but `<proposed_plan>` begins one, `</proposed_plan>` ends
 * it, and so does the end of the text; inside a line they are words like others. Pure, and the same wherever the text is cut.
 */

/** `begin`: what follows as `plan` is another plan. */
export type PlanPiece =
  | { readonly kind: "words"; readonly text: string }
  | { readonly kind: "begin" }
  | { readonly kind: "plan"; readonly text: string };

const OPENING = "<proposed_plan>";
const CLOSING = "</proposed_plan>";
/** A longer line is none of them, however much of it is blank. */
const MAX_TAG_LINE_CHARS = 200;

export class PlanSplitter {
  /** The line so far, while it may yet turn out to be a tag. */
  #held = "";
  /** What comes up to the end of the line belongs to words that were passed on. */
  #isInLine = false;
  #isInPlan = false;

  push(text: string): readonly PlanPiece[] {
    return (text.match(/[^\n]*\n|[^\n]+$/g) ?? []).flatMap((part) => this.#take(part));
  }

  /** Nothing more comes. */
  end(): readonly PlanPiece[] {
    const line = this.#held;
    this.#held = "";
    return line === "" ? [] : this.#isTag(line) ? this.#cross() : [this.#said(line)];
  }

  /** A line, or a part of one. */
  #take(part: string): readonly PlanPiece[] {
    const isWhole = part.endsWith("\n");
    const line = this.#held + part;
    const mayBeTag = !this.#isInLine && (this.#isTag(line) || (!isWhole && this.#isBeginning(line)));
    this.#isInLine = !isWhole && !mayBeTag;
    this.#held = mayBeTag && !isWhole ? line : "";
    if (!mayBeTag) return [this.#said(line)];
    return isWhole ? this.#cross() : [];
  }

  #isTag(line: string): boolean {
    return line.length <= MAX_TAG_LINE_CHARS && line.trim() === this.#tag;
  }

  #isBeginning(line: string): boolean {
    return line.length <= MAX_TAG_LINE_CHARS && this.#tag.startsWith(line.trimStart());
  }

  get #tag(): string {
    return this.#isInPlan ? CLOSING : OPENING;
  }

  #cross(): readonly PlanPiece[] {
    this.#isInPlan = !this.#isInPlan;
    return this.#isInPlan ? [{ kind: "begin" }] : [];
  }

  #said(text: string): PlanPiece {
    return { kind: this.#isInPlan ? "plan" : "words", text };
  }
}
