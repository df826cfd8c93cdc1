/** All checks of a spec, one after another in the order of the spec, each told how it went. */
import type { CheckResult, TaskBaseline } from "@heddle/protocol";
import type { CheckPlace } from "./check.ts";
import { openCommands, type Commands } from "./commands.ts";
import { nameChecks } from "./names.ts";
import { runCheck } from "./run-check.ts";
import { openWorkspace, type Workspace } from "./workspace.ts";

export interface OpenPlace extends AsyncDisposable {
  readonly files: Workspace;
  readonly commands: Commands;
}

/** `workspace.missing` when there is none. */
export async function openCheckPlace(place: CheckPlace): Promise<OpenPlace> {
  const masked = [place.home, ...(place.masked ?? [])];
  const files = await openWorkspace(place.folder, { masked, signal: place.signal });
  const commands = openCommands(place, files);
  return { files, commands, [Symbol.asyncDispose]: () => commands[Symbol.asyncDispose]() };
}

export interface AllRan {
  readonly results: readonly CheckResult[];
  readonly boxes: Readonly<Record<string, number>>;
}

export async function runAll(
  { spec, signal }: CheckPlace,
  { files, commands }: OpenPlace,
  baseline: TaskBaseline,
): Promise<AllRan> {
  const results: CheckResult[] = [];
  const boxes: Record<string, number> = {};
  for (const named of nameChecks(spec.checks)) {
    signal.throwIfAborted();
    const ran = await runCheck(named, { files, commands, baseline, signal });
    results.push(ran.result);
    Object.assign(boxes, ran.boxes);
  }
  return { results, boxes };
}

/** Each with the checks below it. */
export function withParts(results: readonly CheckResult[]): readonly CheckResult[] {
  return results.flatMap((result) => [result, ...(result.parts ?? [])]);
}
