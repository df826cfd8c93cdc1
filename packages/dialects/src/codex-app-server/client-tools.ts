/** Tools that clients bring along: declared, called, answered. */
import { z } from "zod";
import type { ClientTool, InputPart, Item, ItemOf } from "@heddle/protocol";
import { dataImage } from "./input.ts";
import type { Outgoing } from "./shapes.ts";

/** Loose: fields of the older form are seen, and refused. */
const FunctionTool = z.looseObject({
  type: z.literal("function"),
  name: z.string(),
  description: z.string(),
  inputSchema: z.unknown(),
  /** Tools are few here; each is offered at once. */
  deferLoading: z.boolean().optional(),
});
type FunctionTool = z.infer<typeof FunctionTool>;

const Tool = z.discriminatedUnion("type", [
  FunctionTool,
  z.looseObject({
    type: z.literal("namespace"),
    name: z.string(),
    description: z.string(),
    tools: z.array(FunctionTool),
  }),
]);

/** The older form: flat, without a type. */
const LegacyTool = z.object({
  type: z.never().optional(),
  namespace: z.string().nullish(),
  name: z.string(),
  description: z.string(),
  inputSchema: z.unknown(),
  deferLoading: z.boolean().nullish(),
  exposeToContext: z.boolean().nullish(),
});

export const DynamicToolParam = z.union([Tool, LegacyTool]);
export type DynamicToolParam = z.infer<typeof DynamicToolParam>;

export type ReadTools = { readonly tools: readonly ClientTool[] } | { readonly problem: string };

const NAME = /^[a-zA-Z0-9_-]+$/;

/** The tools as the engine takes them, or what is wrong with the first invalid one, as the original reports it. */
export function clientToolsFrom(given: readonly DynamicToolParam[]): ReadTools {
  const isLegacy = given.some((tool) => tool.type === undefined || "namespace" in tool || "exposeToContext" in tool);
  if (isLegacy && given.some(({ type }) => type !== undefined)) {
    return { problem: "Invalid request: dynamic tools must use either canonical or legacy format consistently" };
  }
  const tools: ClientTool[] = [];
  const names = new Set<string>();
  for (const param of given.map(canonical)) {
    const namespace = param.type === "namespace" ? param : undefined;
    const problem = namespace === undefined ? undefined : namespaceProblem(namespace);
    if (problem !== undefined) return { problem };
    for (const tool of param.type === "namespace" ? param.tools : [param]) {
      const wrong = toolProblem(tool, namespace?.name);
      if (wrong !== undefined) return { problem: wrong };
      const whole = namespace === undefined ? tool.name : `${namespace.name}.${tool.name}`;
      const where =
        isLegacy && namespace !== undefined ? ` in namespace ${namespace.name}: ${tool.name}` : `: ${whole}`;
      if (names.has(whole)) return { problem: `duplicate dynamic tool name${where}` };
      names.add(whole);
      tools.push(clientTool(tool, namespace?.name));
    }
  }
  return { tools };
}

function canonical(param: DynamicToolParam): z.infer<typeof Tool> {
  if (param.type !== undefined) return param;
  const { name, description, inputSchema, namespace, exposeToContext } = param;
  const deferLoading = param.deferLoading ?? exposeToContext === false;
  const tool: FunctionTool = { type: "function", name, description, inputSchema, deferLoading };
  if (namespace === undefined || namespace === null) return tool;
  return { type: "namespace", name: namespace, description: "", tools: [tool] };
}

function clientTool({ name, description, inputSchema }: FunctionTool, namespace: string | undefined): ClientTool {
  const parameters = isRecord(inputSchema) ? inputSchema : {};
  return { name, description, parameters, ...(namespace === undefined ? {} : { namespace }) };
}

function namespaceProblem({
  name,
  tools,
}: {
  readonly name: string;
  readonly tools: readonly unknown[];
}): string | undefined {
  if (name === "") return "dynamic tool namespace must not be empty";
  if (!NAME.test(name)) return `dynamic tool namespace must match ${NAME.source} to match Responses API: ${name}`;
  if (isReserved(name)) return `dynamic tool namespace is reserved: ${name}`;
  if (tools.length === 0) return `dynamic tool namespace must contain at least one tool: ${name}`;
  return undefined;
}

function toolProblem(
  { name, inputSchema, deferLoading }: FunctionTool,
  namespace: string | undefined,
): string | undefined {
  if (name === "") return "dynamic tool name must not be empty";
  if (!NAME.test(name)) return `dynamic tool name must match ${NAME.source} to match Responses API: ${name}`;
  if (isReserved(name)) return `dynamic tool name is reserved: ${name}`;
  if (deferLoading === true && namespace === undefined) {
    return `deferred dynamic tool must include a namespace: ${name}`;
  }
  const wrong = schemaProblem(inputSchema);
  return wrong === undefined ? undefined : `dynamic tool input schema is not supported for ${name}: ${wrong}`;
}

/** Names under which models know the tools of MCP servers. */
function isReserved(name: string): boolean {
  return name === "mcp" || name.startsWith("mcp__");
}

function schemaProblem(schema: unknown): string | undefined {
  if (!isRecord(schema)) return `${typeNamed(schema)}, expected struct JsonSchema`;
  const { properties } = schema;
  if (properties === undefined || properties === null || isRecord(properties)) return undefined;
  return `invalid type: ${typeof properties}, expected a map`;
}

function typeNamed(value: unknown): string {
  if (typeof value === "string") return `invalid type: string ${JSON.stringify(value)}`;
  return `invalid type: ${value === null ? "null" : Array.isArray(value) ? "sequence" : typeof value}`;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function isClientCall(item: Item): item is ItemOf<"toolCall"> & { client: object } {
  return item.type === "toolCall" && item.client !== undefined;
}

/** What clients are asked when the call of one of their tools begins. */
export function clientCall(
  item: Item,
  at: { readonly threadId: string; readonly turnId: string },
): readonly Outgoing[] {
  if (!isClientCall(item) || item.status !== "inProgress") return [];
  const { threadId, turnId } = at;
  const { id: callId, tool, client, arguments: args = {} } = item;
  // Clients know the call by the item that shows it.
  const params = { threadId, turnId, callId, namespace: client.namespace ?? null, tool, arguments: args };
  return [{ kind: "call", turnId, itemId: item.id, request: { method: "item/tool/call", params } }];
}

/** The call as the original shows it, without its id, name and end. */
export function clientCallFields(item: ItemOf<"toolCall"> & { client: object }): Readonly<Record<string, unknown>> {
  const isOver = item.status !== "inProgress";
  const { namespace, content } = item.client;
  return {
    namespace: namespace ?? null,
    tool: item.tool,
    arguments: item.arguments ?? {},
    contentItems: isOver ? (content ?? []).map(contentItem) : null,
    success: isOver ? item.status === "completed" : null,
    durationMs: item.durationMs ?? null,
  };
}

function contentItem(part: InputPart): Readonly<Record<string, unknown>> {
  if (part.type === "text") return { type: "inputText", text: part.text };
  return { type: "inputImage", imageUrl: `data:${part.mediaType};base64,${part.base64}` };
}

const Content = z.discriminatedUnion("type", [
  z.object({ type: z.literal("inputText"), text: z.string() }),
  z.object({ type: z.literal("inputImage"), imageUrl: z.string() }),
  z.object({ type: z.literal("inputAudio"), audioUrl: z.string() }),
]);
const ToolAnswer = z.object({ contentItems: z.array(Content), success: z.boolean() });

export interface ClientAnswer {
  readonly content: readonly InputPart[];
  /** Why it failed, if known. */
  readonly failure?: string;
}

/** An unreadable answer is a failure. */
export function clientAnswerFrom(result: unknown): ClientAnswer {
  const parsed = ToolAnswer.safeParse(result);
  if (!parsed.success) {
    const failure = "dynamic tool response was invalid";
    return { content: [{ type: "text", text: failure }], failure };
  }
  const { contentItems, success } = parsed.data;
  const content = contentItems.map(inputPart);
  return success ? { content } : { content, failure: "the client's tool reported a failure" };
}

function inputPart(item: z.infer<typeof Content>): InputPart {
  if (item.type === "inputText") return { type: "text", text: item.text };
  const url = item.type === "inputImage" ? item.imageUrl : item.audioUrl;
  return (
    dataImage(url) ?? {
      type: "text",
      text: `[${item.type === "inputImage" ? "an image" : "audio"} that is not shown here]`,
    }
  );
}
