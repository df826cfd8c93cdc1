/** Tools that a client brings along and carries out itself, over its own connection. */
import { z } from "zod";

export const ClientTool = z.object({
  /** As the client knows it. */
  name: z.string(),
  /** Tools of one kind, under one name. */
  namespace: z.string().optional(),
  description: z.string(),
  /** JSON Schema of the arguments, as the client gave it. */
  parameters: z.record(z.string(), z.unknown()),
});
export type ClientTool = z.infer<typeof ClientTool>;
