/** A file has a text in it, as it is written. */
import { failed, passed, type RunLeaf } from "./check.ts";
import { shown } from "./shown.ts";

export const contains: RunLeaf<"contains"> = async ({ path, text }, { files }) => {
  const file = await files.read(path);
  if (file === undefined) return failed(`${path} does not exist`, { isMoot: true });
  const { sha256 } = file;
  return file.text.includes(text)
    ? passed(`${path} contains ${shown(text)}`, { sha256 })
    : failed(`${path} does not contain ${shown(text)}`, { sha256 });
};
