import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { openApi } from "./openapi.ts";
import { ROUTES } from "./routes.ts";

const PUBLISHED = new URL("../../../../schemas/http-openapi.json", import.meta.url);
const made = JSON.parse(JSON.stringify(openApi("0"))) as {
  readonly openapi: string;
  readonly paths: Readonly<Record<string, Readonly<Record<string, { operationId: string; "x-heddle-scope": string }>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, unknown>> };
};

test("106, W10: the published description is the one the routes come from (heddle schema http > schemas/http-openapi.json)", () => {
  const published = JSON.parse(readFileSync(PUBLISHED, "utf8")) as { info: { version: string } };
  expect(published).toEqual(JSON.parse(JSON.stringify(openApi(published.info.version))));
});

test("every route is described once, with its scope", () => {
  const described = Object.entries(made.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(
      ([method, operation]) => `${method.toUpperCase()} ${path} ${operation["x-heddle-scope"]}`,
    ),
  );
  expect(described.toSorted()).toEqual(
    ROUTES.map(({ method, path, scope }) => `${method} ${path} ${scope}`).toSorted(),
  );
  expect(made.openapi).toBe("3.1.0");
});

test("every reference leads somewhere", () => {
  const references = [...JSON.stringify(made).matchAll(/"\$ref":"#\/components\/schemas\/([^"]+)"/g)].map(
    ([, name]) => name,
  );
  expect(references.length).toBeGreaterThan(10);
  expect(references.filter((name) => !Object.hasOwn(made.components.schemas, name ?? ""))).toEqual([]);
});
