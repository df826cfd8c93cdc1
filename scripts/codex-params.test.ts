/** Holds the params that Heddle declares to those that Codex's schema has: used, refused or listed with the reason. */
import { z } from "zod";
import {
  CODEX_METHODS,
  CODEX_PARAMS,
  EXPERIMENTAL_FIELDS,
  PARAMS_OF_NO_CONCERN,
  PARAMS_WITHOUT_EFFECT,
} from "@heddle/dialects/codex-app-server";
import { expect, test } from "vitest";
import { paramNames, type Definitions, type Schema } from "../conformance/app-server/param-names.ts";
import { readMethods } from "../conformance/app-server/recorded.ts";

const { stable, experimental, experimentalParams } = readMethods();
const LISTED = { ...PARAMS_OF_NO_CONCERN, ...PARAMS_WITHOUT_EFFECT };
const METHODS = Object.keys(CODEX_PARAMS).filter((method) => method in stable || method in experimental);

function codexNames(method: string): readonly string[] {
  return [stable, experimental, experimentalParams].flatMap((names) => names[method] ?? []);
}

/** What Heddle declares for a method; below a value that may be anything, everything. */
function declares(schema: z.ZodType): (name: string) => boolean {
  const described: Schema & { readonly $defs?: Definitions } = JSON.parse(
    JSON.stringify(z.toJSONSchema(schema, { io: "input", unrepresentable: "any" })),
  );
  const names = paramNames(described, described.$defs ?? {});
  const open = names.filter((name) => !names.some((other) => isBelow(other, name)));
  return (name) => names.includes(name) || open.some((any) => isBelow(name, any));
}

function isBelow(name: string, above: string): boolean {
  return name.startsWith(`${above}.`) || name.startsWith(`${above}[`);
}

function isListed(method: string, name: string): boolean {
  const names = [name, `${method} ${name}`];
  return Object.keys(LISTED).some((entry) => names.some((own) => own === entry || isBelow(own, entry)));
}

test("every param that Codex declares is declared here, or listed with the reason why not", () => {
  const forgotten = METHODS.flatMap((method) => {
    const isDeclared = declares(CODEX_PARAMS[method as keyof typeof CODEX_PARAMS]);
    return codexNames(method)
      .filter((name) => !isDeclared(name) && !isListed(method, name))
      .map((name) => `${method} ${name}`);
  });
  expect(forgotten).toEqual([]);
});

test("a param is listed only while nothing is done with it, and as long as Codex has it", () => {
  const needless = Object.keys(LISTED).filter((entry) => {
    const [name = "", only] = entry.split(" ").toReversed();
    return !METHODS.some(
      (method) =>
        (only ?? method) === method &&
        codexNames(method).includes(name) &&
        !declares(CODEX_PARAMS[method as keyof typeof CODEX_PARAMS])(name),
    );
  });
  expect(needless).toEqual([]);
});

test("experimental params are those of Codex's schema", () => {
  const theirs = METHODS.filter((method) => CODEX_METHODS.get(method)?.isExperimental === false).map((method) => {
    const names = (experimentalParams[method] ?? []).filter((name) => !/[.[]/.test(name));
    return [method, names] as const;
  });
  expect(Object.fromEntries(theirs.filter(([, names]) => names.length > 0))).toEqual(EXPERIMENTAL_FIELDS);
});
