/** The shapes of what commands of a thread run now, and of their whole outputs. Part of http-shapes.ts. */
import { z } from "zod";
import { ThreadParams, wholeNumber } from "./http-parts.ts";

export const ProcessParams = ThreadParams.extend({ pid: wholeNumber("pid").describe("Of a process of the thread") });
export const EndProcessBody = z.strictObject({
  startTicks: z.string().max(40).describe("As it was listed: with the pid it names one process for good"),
});
const Process = z.object({
  pid: z.number().int(),
  parent: z.number().int(),
  startTicks: z.string(),
  command: z.string(),
  state: z.string().describe("Of the kernel: R, S, D, Z, T"),
  waitChannel: z.string().optional(),
  cpuMs: z.number(),
  runningMs: z.number(),
  openSockets: z.number().int(),
  readsStdin: z.boolean().describe("It waits for input that does not come"),
});
export const ProcessList = z.object({
  data: z.array(
    z.object({
      processId: z.string().describe("Of the command"),
      command: z.string().describe("As it was started"),
      isBeyond: z
        .boolean()
        .describe("It runs in another sandbox than its thread, or in none: only an owner types there"),
      pid: z.number().int(),
      hasInput: z.boolean(),
      awaitedBy: z.array(z.string()).describe("Items whose calls wait for it; none: it runs in the background"),
      processes: z.array(Process).describe("Its whole tree"),
    }),
  ),
});
export const EndedProcess = z.object({ outcome: z.enum(["ended", "gone", "stays"]) });

export const InputParams = ThreadParams.extend({
  processId: z.string().min(1).max(40).describe("Of a running command"),
});
const MAX_INPUT_CHARS = 64 * 1024;
export const InputBody = z
  .strictObject({
    text: z.string().max(MAX_INPUT_CHARS).optional().describe("Typed as it is: a line ends with a line feed"),
    end: z.boolean().optional().describe("true: its input ends after that, as with Ctrl-D"),
  })
  .refine(({ text = "", end = false }) => text !== "" || end, "there is neither text nor an end");
export const WrittenInput = z.object({
  outcome: z.enum(["sent", "waits"]).describe("waits: the command does not read now; the text lies in its pipe"),
});

export const OutputParams = ThreadParams.extend({
  sha256: z
    .string()
    .regex(/^[0-9a-f]{64}$/, "a SHA-256 has 64 hexadecimal digits")
    .describe("`outputBlob` of an item"),
});
export const OutputQuery = z.strictObject({
  from: wholeNumber("from").optional().describe("First byte; 0 when absent"),
  limit: wholeNumber("limit").optional().describe("How many bytes; all when absent"),
});

export type ProcessList = z.output<typeof ProcessList>;
export type WrittenInput = z.output<typeof WrittenInput>;
export type EndedProcess = z.output<typeof EndedProcess>;
