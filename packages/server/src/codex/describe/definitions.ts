/** The protocol as named JSON Schemas, made from the rows that serve it: it cannot say anything else than they do. */
import { CODEX_METHODS, CODEX_PARAMS } from "@heddle/dialects/codex-app-server";
import { WIRE_ANSWERS, WIRE_NOTIFICATIONS, WIRE_QUESTIONS, WIRE_TYPES } from "@heddle/dialects/codex-app-server/wire";
import { z } from "zod";

export type Json = Readonly<Record<string, unknown>>;

/** The unions at the top; everything else is one type of version two. */
export const ROOTS = [
  "ClientRequest",
  "ClientNotification",
  "ServerNotification",
  "ServerRequest",
  "RequestId",
] as const;

export interface DescribeOptions {
  /** With what only clients that ask for `experimentalApi` may use. */
  readonly isExperimental: boolean;
}

export function definitions({ isExperimental }: DescribeOptions): ReadonlyMap<string, Json> {
  const registry = z.registry<{ id: string }>();
  for (const [id, schema] of Object.entries(WIRE_TYPES)) registry.add(schema, { id });
  const methods = Object.entries(CODEX_PARAMS).filter(
    ([name]) => isExperimental || CODEX_METHODS.get(name)?.isExperimental === false,
  );
  // One set of params may serve several methods; each has a name of its own.
  for (const [name, params] of methods) {
    registry.add(params.clone(), { id: `${typeName(name)}Params` });
    registry.add((WIRE_ANSWERS[name] ?? z.looseObject({})).clone(), { id: `${typeName(name)}Response` });
  }
  for (const [name, params] of Object.entries(WIRE_NOTIFICATIONS)) {
    registry.add(params.clone(), { id: `${typeName(name)}Notification` });
  }
  for (const [name, params] of Object.entries(WIRE_QUESTIONS))
    registry.add(params.clone(), { id: `${typeName(name)}Params` });
  const { schemas } = z.toJSONSchema(registry, {
    io: "input",
    unrepresentable: "any",
    uri: (id) => `#/definitions/${id}`,
  });
  const named = new Map(Object.entries(schemas).map(([id, schema]) => [id, plain(schema)]));
  const call = (name: string): Json => message(name, `${typeName(name)}Params`, true);
  named.set("ClientRequest", { oneOf: methods.map(([name]) => call(name)) });
  named.set("ServerRequest", { oneOf: Object.keys(WIRE_QUESTIONS).map(call) });
  named.set("ServerNotification", {
    oneOf: Object.keys(WIRE_NOTIFICATIONS).map((name) => message(name, `${typeName(name)}Notification`, false)),
  });
  named.set("ClientNotification", {
    oneOf: [{ type: "object", properties: { method: { const: "initialized" } }, required: ["method"] }],
  });
  return new Map([...named].toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

/** `thread/goal/set` → `ThreadGoalSet`. */
function typeName(method: string): string {
  return method
    .split(/[/_]/)
    .map((word) => `${word.slice(0, 1).toUpperCase()}${word.slice(1)}`)
    .join("");
}

function message(method: string, params: string, hasId: boolean): Json {
  return {
    type: "object",
    properties: {
      method: { const: method },
      ...(hasId ? { id: { $ref: "#/definitions/RequestId" } } : {}),
      params: { $ref: `#/definitions/${params}` },
    },
    required: hasId ? ["method", "id", "params"] : ["method", "params"],
  };
}

function plain(schema: object): Json {
  return Object.fromEntries(
    Object.entries(schema).filter(([key]) => key !== "$schema" && key !== "$id" && key !== "id"),
  );
}

/** The names that a schema speaks of. */
export function refsOf(schema: unknown): readonly string[] {
  if (Array.isArray(schema)) return schema.flatMap(refsOf);
  if (typeof schema !== "object" || schema === null) return [];
  return Object.entries(schema).flatMap(([key, value]) =>
    key === "$ref" && typeof value === "string" ? [value.slice("#/definitions/".length)] : refsOf(value),
  );
}
