/** `gitDiffToRemote`: what a folder has that its remote does not, new files included. */
import { realpath } from "node:fs/promises";
import path from "node:path";
import type { Handler } from "../../rpc/call.ts";
import { askProgram } from "../../host/host-command.ts";
import { refuse } from "../thread-facts.ts";

const MAX_DIFF_BYTES = 4 * 1024 * 1024;
const DIFF_MS = 20_000;

/**
 * The commit that both have: of the branch's upstream, of a remote branch with its name, or of the remote's main one.
 * Programs that a repository names for showing files are not started.
 */
const SCRIPT = `
set -eu
g() { git -c core.fsmonitor=false -c core.quotePath=false "$@"; }
cd "$(g rev-parse --show-toplevel)"
branch=$(g symbolic-ref -q --short HEAD || echo HEAD)
base=
for name in '@{upstream}' $(g remote | sed "s|$|/$branch|") $(g remote | sed 's|$|/HEAD|') \\
  $(g remote | sed 's|$|/main|') $(g remote | sed 's|$|/master|'); do
  base=$(g merge-base HEAD "$name" 2>/dev/null) && break
  base=
done
test -n "$base"
echo "$base"
g diff --no-ext-diff --no-textconv --no-color "$base" --
g ls-files -oz --exclude-standard | xargs -0 -r -n 1 git -c core.quotePath=false diff --no-ext-diff --no-textconv --no-color --no-index -- /dev/null || true
`;

export const gitDiffToRemote: Handler<"gitDiffToRemote"> = async ({ cwd }, call) => {
  const failed = refuse(`failed to compute git diff to remote for cwd: ${JSON.stringify(cwd)}`);
  const folder = await realpath(path.resolve(call.server.cwd, cwd)).catch(() => {
    throw failed;
  });
  const question = { cwd: folder, argv: ["sh", "-c", SCRIPT], maxBytes: MAX_DIFF_BYTES, timeoutMs: DIFF_MS };
  const { exitCode, stdout, truncatedBytes } = await askProgram(question, call);
  const end = stdout.indexOf("\n");
  if (exitCode !== 0 || end < 0) throw failed;
  const isTruncated = truncatedBytes !== undefined;
  return {
    result: { sha: stdout.slice(0, end), diff: stdout.slice(end + 1), ...(isTruncated ? { isTruncated } : {}) },
  };
};
