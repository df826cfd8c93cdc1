/** What a recorded call of a built-in tool did by its arguments: effects and paths. Written from their documentation. */
import { posix } from "node:path";
import { isFacts, textIn, textsIn } from "./facts.ts";

const SHELL = ["read", "exec"];
const CHANGE = ["read", "write"];

/** Of tools that are not here, servers' and clients' among them, only the name is judged. */
export const EFFECTS: Readonly<Record<string, readonly string[]>> = {
  exec_command: SHELL,
  bash: SHELL,
  write_stdin: SHELL,
  request_permissions: SHELL,
  apply_patch: CHANGE,
  edit: CHANGE,
  write: CHANGE,
  read: ["read"],
  list: ["read"],
  glob: ["read"],
  grep: ["read"],
  view_image: ["read"],
  skill: ["read"],
  update_plan: [],
  update_goal: [],
  request_user_input: [],
  task_report: [],
  hop: [],
  spawn_agent: ["spawn"],
  send_input: ["spawn"],
  wait_agent: ["spawn"],
  close_agent: ["spawn"],
  evidence_search: ["read"],
  evidence_note: [],
  list_agents: ["read"],
  tell_agent: ["read", "message"],
  ask_agent: ["read", "message"],
  answer_agent: ["message"],
};

export interface UsedPath {
  /** Absolute, without `.` and `..`. */
  readonly path: string;
  readonly access: "read" | "write";
}

const PATH_KEYS: Readonly<
  Record<string, { readonly key: string; readonly access: "read" | "write"; readonly isDefaultHere?: true }>
> = {
  read: { key: "file_path", access: "read" },
  edit: { key: "file_path", access: "write" },
  write: { key: "file_path", access: "write" },
  view_image: { key: "path", access: "read" },
  list: { key: "path", access: "read", isDefaultHere: true },
  glob: { key: "path", access: "read", isDefaultHere: true },
  grep: { key: "path", access: "read", isDefaultHere: true },
  bash: { key: "workdir", access: "read", isDefaultHere: true },
  exec_command: { key: "workdir", access: "read", isDefaultHere: true },
};

/** undefined: the arguments do not say, though the tool needs a path. Empty: the tool takes none. */
export function pathsOfCall(tool: string, args: unknown, cwd: string): readonly UsedPath[] | undefined {
  if (tool === "apply_patch") return patchedPaths(args, cwd);
  const rule = PATH_KEYS[tool];
  if (rule === undefined) return [];
  const named = isFacts(args) ? textIn(args, rule.key) : undefined;
  if (named === undefined && rule.isDefaultHere === undefined) return undefined;
  return [{ path: posix.resolve(cwd, named ?? "."), access: rule.access }];
}

const HEADER = /^\*\*\* (?:Add File|Delete File|Update File|Move to): (.+)$/;

/** Headers of files; lines of content begin with a plus, a minus or a blank and are none. */
function patchedPaths(args: unknown, cwd: string): readonly UsedPath[] | undefined {
  const patch =
    typeof args === "string" ? args : isFacts(args) ? (textIn(args, "patch") ?? textIn(args, "input")) : undefined;
  if (patch === undefined) return undefined;
  const folders = isFacts(args) ? (textsIn(args, "folders") ?? []) : [];
  const folder = posix.resolve(cwd, ...folders);
  const named = patch.split(/\r?\n/).flatMap((line) => HEADER.exec(line)?.[1]?.trim() ?? []);
  return named.map((path) => ({ path: posix.resolve(folder, path), access: "write" }));
}
