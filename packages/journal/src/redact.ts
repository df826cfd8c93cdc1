/**
 * Takes secrets out of text before it is hashed, stored or shown: known formats by pattern, and the exact values this
 * process was given. Each leaves a mark that names its kind. Applying it twice changes nothing more.
 *
 * What only a provider understands (`opaque` of model output, image bytes) keeps every byte, because one changed
 * character makes it worthless; there only exact values are removed. The words and calls that are repeated in there are
 * as open as beside it.
 */

/** A value shorter than this would be found in ordinary words. */
const MIN_EXACT_LENGTH = 8;
/** Logins are renewed for as long as a server runs; nobody repeats a token that ended so many renewals ago. */
const MAX_EXACT_VALUES = 1000;

export interface Redactor {
  text(text: string): string;
  /** A copy without secrets, or the value itself when there is none. `json` is its JSON text, looked at first. */
  body<T>(value: T, json: string): T;
  /** From now on these exact values are secrets too: a key that was just stored, a token that was just renewed. */
  readonly learn: (values: readonly string[]) => void;
}

export function redactText(text: string): string {
  return patterns.text(text);
}

/** `exactValues`: secrets known to this process, such as provider keys. */
export function createRedactor(exactValues: readonly string[] = []): Redactor {
  let known: readonly string[] = [];
  let exact: readonly string[] = [];
  let exactInJson: readonly string[] = [];
  const learn = (values: readonly string[]): void => {
    const fresh = values
      .map((value) => value.trim())
      .filter((value) => value.length >= MIN_EXACT_LENGTH && !known.includes(value));
    if (fresh.length === 0) return;
    known = [...new Set([...known, ...fresh])].slice(-MAX_EXACT_VALUES);
    exact = known.toSorted((a, b) => b.length - a.length);
    exactInJson = exact.map((value) => JSON.stringify(value).slice(1, -1));
  };
  learn(exactValues);

  const withoutExact = (text: string): string =>
    exact.reduce(
      (rest, value) => (rest.includes(value) ? rest.replaceAll(value, "[redacted:known-secret]") : rest),
      text,
    );
  const withoutAny = (text: string): string => withoutPatterns(withoutExact(text));

  return {
    learn,
    text: withoutAny,
    body(value, json) {
      if (!exactInJson.some((secret) => json.includes(secret)) && !SUSPECT.test(json)) return value;
      // Same shape in, same shape out: only the characters inside strings change.
      return mapStrings(value, { open: withoutAny, sealed: withoutExact }) as typeof value;
    },
  };
}

function withoutPatterns(text: string): string {
  return SUSPECT.test(text) ? text.replace(SECRET, mark) : text;
}

/** Not in the middle of a longer word: base64 and hashes contain every short prefix sooner or later. */
const START = "(?<![A-Za-z0-9])";
const KEY_BLOCK = "(?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----";

/** `before` stays, the rest becomes the mark. The first alternative that fits at a place wins. */
const FORMATS: readonly { readonly kind: string; readonly before?: string; readonly secret: string }[] = [
  // A cut block has no end; what looks like key lines goes all the same.
  {
    kind: "private-key",
    secret: `-----BEGIN ${KEY_BLOCK}(?:(?!-----)[\\w\\s+/=:,.\\\\()|>-]){32,16384}(?:-----END ${KEY_BLOCK})?`,
  },
  // "Authorization: Basic …" in a header, in JSON, in JSON inside a string.
  {
    kind: "authorization",
    before: `\\b(?i:authorization["'\\\\\\s]{0,6}[:=]["'\\\\\\s]{0,6}(?:basic|bearer|token))\\s{1,4}`,
    secret: `(?!\\[redacted:)[^\\s"'\\\\,;$<{]{4,}`,
  },
  { kind: "bearer-token", before: `\\b(?i:bearer)\\s{1,4}`, secret: `(?=[^\\s"']{0,64}\\d)[\\w.~+/-]{16,}=*` },
  { kind: "anthropic-key", secret: `${START}sk-ant-[\\w-]{16,}` },
  // Words joined by hyphens are no key: there must be a digit, or one long run.
  { kind: "openai-key", secret: `${START}sk-(?=[\\w-]{0,64}\\d|(?:[a-z]+-)?[A-Za-z0-9]{20})[\\w-]{16,}` },
  { kind: "github-token", secret: `${START}(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\\w{20,})` },
  { kind: "aws-key", secret: `${START}(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])` },
  { kind: "google-key", secret: `${START}AIza[\\w-]{35}(?![\\w-])` },
  { kind: "slack-token", secret: `${START}xox[a-z]-[A-Za-z0-9-]{10,}` },
  { kind: "webhook-secret", secret: `${START}whsec_[\\w+/=-]{16,}` },
  { kind: "jwt", secret: `${START}eyJ[\\w-]{8,8192}\\.eyJ[\\w-]{8,8192}\\.[\\w-]{4,}` },
  // Not a placeholder such as ${PASSWORD} or <password>.
  {
    kind: "url-password",
    before: `\\b[a-z][a-z0-9+.-]{1,30}://[^\\s:/@"']{0,256}:`,
    secret: `[^\\s@/$<{*["'][^\\s@/"']{0,256}(?=@)`,
  },
];

const SECRET = new RegExp(FORMATS.map(({ before = "", secret }) => `(${before})(${secret})`).join("|"), "g");

/** Cheap, and never wrong when it says no: a necessary piece of each format. */
const SUSPECT = new RegExp(
  [
    "sk-|gh[pousr]_|github_pat_|A[KS]IA|AIza|xox[a-z]-|eyJ|PRIVATE KEY|whsec_",
    "://[^\\s/@]{0,256}:[^\\s@]{1,257}@",
    "(?i:bearer\\s|authorization)",
  ].join("|"),
);

function mark(_match: string, ...groups: unknown[]): string {
  for (const [index, format] of FORMATS.entries()) {
    if (groups[index * 2 + 1] === undefined) continue;
    return `${String(groups[index * 2])}[redacted:${format.kind}]`;
  }
  return "[redacted]";
}

interface Rewrites {
  readonly open: (text: string) => string;
  readonly sealed: (text: string) => string;
}

/**
 * `plain`: what is opaque is told by its shape. `arguments`: a model wrote it and may imitate any shape, so nothing in there
 * is taken for opaque. `repeated`: opaque, with words and calls in it. `sealed`: opaque through and through.
 */
type Place = "plain" | "arguments" | "repeated" | "sealed";

/** Under these names providers keep what a model said or called. */
const REPEATED: ReadonlySet<string> = new Set(["text", "input", "args", "refusal"]);

function mapStrings(value: unknown, rewrites: Rewrites, place: Place = "plain"): unknown {
  const rewrite = place === "plain" || place === "arguments" ? rewrites.open : rewrites.sealed;
  if (typeof value === "string") return rewrite(value);
  if (Array.isArray(value)) return value.map((entry) => mapStrings(entry, rewrites, place));
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([key, entry]): [string, unknown] => [
    rewrite(key),
    mapStrings(entry, rewrites, placeOf(value, key, place)),
  ]);
  return Object.fromEntries(entries);
}

function placeOf(parent: object, key: string, place: Place): Place {
  if (place === "arguments" || key === "arguments") return "arguments";
  if (place === "repeated" && REPEATED.has(key)) return "arguments";
  if (place !== "plain") return place;
  if (key === "opaque" && "kind" in parent) return parent.kind === "reasoning" ? "sealed" : "repeated";
  const isImage = key === "base64" && "type" in parent && parent.type === "image" && "mediaType" in parent;
  return isImage ? "sealed" : "plain";
}

const patterns = createRedactor();
