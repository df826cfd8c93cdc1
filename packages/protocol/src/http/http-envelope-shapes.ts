/** The registry of envelopes over HTTP: what each allows, and the ways from one to another. */
import { z } from "zod";
import { ApprovalPolicy, Effect, EnvelopeLimits, HopEdge, Network } from "../envelopes/envelope.ts";
import { Folder } from "./http-parts.ts";

export const EnvelopesQuery = z.strictObject({
  workspace: Folder.optional().describe("Whose project's envelopes count besides; the server's own folder when absent"),
});
export const EnvelopeNameParams = z.strictObject({ name: z.string().min(1).max(200) });
export const EnvelopeDetail = z.object({
  id: z.string(),
  description: z.string(),
  source: z.enum(["built-in", "user", "project"]),
  file: z.string().optional(),
  sandboxMode: z.string().describe("The sandbox mode that clients of Codex see"),
  tools: z.array(z.string()),
  effects: z.array(Effect),
  read: z.array(z.string()).optional().describe("Absent: everything that is not masked"),
  write: z.array(z.string()).describe("As it is written: `.` is the workspace, `name?` counts where it exists"),
  masked: z.array(z.string()),
  network: z.union([Network, z.literal("settings")]).describe("`settings`: as those of the turn say"),
  sandbox: z.enum(["required", "off"]),
  approval: z.union([ApprovalPolicy, z.literal("settings")]),
  exits: z.array(HopEdge),
  limits: EnvelopeLimits,
  outcome: z.record(z.string(), z.unknown()).optional().describe("JSON Schema of what it is left with"),
  manifest: z.literal(true).optional().describe("Files are listed with their hashes when it is entered and left"),
});
export type EnvelopeDetail = z.output<typeof EnvelopeDetail>;
const Edge = HopEdge.extend({ from: z.string() });
export const EnvelopeList = z.object({
  data: z.array(EnvelopeDetail),
  edges: z.array(Edge).describe("All ways between them; `exits` of each says the same"),
});
export type EnvelopeList = z.output<typeof EnvelopeList>;
