import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { z } from "zod";
import { envelopeSchema, gateSchema } from "./json-schema.ts";
import { readSpec, SpecFile } from "./spec-file.ts";

const published = (name: string): unknown =>
  JSON.parse(readFileSync(new URL(`../../../../schemas/${name}.schema.json`, import.meta.url), "utf8"));

const Properties = z.record(z.string(), z.object({ description: z.string().optional() }));
const Schema = z.object({ properties: Properties, additionalProperties: z.literal(false) });

test("W10: the published schemas of files are those that read them (heddle schema envelope, gate)", () => {
  expect(published("envelope")).toEqual(JSON.parse(JSON.stringify(envelopeSchema())));
  expect(published("gate")).toEqual(JSON.parse(JSON.stringify(gateSchema())));
});

test("E1: the schema of an envelope is closed as its reader is, and says what each key means", () => {
  const { properties } = Schema.parse(envelopeSchema());
  expect(Object.keys(properties)).toEqual(Object.keys(SpecFile.shape));
  expect(Object.values(properties).filter(({ description }) => description === undefined)).toEqual([]);
  expect(Schema.safeParse(gateSchema()).success).toBe(true);
  const text = "extends: explore\nlimits:\n  calls: 3\n  bites: 4\n";
  expect(() => readSpec(text, { file: "mine.yaml", id: "mine" })).toThrow(/^mine\.yaml:4: unknown key "bites"/);
});
