/** The names of the sandbox modes. Apart from their schema, because every run needs them and few runs parse. */
import type { SandboxMode } from "./envelope.ts";

export const SANDBOX_MODES = ["read-only", "workspace-write", "danger-full-access"] as const;

export function isSandboxMode(text: string): text is SandboxMode {
  return SANDBOX_MODES.some((mode) => mode === text);
}
