/** The whole dialect as one JSON Schema: what each method takes and answers, and what each event holds. */
import { z } from "zod";
import { CHAT_EVENTS, CHAT_NOTICES } from "./events.ts";
import { CHAT_PROTOCOL } from "./hello.ts";
import { CHAT_METHODS } from "./methods.ts";

export function chatSchema(): object {
  const methods = Object.entries(CHAT_METHODS).map(([name, { params, result }]) => [
    name,
    { params: schemaOf(params, "input"), result: schemaOf(result, "output") },
  ]);
  const events = Object.entries({ ...CHAT_EVENTS, ...CHAT_NOTICES }).map(([name, shape]) => [
    name,
    schemaOf(shape, "output"),
  ]);
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "The chat.* API of Heddle",
    description: "Params may come in camelCase too. Readers must let unknown keys and events pass.",
    protocol: CHAT_PROTOCOL,
    methods: Object.fromEntries(methods),
    events: Object.fromEntries(events),
  };
}

function schemaOf(shape: z.ZodType, io: "input" | "output"): object {
  const { $schema: _same, ...schema } = z.toJSONSchema(shape, { io, unrepresentable: "any" });
  // Fields are added without a new version, so the schema must allow others.
  return JSON.parse(JSON.stringify(schema), (key, value: unknown) =>
    key === "additionalProperties" && value === false ? undefined : value,
  ) as object;
}
