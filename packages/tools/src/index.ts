export { dispatch, type DispatchOutcome } from "./calls/dispatch.ts";
export { isBuiltInName, toolsFor, warmTools, type MoreTools, type Toolset } from "./calls/registry.ts";
export type { ClientTools } from "./calls/client-tools.ts";
export type { McpReport, McpServers } from "./mcp/named-tools.ts";
export {
  aboveCeiling,
  envelopeFor,
  envelopeHash,
  narrowEnvelope,
  WEB_SEARCH,
  widenEnvelope,
} from "./calls/envelopes.ts";
export type { Hop, Hops, SandboxContext } from "./calls/hop-request.ts";
export { approvalKey } from "./calls/policy.ts";
export { openThreadState, QUIET } from "./calls/thread-state.ts";
export type { GoalEndStatus, OngoingItem, ThreadState } from "./calls/tool.ts";
export { agentEnvironment, commandEnvironment } from "./commands/environment.ts";
export { CappedOutput } from "./commands/output.ts";
export { fitText } from "./calls/fit-text.ts";
export { heddleFolders, pluginsRoot, worktreesRoot } from "./files/heddle-folders.ts";
export { temporaryFolder } from "./sandbox/temporary-folder.ts";
export { requireOwnFolder } from "./files/own-folder.ts";
export { readFileInside } from "./files/paths.ts";
export { isDeadProcess, readProcStat } from "./commands/proc-stat.ts";
export { startCommand } from "./commands/process.ts";
export { inspectProcess, treeUse, type ProcessInfo, type TreeUse } from "./commands/process-info.ts";
export { endProcess, type ProcessIdentity } from "./commands/process-tree.ts";
export { findSkills, readSkill, type Skill, type SkillsFound } from "./skills/skills.ts";
export { openSandbox, openUnconfined } from "./sandbox/open.ts";
export { probeSandbox, type SandboxFound } from "./sandbox/probe.ts";
export type { SandboxLimits } from "./sandbox/limits.ts";
export type { ProtectedPathViolation, Sandbox, SandboxPolicy } from "./sandbox/sandbox.ts";
