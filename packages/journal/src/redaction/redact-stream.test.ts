import { expect, test } from "vitest";
import { createRedactor } from "./redact.ts";
import { createStreamRedactor } from "./redact-stream.ts";

const run = (length: number): string => "Q7x".repeat(Math.ceil(length / 3)).slice(0, length);
const LONG_KEY = "Zq-known/value+0123456789";
test.each([
  { name: "a registered value", secret: LONG_KEY, first: 1 },
  { name: "a token", secret: `ghp_${run(36)}`, first: 1 },
  { name: "a key", secret: `sk-proj-${run(40)}`, first: 1 },
  { name: "a coloured token", secret: `\u001B[31mghp_${run(36)}\u001B[0m`, first: 1 },
  // Three characters of that are two of the value, and stand in ordinary words.
  { name: "a registered value in base64", secret: Buffer.from(LONG_KEY).toString("base64"), first: 4 },
  { name: "a registered value, percent-encoded", secret: encodeURIComponent(LONG_KEY), first: 1 },
])("12.12: $name is not let out to whoever looks while it is coming", ({ secret, first }) => {
  const redactor = createRedactor([LONG_KEY]);
  for (const before of ["", "key=", `${"word ".repeat(80)}x=`]) {
    const whole = redactor.text(`${before}${secret}\nend`);
    for (let cut = first; cut < secret.length; cut += 1) {
      const stream = createStreamRedactor(redactor);
      let out = stream.push(before + secret.slice(0, cut));
      const fork = stream.fork();
      const kept = out + fork.push(`${secret.slice(cut)}\nend`) + fork.end();
      expect(kept).toBe(whole);
      out += stream.flush();
      out += stream.push(secret.slice(cut, cut + 2)) + stream.flush();
      out += stream.push(`${secret.slice(cut + 2)}\n`) + stream.flush() + stream.push("end") + stream.end();
      expect(out, `cut at ${cut}`).toBe(whole);
    }
  }
});

test("12.12: where the beginning was let out before it was a secret, the rest goes", () => {
  const redactor = createRedactor();
  const stream = createStreamRedactor(redactor);
  expect(stream.push("it is later-") + stream.flush()).toBe("it is later-");
  redactor.learn(["later-value-0123456789"]);
  expect(stream.push("value-0123456789 end\n") + stream.end()).toBe("[redacted:known-secret] end\n");
});

test("12.12: a token directly behind a long registered value goes, wherever the two are cut", () => {
  const long = Array.from({ length: 120 }, (_, at) => (at * 7919).toString(36)).join("x");
  const redactor = createRedactor([long]);
  const text = `x ${long}ghp_${run(40)} y\n`;
  for (let size = 1; size <= text.length; size += 1) {
    const stream = createStreamRedactor(redactor);
    let out = "";
    for (let at = 0; at < text.length; at += size) out += stream.push(text.slice(at, at + size));
    expect(out + stream.end(), `pieces of ${size}`).toBe("x [redacted:known-secret][redacted:github-token] y\n");
  }
});

test.each([
  { name: "Chinese", unit: "這是一個沒有空格的回答。", held: 0 },
  { name: "Thai", unit: "ข้อความที่ไม่มีช่องว่าง", held: 0 },
  { name: "minified JSON", unit: '{"name":"value","list":[1,2,3],"deep":{"is":true}},', held: 4 },
  { name: "base64", unit: "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNk", held: 16 },
])("$name comes out piece by piece, at most $held characters late", ({ unit, held }) => {
  const text = unit.repeat(40);
  const stream = createStreamRedactor(createRedactor([LONG_KEY]));
  let [out, pieces, most] = ["", 0, 0];
  for (let at = 0; at < text.length; at += 6) {
    const shown = stream.push(text.slice(at, at + 6));
    out += shown;
    pieces += shown === "" ? 0 : 1;
    most = Math.max(most, Math.min(at + 6, text.length) - out.length);
  }
  expect(out + stream.end()).toBe(text);
  expect(most).toBe(held);
  expect(pieces).toBeGreaterThan((text.length / 6) * 0.9);
});

test("12.12: a prompt without a line end is shown to whoever looks", () => {
  const stream = createStreamRedactor(createRedactor(["known-value-0123456789"]));
  for (const prompt of ["Continue?[y/n]", "Password:", "1024", ">>> "]) {
    expect(stream.push(prompt) + stream.flush()).toBe(prompt);
    stream.push("\n");
  }
});
