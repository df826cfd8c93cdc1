/** Where a text stops being JSON and what was expected there: what the parser of the runtime says differs by version and input. */

const SPACE = /[ \t\n\r]*/y;
const SCALAR = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;
// eslint-disable-next-line no-control-regex
const STRING_START = /"(?:[^"\\\u0000-\u001f]+|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*/y;

type Expected = "value" | "first value" | "key" | "first key" | "colon" | "separator";

const TEXTS: Readonly<Record<Exclude<Expected, "separator">, string>> = {
  value: "a value",
  "first value": 'a value or "]"',
  key: "a name in double quotes",
  "first key": 'a name in double quotes or "}"',
  colon: '":"',
};

/** For a text that `JSON.parse` refused: `line 3, column 5: expected ":", found "}"`; without the line when there is one. */
export function jsonProblem(text: string): string {
  const { at, expected } = faultIn(text);
  const lines = text.slice(0, at).split("\n");
  const line = text.includes("\n") ? `line ${lines.length}, ` : "";
  const character = text.codePointAt(at);
  const found = character === undefined ? "the end" : JSON.stringify(String.fromCodePoint(character));
  return `${line}column ${(lines.at(-1)?.length ?? 0) + 1}: expected ${expected}, found ${found}`;
}

function faultIn(text: string): { readonly at: number; readonly expected: string } {
  const open: ("}" | "]")[] = [];
  let expected: Expected = "value";
  let at = 0;
  for (;;) {
    at += lengthOf(SPACE, text, at);
    const char = text[at];
    const closes = open.at(-1);
    if (expected === "separator") {
      if (char === undefined || closes === undefined || (char !== "," && char !== closes))
        return { at, expected: closes === undefined ? "the end" : `"," or "${closes}"` };
      if (char === closes) open.pop();
      else expected = closes === "}" ? "key" : "value";
      at += 1;
    } else if (char === closes && expected.startsWith("first")) {
      open.pop();
      expected = "separator";
      at += 1;
    } else if (expected === "colon") {
      if (char !== ":") return { at, expected: TEXTS.colon };
      expected = "value";
      at += 1;
    } else if (char === '"') {
      at += lengthOf(STRING_START, text, at);
      if (text[at] !== '"') return { at, expected: text[at] === "\\" ? "a valid escape" : "a closing double quote" };
      expected = expected.endsWith("key") ? "colon" : "separator";
      at += 1;
    } else if (expected.endsWith("value") && (char === "{" || char === "[")) {
      open.push(char === "{" ? "}" : "]");
      expected = char === "{" ? "first key" : "first value";
      at += 1;
    } else {
      const length = expected.endsWith("value") ? lengthOf(SCALAR, text, at) : 0;
      if (length === 0) return { at, expected: TEXTS[expected] };
      at += length;
      expected = "separator";
    }
  }
}

function lengthOf(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0].length ?? 0;
}
