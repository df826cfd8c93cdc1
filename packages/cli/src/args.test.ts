import { expect, test } from "vitest";
import { mergeArgs, parseCommandArgs, splitLeadingOptions, type OptionSpec } from "./args.ts";

const specs: readonly OptionSpec[] = [
  { name: "model", short: "m", value: "MODEL", help: "" },
  { name: "config", short: "c", value: "KEY=VALUE", isMultiple: true, help: "" },
  { name: "json", aliases: ["experimental-json"], help: "" },
  {
    name: "image",
    short: "i",
    value: "FILE",
    isMultiple: true,
    takesMore: (word) => word.endsWith(".png"),
    help: "",
  },
  { name: "verbose", short: "v", help: "" },
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
  expect(() => parse("--color", "blue")).toThrow(`--color "blue": must be one of always, never, auto`);
});

test("an option that takes more takes the words that belong to it, and leaves the prompt", () => {
  const args = parse("-i", "a.png", "b.png", "look at these", "--image=c.png", "d.png", "-i", "e.txt");
  expect(args.values("image")).toEqual(["a.png", "b.png", "c.png", "d.png", "e.txt"]);
  expect(args.positionals).toEqual(["look at these"]);
});

test("switches may be written together, the last one with its value", () => {
  const args = parse("-vm", "gpt", "-vcx=1");
  expect([args.has("verbose"), args.value("model"), args.values("config")]).toEqual([true, "gpt", ["x=1"]]);
});

test("words after -- are words, and are told from those before it", () => {
  const args = parse("one", "--", "resume", "-m");
  expect([args.positionals, args.positionalsBeforeDashes]).toEqual([["one", "resume", "-m"], 1]);
});

test("options before the command are set apart with their values, and yield to those after it", () => {
  const { leading, rest } = splitLeadingOptions(specs, ["-m", "exec", "--config=a=1", "-v", "exec", "-m", "b", "hi"]);
  expect([leading, rest]).toEqual([
    ["-m", "exec", "--config=a=1", "-v"],
    ["exec", "-m", "b", "hi"],
  ]);
  const merged = mergeArgs(
    parseCommandArgs(specs, leading),
    parseCommandArgs(specs, [...rest.slice(1), "-c", "b=2"]),
    specs,
  );
  expect([merged.value("model"), merged.values("config"), merged.has("verbose"), merged.positionals]).toEqual([
    "b",
    ["a=1", "b=2"],
    true,
    ["hi"],
  ]);
});
