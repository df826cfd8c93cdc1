/** Sessions of outside agents as JSON Schema, made from the shapes that serve them. */
import { Envelope, InputPart } from "@heddle/protocol";
import { SESSION_METHODS, SESSION_NOTIFICATIONS } from "@heddle/protocol/sessions";
import { z } from "zod";
import type { Json } from "./definitions.ts";

export function sessionSchema(): Json {
  // What several shapes hold is described once.
  const metadata = z.registry<{ id?: string }>().add(Envelope, { id: "Envelope" }).add(InputPart, { id: "InputPart" });
  const shared: Record<string, unknown> = {};
  const schemaOf = (schema: z.ZodType, io: "input" | "output"): Json => {
    const options = { io, metadata, unrepresentable: "any", override: withExamples } as const;
    const { $schema: _draft, $defs, ...plain } = z.toJSONSchema(schema, options);
    Object.assign(shared, $defs);
    return plain;
  };
  const methods = Object.entries(SESSION_METHODS);
  const requests = methods.map(([method, { params }]) => request(method, schemaOf(params, "input")));
  const results = methods.map(([method, { result }]) => [method, schemaOf(result, "output")]);
  const notifications = Object.entries(SESSION_NOTIFICATIONS).map(([method, params]) =>
    message(method, schemaOf(params, "output")),
  );
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "HeddleSessions",
    description:
      "Sessions of outside agents: requests of clients, the result of each by its method, and what the server says",
    $ref: "#/$defs/Request",
    $defs: {
      Request: { oneOf: requests },
      Results: { type: "object", properties: Object.fromEntries(results) },
      Notification: { oneOf: notifications },
      ...shared,
    },
  };
}

/** Said where the field is declared, in the registry that `metadata` stands in for. */
function withExamples({
  zodSchema,
  jsonSchema,
}: {
  zodSchema: z.core.$ZodType;
  jsonSchema: Record<string, unknown>;
}): void {
  const examples = z.globalRegistry.get(zodSchema)?.["examples"];
  if (examples !== undefined) jsonSchema["examples"] = examples;
}

function message(method: string, params: Json): Json {
  return { type: "object", properties: { method: { const: method }, params }, required: ["method", "params"] };
}

function request(method: string, params: Json): Json {
  const id = { type: ["string", "number"] };
  const properties = { id, method: { const: method }, params };
  return { type: "object", properties, required: ["id", "method", "params"] };
}
