/**
 * Plans in the text of a model in plan mode. A line `<proposed_plan>` begins one, `</proposed_plan>` or the end of the
 * text ends it; inside a line they are plain text. Pure, and independent of how the text is cut.
 */

/** `begin`: what follows as `plan` is another plan. */
export type PlanPiece =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "begin" }
  | { readonly kind: "plan"; readonly text: string };

const OPENING = "<proposed_plan>";
const CLOSING = "</proposed_plan>";
/** A longer line is not a tag, however much of it is blank. */
const MAX_TAG_LINE_CHARS = 200;

export class PlanSplitter {
  /** The line so far, while it may still become a tag. */
  #held = "";
  /** The rest of the line belongs to text that was passed on. */
  #isInLine = false;
  #isInPlan = false;

  push(text: string): readonly PlanPiece[] {
    return (text.match(/[^\n]*\n|[^\n]+$/g) ?? []).flatMap((part) => this.#take(part));
  }

  end(): readonly PlanPiece[] {
    const line = this.#held;
    this.#held = "";
    return line === "" ? [] : this.#isTag(line) ? this.#cross() : [this.#said(line)];
  }

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
    return { kind: this.#isInPlan ? "plan" : "text", text };
  }
}
