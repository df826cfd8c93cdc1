/** Where in a request the words of a case stand: what the model is given, as far as it is the same for every program. */

export interface Instructed {
  /** Each mark with its place, in order: `base` instructions, those of a `developer`, text of the `user`. */
  readonly marks: readonly string[];
  readonly verbosity?: unknown;
  readonly summary?: unknown;
  readonly tier?: unknown;
  readonly model?: unknown;
}

/** How long a model answers by default is its catalogue's business; what was asked for is compared. */
export function instructionsIn(body: unknown, marks: readonly string[], asks: string): Instructed {
  const { instructions, input, text, reasoning, service_tier: tier, model } = fields(body);
  const items = (Array.isArray(input) ? input : []).map(fields);
  const pieces = items.map(({ role, content }, index) => ({
    // Codex sends its base instructions as the first message.
    place: instructions === undefined && index === 0 && role === "developer" ? "base" : String(role),
    text: JSON.stringify(content) ?? "",
  }));
  const all = [{ place: "base", text: JSON.stringify(instructions ?? "") }, ...pieces];
  return {
    marks: all.flatMap(({ place, text: words }) => found(words, marks).map((mark) => `${mark} ${place}`)),
    ...(asks.includes("verbosity") ? { verbosity: fields(text)["verbosity"] } : {}),
    ...(asks.includes("summary") ? { summary: fields(reasoning)["summary"] } : {}),
    ...(/tier/i.test(asks) ? { tier } : {}),
    ...(asks.includes("step_model_switching") ? { model } : {}),
  };
}

function found(words: string, marks: readonly string[]): readonly string[] {
  return marks
    .flatMap((mark) =>
      words
        .split(mark)
        .slice(0, -1)
        .map((_, index) => ({ mark, at: place(words, mark, index) })),
    )
    .toSorted((one, other) => one.at - other.at)
    .map(({ mark }) => mark);
}

function place(words: string, mark: string, nth: number): number {
  return words.split(mark, nth + 1).join(mark).length;
}

function fields(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? { ...value } : {};
}
