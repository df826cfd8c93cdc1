/** Params of `command/exec` and of what follows it. */
import { z } from "zod";
import { SandboxPolicyParam } from "./settings.ts";

const flag = z.boolean().nullish();
const TerminalSize = z.object({ rows: z.int().min(0).max(65_535), cols: z.int().min(0).max(65_535) });

export const CommandExecParams = z.object({
  command: z.array(z.string()),
  processId: z.string().nullish(),
  tty: flag,
  streamStdin: flag,
  streamStdoutStderr: flag,
  outputBytesCap: z.int().nonnegative().nullish(),
  disableOutputCap: flag,
  disableTimeout: flag,
  timeoutMs: z.int().nullish(),
  cwd: z.string().nullish(),
  env: z.record(z.string(), z.string().nullable()).nullish(),
  size: TerminalSize.nullish(),
  sandboxPolicy: SandboxPolicyParam.nullish(),
  permissionProfile: z.string().nullish(),
});
export type CommandExecParams = z.infer<typeof CommandExecParams>;

export const CommandExecWriteParams = z.object({
  processId: z.string(),
  deltaBase64: z.string().nullish(),
  closeStdin: flag,
});
export type CommandExecWriteParams = z.infer<typeof CommandExecWriteParams>;

export const CommandExecTerminateParams = z.object({ processId: z.string() });
export type CommandExecTerminateParams = z.infer<typeof CommandExecTerminateParams>;

export const CommandExecResizeParams = z.object({ processId: z.string(), size: TerminalSize });
export type CommandExecResizeParams = z.infer<typeof CommandExecResizeParams>;
