/** Nothing is there: no file, no folder, and no link, even one that leads nowhere. */
import { failed, passed, type RunLeaf } from "./check.ts";

export const fileAbsent: RunLeaf<"file-absent"> = async ({ path }, { files }) => {
  // The hash sees a link that leads nowhere, which looking through it does not.
  const isThere = (await files.hash(path)) !== undefined || (await files.entry(path)) !== undefined;
  return isThere ? failed(`${path} exists`) : passed(`${path} does not exist`);
};
