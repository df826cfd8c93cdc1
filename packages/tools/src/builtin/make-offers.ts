/** The descriptions in `offers.json`, `child-offers.json` and `message-offers.json`: for the script that writes them and the test that they are up to date. */
import { toJSONSchema } from "zod/mini";
import type { $ZodType } from "zod/v4/core";
import { CHILD_TOOLS, type ChildThreads } from "../calls/child-threads.ts";
import { MESSAGE_TOOLS, type MessagePort } from "../calls/messages.ts";
import type { Offer } from "../calls/registry.ts";
import { childTool } from "./child-threads.ts";
import { messageTool } from "./messages.ts";
import type { EvidencePort, Tool } from "../calls/tool.ts";
import {
  loadAskTool,
  loadGoalTool,
  loadHopTool,
  loadNoteTool,
  loadReportTool,
  loadSearchTool,
  loadSkillTool,
  loadTools,
} from "./load.ts";

const never = (): Promise<never> => Promise.reject(new Error("only described"));
const NO_EVIDENCE: EvidencePort = { search: never, note: never };

export async function makeOffers(): Promise<Record<string, Offer>> {
  const others = [
    loadSkillTool("/"),
    loadAskTool(),
    loadReportTool(),
    loadGoalTool(async () => undefined),
    loadSearchTool(NO_EVIDENCE),
    loadNoteTool(NO_EVIDENCE),
    loadHopTool({ admit: never, enter: never }),
  ];
  const tools = [...(await loadTools()), ...(await Promise.all(others))];
  return Object.fromEntries(tools.map((tool) => [tool.name, makeOffer(tool)]));
}

const NO_CHILDREN: ChildThreads = { threadId: "", start: never, send: never, wait: never, close: never };

/** In `child-offers.json`. */
export function makeChildOffers(): Record<string, Offer> {
  return Object.fromEntries(CHILD_TOOLS.map((name) => [name, makeOffer(childTool(name, NO_CHILDREN))]));
}

const NO_AGENTS: MessagePort = { agents: never, tell: never, ask: never, answer: never };

/** In `message-offers.json`. */
export function makeMessageOffers(): Record<string, Offer> {
  return Object.fromEntries(MESSAGE_TOOLS.map((name) => [name, makeOffer(messageTool(name, NO_AGENTS))]));
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
  "$schema additionalProperties default exclusiveMaximum exclusiveMinimum maxItems maxLength maximum minLength minimum propertyNames".split(
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
