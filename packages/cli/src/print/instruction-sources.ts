/** What each source of instructions contributes to a request, with its size. */
import type { ClientContext, TurnSettings } from "@heddle/protocol";

export interface InstructionSource {
  readonly source: string;
  readonly bytes: number;
}

/** Those of owner and client for a turn; guides are listed with `context.loaded`. */
export function instructionSources(
  settings: Pick<TurnSettings, "baseInstructions" | "developerInstructions" | "modeInstructions">,
  context: readonly ClientContext[] = [],
): readonly InstructionSource[] {
  const { baseInstructions, developerInstructions, modeInstructions } = settings;
  return [
    ...sourceOf("base instructions", baseInstructions),
    ...sourceOf("developer instructions", developerInstructions),
    ...sourceOf("instructions of the mode", modeInstructions),
    ...context.flatMap(({ name, kind, text }) => sourceOf(`${kind} context ${JSON.stringify(name)}`, text)),
  ];
}

export function sourceOf(source: string, text: string | undefined): readonly InstructionSource[] {
  return text === undefined ? [] : [{ source, bytes: Buffer.byteLength(text) }];
}

export function sourcesText(parts: readonly InstructionSource[]): string {
  return parts.map(({ source, bytes }) => `${source} ${bytes} bytes`).join(", ");
}
