/** A file matches a regular expression somewhere. */
import { failed, passed, type RunLeaf } from "./check.ts";
import { testPattern } from "./patterns.ts";

export const matches: RunLeaf<"matches"> = async ({ path, regex, flags }, { files, signal }) => {
  const file = await files.read(path);
  if (file === undefined) return failed(`${path} does not exist`, { isMoot: true });
  const { sha256 } = file;
  return (await testPattern({ source: regex, flags, text: file.text }, signal))
    ? passed(`${path} matches /${regex}/${flags}`, { sha256 })
    : failed(`${path} does not match /${regex}/${flags}`, { sha256 });
};
