/** Where Heddle keeps what no agent may see or change: what other tasks were judged on, and what they bring back. */

/** Trees of tasks. Beside the home, so that the one an agent works in can be shown without showing the home. */
export function worktreesRoot(home: string): string {
  return `${home}-worktrees`;
}

/** Masked in every sandbox; the folder of a task stays visible, because it lies deeper. */
export function heddleFolders(home: string): readonly string[] {
  return [home, worktreesRoot(home)];
}
