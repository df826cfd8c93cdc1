/**
 * `--json`: one JSON object a line on stdout, in the dialect of `codex exec`. Notices go to stderr. With deltas, running
 * text and output are shown whole a few times a second: what arrives in between is part of the next line.
 */
import { codexExecDialect, type CodexExecLine } from "@heddle/dialects/codex-exec";
import type { ItemDelta, Usage } from "@heddle/protocol";
import type { Output } from "./output.ts";
import type { Printer } from "./output.ts";
import { behind } from "./screen.ts";
import { skippedText } from "./style.ts";

export interface JsonlOptions {
  readonly out: Output;
  readonly err: Output;
  readonly hasDeltas?: boolean;
  /** What a line is printed as; undefined: not at all. */
  readonly shape?: (line: CodexExecLine) => unknown;
  readonly usageBefore?: Usage;
}

export function createJsonlPrinter(options: JsonlOptions): Printer {
  const { out, err, hasDeltas = false, shape = (line) => line } = options;
  const print = (line: CodexExecLine): string => {
    const shaped = shape(line);
    return shaped === undefined ? "" : toLine(shaped);
  };
  const dialect = codexExecDialect({
    hasDeltas,
    ...(options.usageBefore === undefined ? {} : { usageBefore: options.usageBefore }),
  });
  const running = createRunningText((itemId, soFar) => {
    // What cannot be written now is in the item's next line, and whole in its last.
    if (out.isBehind) return;
    const line = dialect.progress(itemId, soFar);
    if (line !== undefined) out.write(print(line)).catch(() => undefined);
  });
  const notice = (text: string): Promise<void> => err.write(`heddle: ${behind(text)}\n`);
  return {
    async event(event) {
      const { body } = event;
      if (body.type === "item.completed") running.forget(body.item.id);
      const lines = dialect.event(event).map(print);
      if (lines.length > 0) await out.write(lines.join(""));
      if (body.type === "model.responded" && body.skipped !== undefined) await notice(skippedText(body.skipped));
    },
    delta: (delta) => {
      if (hasDeltas) running.add(delta);
    },
    notice,
  };
}

/** How often a growing item is shown; more would only repeat its beginning. */
const UPDATE_MS = 50;
/** Beyond this an item is shown again only when it is complete. */
const MAX_RUNNING_CHARS = 128 * 1024;

interface RunningText {
  add(delta: ItemDelta): void;
  forget(itemId: string): void;
}

function createRunningText(show: (itemId: string, soFar: string) => void): RunningText {
  const texts = new Map<string, { text: string; isNew: boolean; isFull: boolean }>();
  let timer: NodeJS.Timeout | undefined;
  const tell = (): void => {
    timer = undefined;
    for (const [itemId, state] of texts) {
      if (state.isNew) show(itemId, state.text);
      state.isNew = false;
    }
  };
  return {
    add({ itemId, delta }) {
      const state = texts.get(itemId) ?? { text: "", isNew: false, isFull: false };
      texts.set(itemId, state);
      // Nothing after a gap: what is shown is always a prefix of the whole.
      state.isFull ||= state.text.length + delta.length > MAX_RUNNING_CHARS;
      if (state.isFull) return;
      state.text += delta;
      state.isNew = true;
      timer ??= setTimeout(tell, UPDATE_MS).unref();
    },
    forget(itemId) {
      texts.delete(itemId);
    },
  };
}

/**
 * Characters that some line readers take for the end of a line (U+2028, U+2029), and those that could steer a terminal,
 * are written as JSON escapes; the value stays the same.
 */
const RISKY = /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;

export function toLine(value: unknown): string {
  const escaped = JSON.stringify(value).replace(
    RISKY,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  return `${escaped}\n`;
}
