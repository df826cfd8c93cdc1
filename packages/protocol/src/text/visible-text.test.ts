import { expect, test } from "vitest";
import { visibleLine, visibleName, visiblePath, visibleText } from "./visible-text.ts";

const ESC = "\u001b";

test.each([
  ["a link", `${ESC}]8;;http://x${ESC}\\click${ESC}]8;;${ESC}\\`],
  ["the clipboard", `${ESC}]52;c;ZXZpbA==\u0007`],
  ["a title", `${ESC}]0;owned\u0007`],
  ["a proprietary command", `${ESC}]1337;File=:AAAA\u0007`],
  ["clearing the screen", `${ESC}[2J`],
  ["a cursor question", `${ESC}[6n`],
  ["a device control string", `${ESC}P1$r${ESC}\\`],
  ["an 8-bit control introducer", "\u009b2J"],
  ["a carriage return that overwrites", "rm -rf /\rls      "],
  ["a bidi override", "safe\u202Etxt.exe"],
  ["bidi isolates", "a\u2066b\u2069"],
  ["zero-width characters", "pass\u200Bword\u200D\uFEFF"],
  ["tag characters", "hi\u{E0001}\u{E0041}\u{E007F}"],
  ["a lone surrogate", "x\uD800y"],
])("%s is shown escaped and harmless", (_name, text) => {
  const shown = visibleText(text);
  for (const character of shown)
    expect(isHarmless(character.codePointAt(0) ?? 0), JSON.stringify(character)).toBe(true);
  expect(shown).toContain("\\");
});

test("ordinary text of many scripts, newlines, tabs and emoji pass unchanged", () => {
  const text = "Grüße\n\tпривет 你好 مرحبا 🎉 ❤ é";
  expect(visibleText(text)).toBe(text);
});

test("13: every character that is drawn as nothing is shown, variation selectors too", () => {
  const ignorable = /\p{Default_Ignorable_Code_Point}/u;
  for (let code = 0; code <= 0x10_ff_ff; code += 1) {
    const character = String.fromCodePoint(code);
    if (ignorable.test(character) && visibleText(character) !== `\\u{${code.toString(16)}}`)
      expect(visibleText(character), code.toString(16)).toBe(code === 0xad ? "\\xad" : undefined);
  }
  expect(visibleText("ok\u{FE0F}\u{E0100}\u{115F}")).toBe("ok\\u{fe0f}\\u{e0100}\\u{115f}");
  // One selector after a picture is left out; any more are shown.
  expect(visibleText("\u{2764}\u{FE0F} \u{2764}\u{FE0F}\u{FE0F}")).toBe("\u{2764} \u{2764}\\u{fe0f}");
});

test("an escaped byte names the byte it was", () => {
  expect(visibleText("a\u001b[31mb\u202E")).toBe("a\\x1b[31mb\\u{202e}");
});

test("a line for a prompt holds no line break", () => {
  expect(visibleLine("echo a\n\techo b")).toBe("echo a\\n\\techo b");
});

test("a line for a prompt hides nothing behind blanks", () => {
  const hidden = visibleLine(`ls${" ".repeat(500)}; rm -rf ~${"\u3000".repeat(20)}x`);
  expect(hidden).toBe("ls [500 blanks] ; rm -rf ~ [20 blanks] x");
  expect(visibleLine("a    b")).toBe("a    b");
});

test("13: a name that is not plain is in quotes, so that it cannot look like a list of names", () => {
  const plain = ["src/add.js", ".env", "pages/$id/_über-1.tsx", "a:b@c+d=e%f~g#h"];
  expect(plain.map(visibleName)).toEqual(plain);
  expect(visibleName("test-a.js (changed), src and b.js")).toBe('"test-a.js (changed), src and b.js"');
  expect(visibleName('a", "b')).toBe(String.raw`"a\", \"b"`);
  expect(visibleName("a,b")).toBe('"a,b"');
  expect(visibleName("")).toBe('""');
  expect(visibleName(`a${ESC}[2J`)).not.toContain(ESC);
});

function isHarmless(code: number): boolean {
  if (code === 0x0a || code === 0x09) return true;
  if (code < 0x20 || (code >= 0x7f && code <= 0x9f)) return false;
  if ((code >= 0x200b && code <= 0x200f) || (code >= 0x202a && code <= 0x202e)) return false;
  if ((code >= 0x2060 && code <= 0x206f) || code === 0xfeff) return false;
  return !(code >= 0xd800 && code <= 0xdfff) && !(code >= 0xe0000 && code <= 0xe0fff);
}

test("a long path is cut in its middle, at folders, and stays one name", () => {
  const folders = Array.from({ length: 100 }, (_, index) => `f${index}`);
  expect(visiblePath("src/a.js")).toBe("src/a.js");
  expect(visiblePath(`${folders.join("/")}/a.js`)).toMatch(/^f0\/f1\/[\w/]+\/…\/[\w/]+\/f99\/a\.js$/);
  expect(visiblePath(`${folders.join("/")}/a b.js`)).toMatch(/^"f0\/.*….*\/a b\.js"$/);
  expect(visiblePath("x".repeat(300)).length).toBeLessThan(162);
});
