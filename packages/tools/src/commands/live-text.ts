/**
 * Live output for clients. Decoded across chunk borders and bounded in rate: of a flood only a part is shown, with the
 * number of bytes left out.
 */
import { TextDecoder } from "node:util";
import { clockMs } from "@heddle/protocol";

const WINDOW_MS = 100;
/** 640 kB/s: more than a person or a terminal can follow. */
const WINDOW_BYTES = 64 * 1024;

export class LiveText {
  readonly #onText: (delta: string) => void;
  readonly #decoder = new TextDecoder("utf-8");
  #windowStart = 0;
  #shownInWindow = 0;
  #notShown = 0;

  constructor(onText: (delta: string) => void) {
    this.#onText = onText;
  }

  push(chunk: Buffer): void {
    const now = clockMs();
    if (now - this.#windowStart >= WINDOW_MS) {
      this.#windowStart = now;
      this.#shownInWindow = 0;
    }
    const room = WINDOW_BYTES - this.#shownInWindow;
    if (room <= 0) {
      this.#notShown += chunk.length;
      return;
    }
    const shown = chunk.subarray(0, room);
    this.#shownInWindow += shown.length;
    this.#emit(this.#gapMark() + this.#decoder.decode(shown, { stream: true }));
    this.#notShown += chunk.length - shown.length;
  }

  end(): void {
    this.#emit(this.#gapMark() + this.#decoder.decode());
  }

  #gapMark(): string {
    if (this.#notShown === 0) return "";
    const mark = `\n[... ${this.#notShown} bytes not shown live ...]\n`;
    this.#notShown = 0;
    // Half a character from before the gap is dropped.
    this.#decoder.decode();
    return mark;
  }

  #emit(text: string): void {
    if (text !== "") this.#onText(text);
  }
}
