/** Tasks that were given one of some folders as their workspace. */
import type { TaskRecord } from "@heddle/protocol";
import type { Journal } from "@heddle/journal";

const PAGE = 200;

export async function tasksIn(journal: Journal, folders: Iterable<string>): Promise<readonly TaskRecord[]> {
  const tasks: TaskRecord[] = [];
  for (const workspace of new Set(folders)) {
    for (let after: string | undefined; ;) {
      const page = await journal.tasks.page({ workspace, limit: PAGE, ...(after === undefined ? {} : { after }) });
      tasks.push(...page);
      after = page.at(-1)?.id;
      if (page.length < PAGE) break;
    }
  }
  return tasks;
}
