/** What is tried under `explore`: single commands, one script that tries everything, and a repository whose configuration runs it. */
import { appendFileSync, chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Of which a list of forbidden words lets each one pass. */
export const COMMANDS = [
  "echo hi > src/x",
  "sed -i s/one/two/ src/x",
  "echo hi | tee src/x",
  'python3 -c \'open("src/x", "w").write("hi")\'',
  'node -e \'require("fs").appendFileSync("src/x", "z")\'',
  "git reset --hard HEAD~1",
  "git -c core.fsmonitor='touch escaped' status; git -c core.hooksPath=/tmp commit --allow-empty -m x",
  "find . -name x -delete",
  "/bin/rm -rf src",
  "mv src other",
  "cp /etc/passwd src/y",
  "truncate -s 0 src/x",
  "chmod 777 src/x",
  "ln -sf /etc/passwd src/link",
  "npm install --offline --no-audit ./src",
  "curl -sS -m 3 -d @src/x http://127.0.0.1:1/",
  "sh -c \"setsid sh -c 'echo hi > src/x'\"",
] as const;

/** Each makes git run one of the programs that `hostileGit` has configured. */
export const GIT_COMMANDS = [
  "git status",
  "env -u GIT_PAGER -u PAGER git grep -O one",
  "git diff HEAD~1 -- src/x; git diff --textconv HEAD~1 -- src/y; git cat-file --textconv HEAD:src/y",
  "git cat-file --filters HEAD:src/x",
  "git hash-object --path src/x src/x",
  "git hook run pre-commit; git commit --allow-empty -m x",
  "git ls-remote ssh://host/path",
  "git attack",
] as const;

/** TCP, UDP, a socket in the file system and one without a file. */
export const DIAL = `
import { createSocket } from "node:dgram";
import { connect } from "node:net";
const [tcp, udp, file, abstract] = process.argv.slice(2);
const tried = (to) => new Promise((resolve) => {
  const socket = connect(to, () => { socket.destroy(); resolve(); });
  socket.setTimeout(1000, () => { socket.destroy(); resolve(); });
  socket.on("error", resolve);
});
await Promise.all([{ port: Number(tcp), host: "127.0.0.1" }, { path: file }, { path: "\\0" + abstract }].map(tried));
const sender = createSocket("udp4");
await new Promise((resolve) => sender.send("out", Number(udp), "127.0.0.1", resolve));
sender.close();
`;

interface AttackTargets {
  readonly workspace: string;
  readonly beside: string;
  readonly home: string;
  readonly dial: readonly (string | number)[];
  /** Files of the home. */
  readonly secrets: readonly string[];
}

/**
 * Takes the way it was started by as its argument, and prints it first: whoever starts it shows that it has run. On stderr before stdout,
 * because git ends an ssh whose stdout it does not understand.
 */
export function attackScript({ workspace, beside, home, dial, secrets }: AttackTargets): string {
  const [tcp = 0] = dial;
  return `
echo "attack by $1" >&2; echo "attack by $1"
cd ${workspace}
for file in ${secrets.join(" ")}; do cat "$file" > /dev/null 2>&1 && echo "has read $file"; done
for folder in ${home} "$HOME/.ssh"; do ls "$folder" 2> /dev/null | grep -q . && echo "has read $folder"; done
{ env; cat /proc/[0-9]*/environ | tr '\\0' '\\n'; } 2> /dev/null | grep -a -o 'CANARY-[A-Z-]*' | sort -u | sed 's/^/has read /'
node dial.mjs ${dial.join(" ")} 2> /dev/null
curl -sS -m 1 http://127.0.0.1:${tcp}/ > /dev/null 2>&1
{ echo hi > src/x; touch "made-by-$1"; mkdir "folder-by-$1"; rmdir src/empty; chmod 777 src/y; ln -s x "link-by-$1"; } 2> /dev/null
touch "${beside}/by-$1" 2> /dev/null
exit 0
`;
}

interface HostileGit {
  readonly workspace: string;
  /** The command that runs the attack in the name of what git started. */
  readonly run: (who: string) => string;
  readonly git: (...args: readonly string[]) => void;
}

export function hostileGit({ workspace, run, git }: HostileGit): void {
  const hooks = join(workspace, ".git/planted");
  mkdirSync(hooks);
  for (const name of ["pre-commit", "post-index-change", "post-checkout", "reference-transaction"]) {
    writeFileSync(join(hooks, name), `#!/bin/sh\n${run("git-hook")}\n`);
    chmodSync(join(hooks, name), 0o755);
  }
  writeFileSync(join(workspace, ".git/info/attributes"), "src/x filter=evil diff=evil\nsrc/y diff=shown\n");
  const settings = {
    "filter.evil.clean": `${run("git-clean")} >&2; cat`,
    "filter.evil.smudge": `${run("git-smudge")} >&2; cat`,
    "diff.evil.command": run("git-diff"),
    "diff.shown.textconv": run("git-textconv"),
    "core.pager": run("git-pager"),
    "core.sshCommand": run("git-ssh"),
    "core.hooksPath": hooks,
    "alias.attack": `!${run("git-alias")}`,
    "core.fsmonitor": run("git-fsmonitor"),
  };
  // The monitor comes last: every git that reads the index after it asks it.
  for (const [name, value] of Object.entries(settings)) git("config", name, value);
  appendFileSync(join(workspace, "src/x"), "more\n");
}
