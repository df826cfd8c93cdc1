/** A wire turns a request into HTTP, and a stream of events into an answer. No I/O, no retries. */
import type { Opaque } from "@heddle/protocol";
import type { Answer } from "../requests/answer.ts";
import { verbosityText } from "./answering.ts";
import type { ModelInfo } from "../catalog/catalog.ts";
import { malformed } from "../requests/failure.ts";
import type { Provider } from "../providers/providers.ts";
import type { ModelRequest, ToolSpec } from "../requests/stream.ts";
import { fitToolSchema } from "./tool-schema.ts";
import { parseJson, record, type Fields } from "./untrusted.ts";

export interface WireCall {
  /** Appended to the base URL. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: unknown;
}

export interface WireContext {
  readonly provider: Provider;
  readonly request: ModelRequest;
  readonly info: ModelInfo;
}

export interface ServerEvent {
  readonly event?: string | undefined;
  readonly data: string;
}

export interface Decoder {
  /**
   * Takes one event. False for one that adds nothing to the answer, such as a ping or an unknown event.
   * Throws a ProviderError when the event reports an error or breaks the rules of the wire.
   */
  push(event: ServerEvent): boolean;
  /** The stream has ended: finishes the answer if it is complete without more. */
  end(): void;
}

export interface Wire {
  encode(context: WireContext): WireCall;
  decode(context: WireContext, answer: Answer): Decoder;
}

/** What only one provider understands is sent back to that provider alone. */
export function keep(provider: Provider, data: unknown): Opaque {
  return { wire: tagOf(provider), data };
}

export function kept(provider: Provider, opaque: Opaque | undefined): unknown {
  return opaque?.wire === tagOf(provider) ? opaque.data : undefined;
}

function tagOf(provider: Provider): string {
  return `${provider.wire}:${provider.id}`;
}

/** The fields of an event; one that is not JSON ends the answer. */
export function fieldsIn(provider: Provider, data: string): Fields {
  const fields = record(parseJson(data));
  if (fields === undefined) throw malformed(provider, "an event that is not JSON", data);
  return fields;
}

/** Far more than a model makes; events are compared with the parts before them. */
const MAX_PARTS = 1024;

export function requireFewParts(provider: Provider, parts: number): void {
  if (parts >= MAX_PARTS) throw malformed(provider, `more than ${MAX_PARTS} parts in one answer`, "");
}

/** A freeform tool on a wire that knows only JSON arguments. */
const FREEFORM_PARAMETERS = {
  type: "object",
  properties: { input: { type: "string" } },
  required: ["input"],
  additionalProperties: false,
} as const;

type OfferedTool = Required<Pick<ToolSpec, "name" | "description" | "parameters">>;

/** A tool on a wire with JSON arguments, with a schema that the maker of the model accepts. */
export function offeredTool(tool: ToolSpec, { family }: Pick<ModelInfo, "family">): OfferedTool {
  const { name, description } = tool;
  if (tool.shape === "freeform") return { name, description, parameters: FREEFORM_PARAMETERS };
  const rules = family === "gemini" || family === "anthropic" ? family : "general";
  const { parameters, note } = fitToolSchema(tool.parameters ?? NO_PARAMETERS, rules);
  return { name, description: note === undefined ? description : `${description}\n\n${note}`.trim(), parameters };
}

const NO_PARAMETERS = { type: "object", properties: {} } as const;

/** The instructions in their order, without empty ones; for wires that have one place for all of them. */
export function instructionTexts({ request, info }: Pick<WireContext, "request" | "info">): readonly string[] {
  const { instructions, developerInstructions = "" } = request;
  return [instructions, developerInstructions, verbosityText(request, info)].filter((text) => text !== "");
}

/** For a service that would refuse the schema: it is part of the instructions, and the answer is checked as always. */
export function schemaAsText(outputSchema: unknown): string {
  return `When you are done, answer with JSON only, matching this schema: ${JSON.stringify(outputSchema)}`;
}
