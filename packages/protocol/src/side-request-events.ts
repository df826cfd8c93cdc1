/** Short model requests outside the conversation, made for a thread and no part of it: their usage, never their text. */
import { z } from "zod";
import { Usage } from "./model-output.ts";

export const sideRequestEvents = [
  z.object({
    type: z.literal("background.ran"),
    v: z.literal(1),
    purpose: z.enum(["title", "summary", "sample"]),
    provider: z.string(),
    model: z.string(),
    outcome: z.enum(["ok", "failed"]),
    failureCode: z.string().optional(),
    usage: Usage,
    costUsd: z.number().optional(),
    durationMs: z.number(),
  }),
] as const;
