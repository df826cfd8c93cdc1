/** Where Heddle keeps what no agent may see or change: what other tasks were judged on, and what they bring back. */

/** Trees of tasks. Beside the home, so that the one an agent works in can be shown without showing the home. */
export function worktreesRoot(home: string): string {
  return `${home}-worktrees`;
}

/** Installed plugins. Beside the home, so that their skills and programs can be read; no agent may write there. */
export function pluginsRoot(home: string): string {
  return `${home}-plugins`;
}

/** Masked in every sandbox; the folder of a task stays visible, because it lies deeper. */
export function heddleFolders(home: string): readonly string[] {
  return [home, worktreesRoot(home)];
}
