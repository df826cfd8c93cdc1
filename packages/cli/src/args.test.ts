import { expect, test } from "vitest";
import { parseCommandArgs, type OptionSpec } from "./args.ts";

const specs: readonly OptionSpec[] = [
  { name: "model", short: "m", value: "MODEL", help: "" },
  { name: "config", short: "c", value: "KEY=VALUE", isMultiple: true, help: "" },
  { name: "json", aliases: ["experimental-json"], help: "" },
  { name: "color", value: "WHEN", choices: ["always", "never", "auto"], help: "" },
];
const parse = (...args: readonly string[]): ReturnType<typeof parseCommandArgs> => parseCommandArgs(specs, args);

test("options may stand before and after the words, long, short, joined and repeated", () => {
  const args = parse("one", "-m", "gpt", "-ca=1", "--config=b=2", "--experimental-json", "-", "--", "--json");
  expect(args.positionals).toEqual(["one", "-", "--json"]);
  expect(args.value("model")).toBe("gpt");
  expect(args.values("config")).toEqual(["a=1", "b=2"]);
  expect(args.has("json")).toBe(true);
  expect(args.has("color")).toBe(false);
});

test("an unknown option is refused with the nearest known one", () => {
  expect(() => parse("--modle", "x")).toThrow("unknown option --modle; did you mean --model?");
  expect(() => parse("-z")).toThrow("unknown option -z; see heddle --help");
});

test("a missing, empty or option-like value is refused, an inline one is taken as written", () => {
  expect(() => parse("-m")).toThrow("-m needs a value: -m MODEL");
  expect(() => parse("--model=")).toThrow("--model needs a value");
  expect(() => parse("-m", "--json")).toThrow("-m needs a value");
  expect(parse("--model=--json").value("model")).toBe("--json");
});

test("a switch with a value, a second value and a word outside the choices are refused", () => {
  expect(() => parse("--json=yes")).toThrow("--json takes no value");
  expect(() => parse("-m", "a", "-m", "b")).toThrow("-m is given twice");
  expect(() => parse("--color", "blue")).toThrow(`--color "blue" is none of always, never, auto`);
});
