export { dispatch, type DispatchOutcome } from "./calls/dispatch.ts";
export {
  HOP,
  isBuiltInName,
  toolsFor,
  warmTools,
  type MoreTools,
  type OfferedTool,
  type Toolset,
} from "./calls/registry.ts";
export type { ChildRequest, ChildThreads, ChildToolset } from "./calls/child-threads.ts";
export type { AgentAnswer, AgentMessage, MessagePort, MessageToolEntry } from "./calls/messages.ts";
export type { ClientTools } from "./calls/client-tools.ts";
export type { McpReport, McpServers } from "./mcp/named-tools.ts";
export {
  createEnvelopeMeters,
  type EnvelopeMeter,
  type EnvelopeMeters,
  type SinceEntered,
} from "./calls/envelope-meter.ts";
export { envelopeFor, envelopeHash, gateHash, narrowEnvelope, widenEnvelope } from "./calls/envelopes.ts";
export { BUILT_IN_ENVELOPES, builtInEnvelope, ENVELOPE_OF_MODE, OBSERVE } from "./envelopes/built-in.ts";
export { resolveEnvelope, WEB_SEARCH, type Surroundings } from "./envelopes/resolve.ts";
export { sandboxModeOf, type EnvelopeSpec } from "./envelopes/spec.ts";
export type { Hop, Hops, SandboxContext } from "./calls/hop-request.ts";
export { approvalKey } from "./calls/policy.ts";
export { openThreadState, QUIET } from "./calls/thread-state.ts";
export type { Admission, EnvelopeHops, EvidencePort, GoalEndStatus, OngoingItem, ThreadState } from "./calls/tool.ts";
export { agentEnvironment, commandEnvironment } from "./commands/environment.ts";
export { keptWhole } from "./commands/command-item.ts";
export { CappedOutput } from "./commands/output.ts";
export { sendInput } from "./commands/send-input.ts";
export { fitText } from "./calls/fit-text.ts";
export { heddleFolders, pluginsRoot, worktreesRoot } from "./files/heddle-folders.ts";
export { temporaryFolder } from "./sandbox/temporary-folder.ts";
export { requireOwnFolder } from "./files/own-folder.ts";
export { readFileInside } from "./files/paths.ts";
export { isDeadProcess, readProcStat } from "./commands/proc-stat.ts";
export { startCommand, type OwnedProcess, type StartCommandOptions } from "./commands/process.ts";
export { inspectProcess, treeUse, type ProcessInfo, type TreeUse } from "./commands/process-info.ts";
export { endLeftProcesses, endProcess, type ProcessIdentity } from "./commands/process-tree.ts";
export { findSkills, readSkill, type Skill, type SkillsFound } from "./skills/skills.ts";
export { openSandbox, openUnconfined } from "./sandbox/open.ts";
export { probeSandbox, type SandboxFound } from "./sandbox/probe.ts";
export type { SandboxLimits } from "./sandbox/limits.ts";
export type { ProtectedPathViolation, Sandbox, SandboxPolicy } from "./sandbox/sandbox.ts";
