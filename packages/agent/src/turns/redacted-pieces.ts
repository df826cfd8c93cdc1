/**
 * Deltas as the model cut them: what the redactor held back is handed over in the pieces it came in, so that a client
 * counts and joins the same pieces, whether or not a word looked like the beginning of a secret for a moment.
 */
import type { StreamRedactor } from "@heddle/journal";

/** A longer piece is no word of a model but output, whose beginning does not wait for its end. */
const MAX_WHOLE_CHARS = 64;
/** More is held back only inside of a secret, of which no piece will be shown. */
const MAX_PIECES = 256;

export interface RedactedPieces {
  push(text: string): readonly string[];
  end(): readonly string[];
}

export function createRedactedPieces(redactor: StreamRedactor): RedactedPieces {
  /** What came and is not handed over yet. */
  let came: string[] = [];
  /** What of it may be shown. */
  let ready = "";

  function* cut(): Generator<string> {
    while (ready !== "") {
      const [piece = ""] = came;
      const isSame = piece !== "" && (piece.startsWith(ready) || ready.startsWith(piece));
      if (isSame && ready.length < piece.length && piece.length <= MAX_WHOLE_CHARS) return;
      // Where something was redacted, the ends of pieces no longer tell anything.
      const shown = isSame ? ready.slice(0, piece.length) : ready;
      if (!isSame) came = [];
      else if (shown.length === piece.length) came.shift();
      else came[0] = piece.slice(shown.length);
      ready = ready.slice(shown.length);
      yield shown;
    }
  }

  return {
    push(text) {
      if (came.length === MAX_PIECES) came = [];
      if (text !== "") came.push(text);
      ready += redactor.push(text);
      return [...cut()];
    },
    end() {
      ready += redactor.end();
      const pieces = [...cut()];
      const rest = ready;
      ready = "";
      return rest === "" ? pieces : [...pieces, rest];
    },
  };
}
