/** What a wire is: a request turned into HTTP, and a stream of events turned into an answer. No I/O, no retries. */
import type { Opaque } from "@heddle/protocol";
import type { Answer } from "../answer.ts";
import type { ModelInfo } from "../catalog.ts";
import type { Provider } from "../providers.ts";
import type { ModelRequest, ToolSpec } from "../stream.ts";
import { fitToolSchema } from "./tool-schema.ts";

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
   * Takes one event. True when it moved the answer on; pings and events nobody knows do not.
   * Throws a ProviderError when the event reports one, or is not what the wire allows.
   */
  push(event: ServerEvent): boolean;
  /** The stream is over: finishes the answer if it can stand as it is. */
  end(): void;
}

export interface Wire {
  encode(context: WireContext): WireCall;
  decode(context: WireContext, answer: Answer): Decoder;
}

/** What only one provider understands goes back to that provider alone. */
export function keep(provider: Provider, data: unknown): Opaque {
  return { wire: tagOf(provider), data };
}

export function kept(provider: Provider, opaque: Opaque | undefined): unknown {
  return opaque?.wire === tagOf(provider) ? opaque.data : undefined;
}

function tagOf(provider: Provider): string {
  return `${provider.wire}:${provider.id}`;
}

/** Name of the schema sent for `outputSchema`, where a wire wants one. */
export const OUTPUT_SCHEMA_NAME = "heddle_output_schema";

/** A freeform tool on a wire that knows only JSON arguments. */
const FREEFORM_PARAMETERS = {
  type: "object",
  properties: { input: { type: "string" } },
  required: ["input"],
  additionalProperties: false,
} as const;

export interface OfferedTool {
  readonly name: string;
  readonly description: string;
  readonly parameters: Readonly<Record<string, unknown>>;
}

/** A tool as a wire with JSON arguments offers it, its schema as the maker of the model takes it. */
export function offeredTool(tool: ToolSpec, { family }: Pick<ModelInfo, "family">): OfferedTool {
  const { name, description } = tool;
  if (tool.shape === "freeform") return { name, description, parameters: FREEFORM_PARAMETERS };
  const rules = family === "gemini" || family === "anthropic" ? family : "general";
  const { parameters, note } = fitToolSchema(tool.parameters ?? NO_PARAMETERS, rules);
  return { name, description: note === undefined ? description : `${description}\n\n${note}`.trim(), parameters };
}

const NO_PARAMETERS = { type: "object", properties: {} } as const;

/** For a service that would refuse the schema: it is asked for in words, and the answer is checked all the same. */
export function withSchemaInWords(instructions: string, outputSchema: unknown): string {
  const ask = `When you are done, answer with JSON only, matching this schema: ${JSON.stringify(outputSchema)}`;
  return `${instructions}\n\n${ask}`;
}
