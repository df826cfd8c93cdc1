/** Where a private key in lines begins and ends, also when its end is missing or has not come. */

const LABEL = "(?:[A-Z0-9]{1,32} ){0,4}PRIVATE KEY(?: BLOCK)?-----";
const KEY_BEGIN = new RegExp(`-----BEGIN ${LABEL}`, "y");
const KEY_BEGIN_CUT = /-----BEGIN [A-Z0-9 ]{0,160}-{0,5}$/y;
const KEY_END = new RegExp(`-----END ${LABEL}`, "y");
const KEY_END_CUT = /-{1,5}$|-----E?N?D?$|-----END [A-Z0-9 ]{0,160}-{0,5}$/y;
export const MIN_BODY_CHARS = 32;
export const MAX_BODY_CHARS = 16_384;

const CUT_BEGIN = /-{1,5}$|-----B(?:E(?:G(?:IN?)?)?)?$/;

/** How many characters at the end could begin one. */
export function cutKeyBegin(text: string): number {
  return CUT_BEGIN.exec(text.slice(-"-----BEGIN".length))?.[0].length ?? 0;
}

/** After the first line of one that begins at `at`. */
export function keyStart(text: string, at: number, isWhole: boolean): number | "open" | undefined {
  KEY_BEGIN.lastIndex = at;
  if (KEY_BEGIN.test(text)) return KEY_BEGIN.lastIndex;
  KEY_BEGIN_CUT.lastIndex = at;
  return !isWhole && KEY_BEGIN_CUT.test(text) ? "open" : undefined;
}

export interface KeyEnd {
  readonly body: number;
  readonly to: number;
  /** More text may add to it. */
  readonly isOpen: boolean;
}

interface KeyLimit {
  readonly isWhole: boolean;
  readonly most: number;
  readonly isInBody: (text: string, at: number) => boolean;
}

export function keyEnd(text: string, from: number, { isWhole, most, isInBody }: KeyLimit): KeyEnd {
  let body = from;
  let dashes = 0;
  while (body < text.length && body - from < most && dashes < 5) {
    if (!isInBody(text, body)) break;
    dashes = text[body] === "-" ? dashes + 1 : 0;
    body += 1;
  }
  if (dashes === 5 || (body >= text.length && !isWhole)) body -= dashes;
  KEY_END.lastIndex = body;
  if (KEY_END.test(text)) return { body, to: KEY_END.lastIndex, isOpen: false };
  if (isWhole || body - from >= most) return { body, to: body, isOpen: false };
  KEY_END_CUT.lastIndex = body;
  return { body, to: body, isOpen: body >= text.length || KEY_END_CUT.test(text) };
}
