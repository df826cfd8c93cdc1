/** The description of the HTTP door, made from the rows that serve it: it cannot say anything else than they do. */
import { z } from "zod";
import type { Route } from "./route.ts";
import { ROUTES } from "./routes.ts";
import {
  Agent,
  Approval,
  ApprovalQuestion,
  CheckRun,
  ConfigSummary,
  EnvelopeDetail,
  ErrorAnswer,
  EventBody,
  EvidenceEntry,
  Failure,
  InputPart,
  Item,
  ItemEntry,
  Message,
  Notification,
  SandboxAnswer,
  StreamedDelta,
  StreamedEvent,
  Task,
  TaskAttempt,
  TaskSummary,
  Thread,
  ThreadDetail,
  Turn,
  TurnSettings,
  Usage,
  UsageEntry,
  VerdictAnswer,
} from "@heddle/protocol/http";
import { TaskCheck, TaskSpec } from "@heddle/protocol/tasks";

const COMPONENTS = {
  EventBody,
  Item,
  InputPart,
  TurnSettings,
  Usage,
  Failure,
  ApprovalQuestion,
  Thread,
  ThreadDetail,
  Turn,
  ItemEntry,
  Approval,
  EnvelopeDetail,
  EvidenceEntry,
  Agent,
  Message,
  Task,
  TaskSummary,
  TaskAttempt,
  TaskSpec,
  TaskCheck,
  CheckRun,
  Notification,
  UsageEntry,
  ConfigSummary,
  Verdict: VerdictAnswer,
  Sandbox: SandboxAnswer,
  StreamedEvent,
  StreamedDelta,
  Error: ErrorAnswer,
} as const;

type Json = Readonly<Record<string, unknown>>;

const STREAM_DESCRIPTION =
  "Server-sent events. A message without a name is a stored event (StreamedEvent); its id is the cursor. Named: `delta` " +
  "(StreamedDelta, on request), `caughtUp`, `lagged`, `end`. See docs/build/events.md.";

const CONTENTS = {
  stream: { "text/event-stream": { schema: { type: "string", description: STREAM_DESCRIPTION } } },
  lines: {
    "application/x-ndjson": {
      schema: { type: "string", description: "A bundle, one JSON object a line. See docs/build/bundle-format.md." },
    },
  },
  text: { "text/plain": { schema: { type: "string" } } },
  mcp: {
    "text/event-stream": {
      schema: {
        type: "string",
        description:
          "The Model Context Protocol over streamable HTTP, in both of its eras: a message of JSON-RPC 2.0 in, one out as " +
          "JSON, or with its progress as server-sent events. See docs/use/mcp.md.",
      },
    },
  },
} as const;

export function openApi(version: string): Json & { readonly openapi: string } {
  const schemas = componentSchemas();
  const paths: Record<string, Record<string, Json>> = {};
  for (const route of ROUTES) {
    paths[route.path] = { ...paths[route.path], [route.method.toLowerCase()]: operation(route, schemas) };
  }
  return {
    openapi: "3.1.0",
    info: { title: "Heddle", version, license: { name: "Apache-2.0", identifier: "Apache-2.0" } },
    servers: [{ url: "/" }],
    security: [{ token: [] }],
    paths,
    components: {
      securitySchemes: { token: { type: "http", scheme: "bearer" } },
      schemas: Object.fromEntries(
        Object.entries(schemas).filter(([name]) => name in COMPONENTS || name.startsWith(SHARED)),
      ),
      responses: { Error: { description: "What went wrong, by its code", content: json(ref("Error")) } },
    },
  };
}

/** All in one registry, so that a shape inside another is named rather than repeated. */
function componentSchemas(): Readonly<Record<string, Json>> {
  const registry = z.registry<{ id: string }>();
  for (const [id, schema] of Object.entries(COMPONENTS)) registry.add(schema, { id });
  for (const { name, params, query, body, answer } of ROUTES) {
    addNew(registry, `${name}.params`, params);
    addNew(registry, `${name}.query`, query);
    if (body !== undefined) addNew(registry, `${name}.body`, body);
    if (typeof answer !== "string") addNew(registry, `${name}.answer`, answer);
  }
  const { schemas } = z.toJSONSchema(registry, { uri: (id) => `#/components/schemas/${id}`, io: "input" });
  const { __shared: shared, ...own } = schemas;
  const named = Object.entries(own).map(([name, { $id: _id, $schema: _schema, ...schema }]) => [name, schema]);
  const inner = Object.entries(shared?.$defs ?? {});
  return withSharedNamed(Object.fromEntries([...named, ...inner.map(([name, schema]) => [sharedName(name), schema])]));
}

const SHARED = "Shared";

/** Shapes without a name of their own that lead back to themselves: any JSON, for one. */
function sharedName(word: string): string {
  return word.replace(/^schema/, SHARED);
}

function withSharedNamed(schemas: Readonly<Record<string, Json>>): Readonly<Record<string, Json>> {
  const text = JSON.stringify(schemas).replaceAll(/__shared#\/\$defs\/(schema\d+)/g, (_all, word: string) =>
    sharedName(word),
  );
  return JSON.parse(text) as Readonly<Record<string, Json>>;
}

function addNew(registry: z.core.$ZodRegistry<{ id: string }>, id: string, schema: z.ZodType): void {
  // A shape that several routes share, or that is a component, is described once.
  if (!registry.has(schema)) registry.add(schema, { id });
}

const SCHEMA_NAMES = new Map<z.ZodType, string>(Object.entries(COMPONENTS).map(([name, schema]) => [schema, name]));

function described(schemas: Readonly<Record<string, Json>>, schema: z.ZodType): Json {
  const component = SCHEMA_NAMES.get(schema);
  if (component !== undefined) return ref(component);
  const owner = ROUTES.find((route) => [route.params, route.query, route.body, route.answer].includes(schema));
  if (owner === undefined) return {};
  const part = (["params", "query", "body", "answer"] as const).find((name) => owner[name] === schema) ?? "body";
  return schemas[`${owner.name}.${part}`] ?? {};
}

function operation(route: Route, schemas: Readonly<Record<string, Json>>): Json {
  const { name, summary, scope, params, query, body, answer, status } = route;
  const content = typeof answer === "string" ? CONTENTS[answer] : json(described(schemas, answer));
  const taken = route.takes === "lines" ? CONTENTS.lines : body && json(described(schemas, body));
  const parameters = [
    ...parametersOf(described(schemas, params), "path"),
    ...parametersOf(described(schemas, query), "query"),
  ];
  return {
    operationId: name,
    summary,
    "x-heddle-scope": scope,
    ...(scope === "public" || scope === "signed" ? { security: [] } : {}),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(taken === undefined ? {} : { requestBody: { required: true, content: taken } }),
    responses: {
      [status]: { description: "Done", content },
      default: { $ref: "#/components/responses/Error" },
    },
  };
}

function parametersOf({ properties, required }: Json, location: "path" | "query"): readonly Json[] {
  const needed = Array.isArray(required) ? required : [];
  return Object.entries(properties ?? {}).map(([name, schema]) => ({
    name,
    in: location,
    required: location === "path" || needed.includes(name),
    schema,
  }));
}

function ref(name: string): Json {
  return { $ref: `#/components/schemas/${name}` };
}

function json(schema: Json): Json {
  return { "application/json": { schema } };
}
