/** What each source of instructions contributes to what the model is told, with its size. */
import type { ClientContext, TurnSettings } from "@heddle/protocol";

export interface ToldPart {
  readonly source: string;
  readonly bytes: number;
}

/** What owner and client said for a turn; guides are told apart. */
export function toldParts(
  settings: Pick<TurnSettings, "baseInstructions" | "developerInstructions" | "modeInstructions">,
  context: readonly ClientContext[] = [],
): readonly ToldPart[] {
  const { baseInstructions, developerInstructions, modeInstructions } = settings;
  return [
    ...part("base instructions", baseInstructions),
    ...part("developer instructions", developerInstructions),
    ...part("instructions of the mode", modeInstructions),
    ...context.flatMap(({ name, kind, text }) => part(`${kind} context ${JSON.stringify(name)}`, text)),
  ];
}

export function part(source: string, text: string | undefined): readonly ToldPart[] {
  return text === undefined ? [] : [{ source, bytes: Buffer.byteLength(text) }];
}

export function toldText(parts: readonly ToldPart[]): string {
  return parts.map(({ source, bytes }) => `${source} ${bytes} bytes`).join(", ");
}
