/**
 * What a model said, in one shape for all wires. Stored with `model.responded` and sent back on the next request,
 * so it keeps what only the provider understands (`opaque`: encrypted reasoning, signatures) untouched.
 */
import { z } from "zod";

export const Opaque = z.object({ wire: z.string(), data: z.unknown() });
export type Opaque = z.infer<typeof Opaque>;

/** What a message is for, where the model says so. */
export const MessagePhase = z.enum(["commentary", "partial_answer", "final_answer"]);
export type MessagePhase = z.infer<typeof MessagePhase>;

/** A search that the provider itself made for the model. */
export const WebSearch = z.object({
  /** The provider's own name for it. */
  id: z.string().optional(),
  /** What was looked for, or at, in short. */
  query: z.string(),
  action: z
    .object({
      kind: z.enum(["search", "openPage", "findInPage"]),
      query: z.string().optional(),
      queries: z.array(z.string()).optional(),
      url: z.string().optional(),
      pattern: z.string().optional(),
    })
    .optional(),
});
export type WebSearch = z.infer<typeof WebSearch>;

/** A page that a text rests on. */
export const Source = z.object({ url: z.string(), title: z.string().optional() });
export type Source = z.infer<typeof Source>;

export const ModelOutputPart = z.discriminatedUnion("kind", [
  z.object({
    kind: z.literal("text"),
    text: z.string(),
    phase: MessagePhase.optional(),
    /** Each page once, in the order of the text. */
    sources: z.array(Source).optional(),
    opaque: Opaque.optional(),
  }),
  z.object({
    kind: z.literal("reasoning"),
    /** Readable summaries, one string a section. */
    summary: z.array(z.string()),
    /** The raw reasoning, where the provider shows it. */
    text: z.string().optional(),
    /** Not reasoning but a search, which goes back to its provider in the same way. */
    search: WebSearch.optional(),
    opaque: Opaque.optional(),
  }),
  z.object({
    kind: z.literal("toolCall"),
    callId: z.string(),
    name: z.string(),
    /** As the model wrote it: JSON text for `json`, the bare text for `freeform`. May be malformed. */
    input: z.string(),
    shape: z.enum(["json", "freeform"]),
    opaque: Opaque.optional(),
  }),
]);
export type ModelOutputPart = z.infer<typeof ModelOutputPart>;
export type ModelToolCall = Extract<ModelOutputPart, { kind: "toolCall" }>;

/** Tokens of one model request. `inputTokens` includes the cached ones, `outputTokens` includes reasoning. */
export const Usage = z.object({
  inputTokens: z.number().int().nonnegative(),
  cachedInputTokens: z.number().int().nonnegative(),
  cacheWriteInputTokens: z.number().int().nonnegative(),
  outputTokens: z.number().int().nonnegative(),
  reasoningOutputTokens: z.number().int().nonnegative(),
});
export type Usage = z.infer<typeof Usage>;
