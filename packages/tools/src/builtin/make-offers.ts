/** The descriptions in `offers.json`: for the script that writes it and the test that it is up to date. */
import { toJSONSchema } from "zod/mini";
import type { $ZodType } from "zod/v4/core";
import type { Offer } from "../calls/registry.ts";
import type { Tool } from "../calls/tool.ts";
import { loadAskTool, loadGoalTool, loadReportTool, loadSkillTool, loadTools } from "./load.ts";

export async function makeOffers(): Promise<Record<string, Offer>> {
  const others = [loadSkillTool("/"), loadAskTool(), loadReportTool(), loadGoalTool(async () => undefined)];
  const tools = [...(await loadTools()), ...(await Promise.all(others))];
  return Object.fromEntries(tools.map((tool) => [tool.name, makeOffer(tool)]));
}

function makeOffer({ description, shape, effects, input, parameters }: Tool): Offer {
  if (shape === "freeform") return { description, shape, effects };
  // Without parameters of its own it has a schema of the library.
  const known = parameters ?? toJSONSchema(input as $ZodType, { io: "input" });
  return { description, shape, effects, parameters: compactSchema(known) };
}

/**
 * Bounds are checked by Heddle anyway, cost tokens in every request, and some providers refuse schemas that have them.
 */
const LEFT_OUT = new Set(
  "$schema additionalProperties default exclusiveMaximum exclusiveMinimum maxItems maxLength maximum minLength minimum".split(
    " ",
  ),
);

function compactSchema(schema: object): Record<string, unknown> {
  const compact: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(schema)) {
    if (LEFT_OUT.has(key)) continue;
    // Below `properties` the keys are the model's fields, not keywords of JSON Schema.
    if (key === "properties" && isRecord(value)) {
      compact[key] = Object.fromEntries(
        Object.entries(value).map(([name, field]) => [name, isRecord(field) ? compactSchema(field) : field]),
      );
    } else compact[key] = isRecord(value) ? compactSchema(value) : value;
  }
  return compact;
}

function isRecord(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
