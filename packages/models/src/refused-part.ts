/**
 * Whether a provider refused a request for something in its conversation, and which kind of part that was. Such a refusal
 * comes again with every later request of the thread, unless the part is left out.
 */
export type RefusedPart =
  /** What only the provider can read: reasoning and its signatures. */
  | "sealed"
  | "images"
  /** Something of the conversation, of no kind that could be told. */
  | "conversation";

const STATUSES: ReadonlySet<number> = new Set([400, 404, 422]);
const SEALED =
  /(thinking|reasoning)`? (block|item)|of type 'reasoning'|required following item|required 'reasoning' item|signature|encrypted.content/i;
const IMAGES = /\bimages?\b|image_url|input_image|inline_?data|vision/i;
/** A place in the conversation as each of the wires writes it: messages.3.content.0, input[2], contents[1].parts. */
const PLACE =
  /(^|[^\w$])((messages|contents|input)[.[]\s*\d|(messages|contents):|contents\.parts)|message (at )?index \d|messages? with role|assistant message/i;

export function refusedPart(report: {
  readonly status?: number;
  readonly message: string;
  /** The field that the provider names, where it does. */
  readonly param?: string | undefined;
}): RefusedPart | undefined {
  const { status, message, param = "" } = report;
  if (status === undefined || !STATUSES.has(status)) return undefined;
  if (/^tools?\b/.test(param) || /(^|[^\w])tools[.[]\d/.test(message)) return undefined;
  if (SEALED.test(message)) return "sealed";
  if (IMAGES.test(message)) return "images";
  const isPlace = status !== 404 && (PLACE.test(message) || /^(messages|contents|input)\b/.test(param));
  return isPlace ? "conversation" : undefined;
}
