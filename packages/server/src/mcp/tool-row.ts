/**
 * What a tool of Heddle is for MCP clients: one row of data, from which calls are listed, checked, refused and carried out. A
 * row cannot leave out who may call it.
 */
import { z } from "zod";
import type { Scope } from "../access/principals.ts";
import { parseGiven, type DoorCall } from "../http/route.ts";
import type { JsonObject, SurfaceCall, SurfacePart } from "./surface.ts";

export interface ToolContext extends DoorCall, Pick<SurfaceCall, "signal" | "progress"> {}

export interface Answered {
  readonly content: readonly SurfacePart[];
  readonly structured?: JsonObject;
}

export interface ToolRow {
  readonly name: string;
  readonly description: string;
  readonly scope: Scope;
  readonly input: z.ZodType;
  /** `text`: nothing but text. */
  readonly output: z.ZodType | "text";
  run(given: JsonObject, context: ToolContext): Promise<Answered>;
}

interface RowSpec<I extends z.ZodType> extends Pick<ToolRow, "name" | "description" | "scope"> {
  readonly input: I;
}

interface ObjectSpec<I extends z.ZodType, O extends z.ZodObject> extends RowSpec<I> {
  readonly output: O;
  readonly handle: (input: z.output<I>, context: ToolContext) => Promise<z.output<O>>;
}

interface TextSpec<I extends z.ZodType> extends RowSpec<I> {
  readonly handle: (input: z.output<I>, context: ToolContext) => Promise<string>;
}

/** Answers with an object, and with the same as text for clients that read nothing else. */
export function toolRow<I extends z.ZodType, O extends z.ZodObject>({ handle, ...row }: ObjectSpec<I, O>): ToolRow {
  return {
    ...row,
    async run(given, context) {
      const structured = await handle(inputOf(row.input, given), context);
      return { content: [{ type: "text", text: JSON.stringify(structured) }], structured };
    },
  };
}

/** Answers with text that others wrote, quoted: an object would hold it unmarked. */
export function textRow<I extends z.ZodType>({ handle, ...row }: TextSpec<I>): ToolRow {
  return {
    ...row,
    output: "text",
    run: async (given, context) => ({
      content: [{ type: "text", text: await handle(inputOf(row.input, given), context) }],
    }),
  };
}

function inputOf<I extends z.ZodType>(schema: I, given: JsonObject): z.output<I> {
  // Parsed by the very schema that the type comes from.
  return parseGiven(schema, given, "the input") as z.output<I>;
}

/** As clients are shown it. */
export function jsonSchemaOf(schema: z.ZodType, io: "input" | "output"): JsonObject {
  const { $schema: _schema, ...shape } = z.toJSONSchema(schema, { io, unrepresentable: "any" });
  return shape;
}
