/**
 * Takes secrets out of text before it is hashed, stored or shown: known formats by pattern, and the exact values this
 * process was given. Each leaves a mark that names its kind. Applying it twice changes nothing more.
 *
 * What only a provider understands (`opaque` of model output, image bytes) keeps every byte, because one changed
 * character makes it worthless; there only exact values are removed. The words and calls that are repeated in there are
 * as open as beside it.
 */
import { createKnownSecrets, type KnownSecrets } from "./known-secrets.ts";
import { hasBeginning } from "./secret-formats.ts";
import { joined, lookInSteps, withMarks } from "./secret-marks.ts";
import { atOnce, type Steps } from "../record/steps.ts";

export interface Redactor {
  text(text: string): string;
  /** A copy without secrets, or the value itself when there is none. `json`: its JSON text, searched first. */
  body<T>(value: T, json: string): T;
  /** For long values. */
  bodyInSteps<T>(value: T, json: string): Steps<T>;
  /** Adds exact values: a key that was just stored, a token that was just renewed. */
  readonly learn: (values: readonly string[]) => void;
  readonly known: KnownSecrets;
}

export function redactText(text: string): string {
  return patterns.text(text);
}

/** `exactValues`: secrets known to this process, such as provider keys. */
export function createRedactor(exactValues: readonly string[] = []): Redactor {
  const known = createKnownSecrets();
  known.learn(exactValues);

  const withoutExact = (text: string): Steps<string> => replaced(text, known, false);
  const withoutAny = (text: string): Steps<string> => replaced(text, known, true);

  function* bodyInSteps<T>(value: T, json: string): Steps<T> {
    const isSuspect = mayHold(json);
    yield;
    if (!isSuspect && (yield* known.searchInSteps(json, true)).found.length === 0) return value;
    // Only characters inside strings change.
    return (yield* mapStrings(value, { open: withoutAny, sealed: withoutExact })) as T;
  }

  return {
    known,
    learn: (values) => known.learn(values),
    text: (text) => atOnce(withoutAny(text)),
    body: (value, json) => atOnce(bodyInSteps(value, json)),
    bodyInSteps,
  };
}

/** Cheap, and never wrong when it returns false: what a secret begins with, or what could hide it. */
function mayHold(text: string): boolean {
  return hasBeginning(text) || HIDING.test(text);
}
// eslint-disable-next-line no-control-regex
const HIDING = /\u001B|\\u001b|%[0-9A-Fa-f]{2}/;

function* replaced(text: string, known: KnownSecrets, hasFormats: boolean): Steps<string> {
  const plain = yield* known.searchInSteps(text, true);
  if (plain.found.length === 0 && !mayHold(text)) return text;
  yield;
  const { parts } = yield* lookInSteps(text, known, { isWhole: true, hasFormats, plain });
  yield;
  return withMarks(text, joined(parts), { from: 0, to: text.length });
}

interface Rewrites {
  readonly open: (text: string) => Steps<string>;
  readonly sealed: (text: string) => Steps<string>;
}

/**
 * `plain`: opaque parts are recognized by their shape. `arguments`: a model wrote it and may imitate any shape, so
 * nothing in it is opaque. `repeated`: opaque, with text and calls in it. `sealed`: entirely opaque.
 */
type FieldKind = "plain" | "arguments" | "repeated" | "sealed";

/** Under these names providers repeat what a model said or called. */
const REPEATED: ReadonlySet<string> = new Set(["text", "input", "args", "refusal"]);

function* mapStrings(value: unknown, rewrites: Rewrites, kind: FieldKind = "plain"): Steps<unknown> {
  const rewrite = kind === "plain" || kind === "arguments" ? rewrites.open : rewrites.sealed;
  if (typeof value === "string") return yield* rewrite(value);
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) {
    const mapped: unknown[] = [];
    for (const entry of value) mapped.push(yield* mapStrings(entry, rewrites, kind));
    return mapped;
  }
  const entries: [string, unknown][] = [];
  for (const [key, entry] of Object.entries(value)) {
    entries.push([yield* rewrite(key), yield* mapStrings(entry, rewrites, kindOf(value, key, kind))]);
  }
  return Object.fromEntries(entries);
}

function kindOf(parent: object, key: string, kind: FieldKind): FieldKind {
  if (kind === "arguments" || key === "arguments") return "arguments";
  if (kind === "repeated" && REPEATED.has(key)) return "arguments";
  if (kind === "sealed" && isShown(parent, key)) return "arguments";
  if (kind !== "plain") return kind;
  if (key === "opaque" && "kind" in parent) return kindOfOpaque(parent);
  const isImage = key === "base64" && "type" in parent && parent.type === "image" && "mediaType" in parent;
  return isImage ? "sealed" : "plain";
}

/** Reasoning in plain words, which nothing is signed for: beside what is encrypted, or all there is of it. */
function isShown(parent: object, key: string): boolean {
  if (key === "reasoning_content") return true;
  return (key === "summary" || key === "content") && "type" in parent && parent.type === "reasoning";
}

function kindOfOpaque(part: object): FieldKind {
  if (!("kind" in part) || part.kind !== "reasoning") return "repeated";
  // A search is a call in plain words.
  return "search" in part ? "arguments" : "sealed";
}

const patterns = createRedactor();
