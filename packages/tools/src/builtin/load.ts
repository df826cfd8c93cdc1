/**
 * The built-in tools by their canonical names. Each is loaded by its first call, or in idle time before; only the one
 * that almost every turn calls is always loaded, because a separate file costs more.
 */
import type { ClientTool } from "@heddle/protocol";
import type { ClientTools } from "../calls/client-tools.ts";
import type { EnvelopeHops, EvidencePort, GoalEnd, Tool } from "../calls/tool.ts";
import { execCommand } from "./exec-command.ts";

const LOAD: Readonly<Record<string, () => Promise<Tool>>> = {
  exec_command: async () => execCommand,
  write_stdin: async () => (await import("./write-stdin.ts")).writeStdin,
  apply_patch: async () => (await import("./apply-patch.ts")).applyPatch,
  update_plan: async () => (await import("./update-plan.ts")).updatePlan,
  request_permissions: async () => (await import("./request-permissions.ts")).requestPermissions,
  view_image: async () => (await import("./view-image.ts")).viewImage,
  bash: async () => (await import("./bash.ts")).bash,
  read: async () => (await import("./read.ts")).read,
  edit: async () => (await import("./edit.ts")).edit,
  write: async () => (await import("./write.ts")).write,
  list: async () => (await import("./list.ts")).list,
  glob: async () => (await import("./glob.ts")).glob,
  grep: async () => (await import("./grep.ts")).grep,
};

export async function loadTool(name: string): Promise<Tool | undefined> {
  return Object.hasOwn(LOAD, name) ? LOAD[name]?.() : undefined;
}

/** Offered where a user can be asked. */
export async function loadAskTool(): Promise<Tool> {
  return (await import("./request-user-input.ts")).requestUserInput;
}

/** Offered in turns of tasks. */
export async function loadReportTool(): Promise<Tool> {
  return (await import("./task-report.ts")).taskReport;
}

export async function loadGoalTool(end: GoalEnd): Promise<Tool> {
  return (await import("./update-goal.ts")).goalTool(end);
}

export async function loadSearchTool(port: EvidencePort): Promise<Tool> {
  return (await import("./evidence-search.ts")).evidenceSearch(port);
}

export async function loadNoteTool(port: EvidencePort): Promise<Tool> {
  return (await import("./evidence-note.ts")).evidenceNote(port);
}

export async function loadHopTool(hops: EnvelopeHops): Promise<Tool> {
  return (await import("./hop.ts")).hopTool(hops);
}

export async function loadClientTool(definition: ClientTool, client: ClientTools): Promise<Tool> {
  return (await import("./client-tool.ts")).clientTool(definition, client);
}

export async function loadSkillTool(folder: string): Promise<Tool> {
  return (await import("./skill.ts")).skillTool(folder);
}

/** In the order in which they are offered. */
export async function loadTools(): Promise<Tool[]> {
  return Promise.all(Object.values(LOAD).map((load) => load()));
}
