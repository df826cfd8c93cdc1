/**
 * Where the beginning and the frozen work of a task are, in Heddle's home, which no agent sees:
 *
 *   <home>/rooms/<task id>/base      the workspace as it was when the task began
 *   <home>/rooms/<task id>/before    what there was in it before agents of earlier tasks whose changes nobody judged
 *   <home>/rooms/<task id>/work-3    what had changed when the third prompt's work was claimed
 *   <home>/rooms/<task id>/left-4    what had changed when the fourth prompt's turn ended without a claim: no content
 *   <home>/rooms/<task id>/abandoned what it had left before its present beginning and nobody judged, no content
 *   <home>/rooms/<task id>/gone      all that stays of a deleted task: what it left and nobody judged, no content
 *
 * Of a task there is one beginning and the work that was judged last, beside which new work is frozen; no more.
 */
import { readdir } from "node:fs/promises";
import { join } from "node:path";

export function roomsRoot(home: string): string {
  return join(home, "rooms");
}

export function roomsOf(home: string, taskId: string): string {
  return join(roomsRoot(home), taskId);
}

export function baseFolder(home: string, taskId: string): string {
  return join(roomsOf(home, taskId), "base");
}

export function beforeFolder(home: string, taskId: string): string {
  return join(roomsOf(home, taskId), "before");
}

export function workFolder(home: string, taskId: string, round: number): string {
  return join(roomsOf(home, taskId), `work-${round}`);
}

export function leftFolder(home: string, taskId: string, round: number): string {
  return join(roomsOf(home, taskId), `left-${round}`);
}

export function goneFolder(home: string, taskId: string): string {
  return join(roomsOf(home, taskId), "gone");
}

export function abandonedFolder(home: string, taskId: string): string {
  return join(roomsOf(home, taskId), "abandoned");
}

/** Of a folder that says what had changed; undefined: it is none, or is not whole. */
export function roundOf(name: string): number | undefined {
  const [, round] = /^(?:work|left)-(\d+)$/.exec(name) ?? [];
  return round === undefined ? undefined : Number(round);
}

/** Of rounds before this one, and what a killed process had begun to make of them. */
export async function earlierWork(home: string, taskId: string, round: number): Promise<readonly string[]> {
  const names = await readdir(roomsOf(home, taskId)).catch(() => []);
  return names
    .filter((name) => Number(/^work-(\d+)(?:\.new)?$/.exec(name)?.[1] ?? round) < round)
    .map((name) => join(roomsOf(home, taskId), name));
}
