/** The dialect of each kind of program, loaded when it is spoken. */
import type { Dialect } from "./conversation.ts";
import type { AgentProgram } from "./find-program.ts";

export async function dialectOf({ protocol }: Pick<AgentProgram, "protocol">): Promise<Dialect> {
  switch (protocol) {
    case "codex":
      return (await import("./codex.ts")).codexDialect;
    case "codex-exec":
      return (await import("./codex-exec.ts")).codexExecDialect;
    case "claude":
      return (await import("./claude.ts")).claudeDialect;
    case "opencode":
      return (await import("./opencode.ts")).openCodeDialect;
    case "acp":
      return (await import("./acp.ts")).acpDialect;
  }
}
